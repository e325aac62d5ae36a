"""The filters of the inbox: texts as people type them, read into the filters of `/v1/finding-groups`."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from backprobe.rules.framework.manual import UnknownRule, manual
from backprobe.rules.framework.rule import Level
from backprobe.severity import LEVELS
from service.api.findings.groups import GroupsQuery
from service.auth.caller import caller
from service.dashboard.words import name
from service.web.filters import MOST_RULES
from service.web.parameters import Page, Whole
from service.web.printable_text import is_printable
from store.access import projects

if TYPE_CHECKING:
    from store.database.session import Transaction
    from store.findings.group_rows import GroupRow

NEW_DAYS: Final = 7
"""Days for which a group is called new."""

GROUPS: Final = 50
MOST_GROUPS: Final = 200
"""On one page, unless it asks for more, and at most."""

STATES: Final = {
    "open": {"state": ["open"]},
    "new": {"state": ["open"], "returned": False},
    "regressed": {"state": ["open"], "returned": True},
    "acknowledged": {"state": ["acknowledged"]},
    "muted": {"state": ["suppressed"]},
    "fixed": {"state": ["fixed"]},
    "all": {},
}
"""States of the page as filters of the API; a new group is one that was first seen in the last `NEW_DAYS` days, too."""

_ALSO: Final = {
    "ack": "acknowledged",
    "suppressed": "muted",
    "back": "regressed",
    "returned": "regressed",
    "any": "all",
}
_LONGEST: Final = 200
_AGE: Final = re.compile(r"(?:last |past )?(\d{0,4}) ?(m|h|d|w|min|minute|hour|day|week)s?(?: ago)?")
_UNITS: Final = {"m": 1, "h": 60, "d": 1440, "w": 10080}
"""Minutes of a unit, by its first letter."""

_Typed = Annotated[str, Field(max_length=2000)]


class InboxQuery(Page):
    """Which groups, as typed."""

    limit: Annotated[Whole, Field(ge=1, le=MOST_GROUPS)] = GROUPS
    state: _Typed = "open"
    q: _Typed = ""
    rule: _Typed = ""
    level: _Typed = ""
    owner: _Typed = ""
    project: _Typed = ""
    since: _Typed = ""


class Unreadable(Exception):
    """A filter cannot be read; the message says what to type instead.

    Attributes:
        field: Name of the filter.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def own_name() -> str:
    """Return the name under which the caller owns groups: an e-mail address, or the actor of a key."""
    return caller().actor.removeprefix("user:")


def read_filters(transaction: Transaction, typed: InboxQuery) -> GroupsQuery:
    """Read what was typed.

    Raises:
        Unreadable: naming the first filter that cannot be read.
    """
    for field in ("q", "owner", "project"):
        value = getattr(typed, field)
        if len(value) > _LONGEST or not is_printable(value):
            raise Unreadable(field, f"Type at most {_LONGEST} printable characters.")
    found: dict[str, Any] = {"limit": typed.limit, **_read_state(state_asked(typed))}
    if words := typed.q.strip():
        found["q"] = words
    if rules := _read_rules(typed.rule):
        found["rule"] = rules
    if level := typed.level.strip().lower():
        found["level"] = [read_level(level)]
    if owner := typed.owner.strip():
        found["owner"] = own_name() if owner.lower() in {"me", "mine"} else owner
    if project := typed.project.strip():
        found["project"] = _read_project(transaction, project)
    if since := typed.since.strip():
        found["last_seen.gt"] = _read_time(since)
    return GroupsQuery.model_validate(found)


def state_of(group: GroupRow) -> str:
    """Return the state of a group in the words of the page, a key of `STATES` but `all`."""
    if group.state != "open":
        return "muted" if group.state == "suppressed" else group.state
    if group.has_returned:
        return "regressed"
    return "new" if datetime.datetime.fromisoformat(group.first_seen_at) > _new_since() else "open"


def _new_since() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=NEW_DAYS)


def state_asked(typed: InboxQuery) -> str:
    """Return the state that was typed as the page calls it; another text as it is."""
    state = typed.state.strip().lower()
    return _ALSO.get(state, state) or "open"


def _read_state(state: str) -> dict[str, Any]:
    if state not in STATES:
        raise Unreadable("state", f"There is no state `{name(state)}`. Type one of {', '.join(STATES)}.")
    return {**STATES[state], **({"first_seen.gt": _new_since()} if state == "new" else {})}


def _read_rules(typed: str) -> list[str]:
    """Read the names of rules, each once; nothing between two separators is no rule."""
    rules = list(dict.fromkeys(read_rule(rule) for rule in re.split(r"[,;\s]+", typed.replace("_", "-")) if rule))
    if len(rules) > MOST_RULES:
        raise Unreadable("rule", f"{len(rules)} rules were typed. Type at most {MOST_RULES}, or none to see all rules.")
    return rules


def read_rule(typed: str) -> str:
    """Read the name or code of a rule as its name.

    Raises:
        Unreadable: there is none such.
    """
    try:
        return manual(typed.upper() if typed.upper().startswith("BP") else typed.lower()).rule.name
    except UnknownRule:
        hint = "Type a name or a code from the list of rules, such as BP101; several are separated by commas."
        raise Unreadable("rule", f"There is no rule `{name(typed)}`. {hint}") from None


def read_level(typed: str) -> Level:
    """Read a level, in the singular or the plural.

    Raises:
        Unreadable: there is none such.
    """
    for level in LEVELS:
        if typed in {level, f"{level}s"}:
            return level
    raise Unreadable("level", f"There is no level `{name(typed)}`. Type one of {', '.join(LEVELS)}.")


def _read_project(transaction: Transaction, typed: str) -> str:
    found = projects.find(transaction, typed, tenant_id=caller().tenant_id)
    if found is None or caller().project not in {None, found.id}:
        raise Unreadable("project", f"There is no project `{name(typed)}`. Type its name or its id.")
    return found.id


def _read_time(typed: str) -> datetime.datetime:
    """Read an age (`7d`, `2 weeks`, `yesterday`) or a date as the time after which a group was seen."""
    now, text = datetime.datetime.now(datetime.UTC), " ".join(typed.lower().split())
    if text in {"today", "yesterday"}:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - datetime.timedelta(days=text == "yesterday")
    if age := _AGE.fullmatch(text.removeprefix("this ")):
        return now - datetime.timedelta(minutes=int(age[1] or 1) * _UNITS[age[2][0]])
    try:
        at = datetime.datetime.fromisoformat(typed)
        return at.replace(tzinfo=datetime.UTC) if at.tzinfo is None else at.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        hint = "Type an age such as 12h, 7d or 2 weeks, or a date such as 2026-11-20."
        raise Unreadable("since", f"`{name(typed)}` is no time. {hint}") from None
