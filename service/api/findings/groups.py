"""Findings over all runs, and the groups that they are counted in: one for each fingerprint of a project."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self
from urllib.parse import urlencode

from pydantic import AwareDatetime, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from backprobe.rules.framework.manual import every_rule
from backprobe.rules.framework.rule import Confidence, Level
from service.auth.caller import caller
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import ProjectId, Short
from service.schemas.responses.findings import FindingList
from service.schemas.responses.groups import GroupList, GroupTold
from service.web.body import Strict, body, query
from service.web.filters import Rules
from service.web.idempotency import effect
from service.web.parameters import Flag, Page, Split, Time
from service.web.reply import SAME, check_match, conditional, iso, json_reply, page_reply, read_cursor
from store import queries
from store.access import projects
from store.database.ids import is_id
from store.findings import findings, group_rows
from store.findings.group_filter import GroupFilter
from store.findings.group_rows import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flask import Response

    from store.database.session import Transaction
    from store.findings.group_rows import GroupPage, GroupRow

blueprint = Operations("groups", __name__, tag="Findings")

_ANY_OF: Final = "Any of these, joined by commas."

MOST_AHEAD: Final = datetime.timedelta(days=3653)
"""How far ahead a mute can end."""
_Levels = Annotated[list[Level], Split, Field(min_length=1, max_length=3)]
_Project = Annotated[str, Field(pattern=r"^prj_[A-Za-z0-9]{1,40}$")]


class FoundQuery(Page):
    """Which findings."""

    rule: Rules | None = Field(default=None, description=f"Names or codes. {_ANY_OF}")
    level: _Levels | None = Field(default=None, description=_ANY_OF)
    confidence: Annotated[list[Confidence], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    project: _Project | None = Field(default=None, description="Only those of this project.")
    path: Annotated[str, Field(min_length=1, max_length=200)] | None = Field(default=None, description="A file.")
    fingerprint: Annotated[str, Field(pattern=r"^backprobe/v1:[0-9a-f]{16}$")] | None = Field(
        default=None, description="The same finding, in whichever run."
    )
    created_gt: Time | None = Field(default=None, alias="created.gt", description="Stored later than this.")


class WithDays(Strict):
    """What else to tell of a group."""

    include: Annotated[list[Literal["days"]], Split, Field(min_length=1, max_length=1)] = Field(
        default_factory=list, description="days: how many runs showed it on each of the last 14 days."
    )


class GroupsQuery(Page):
    """Which groups."""

    state: Annotated[list[State], Split, Field(min_length=1, max_length=4)] | None = Field(
        default=None, description=_ANY_OF
    )
    returned: Flag | None = Field(
        default=None, description="Only those that are, or are not, open because a run showed them after `fixed`."
    )
    rule: Rules | None = Field(default=None, description=f"Names or codes. {_ANY_OF}")
    level: _Levels | None = Field(default=None, description=_ANY_OF)
    project: ProjectId | Annotated[Short, Field(min_length=1)] | None = Field(
        default=None, description="Only those of this project: its id or its name."
    )
    owner: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Whose task it is.")
    q: Annotated[Short, Field(min_length=1)] | None = Field(
        default=None, description="Words that all are part of the rule, path, message, owner or reason."
    )
    first_seen_gt: Time | None = Field(default=None, alias="first_seen.gt", description="First seen later than this.")
    last_seen_gt: Time | None = Field(default=None, alias="last_seen.gt", description="Seen later than this.")
    include: Annotated[list[Literal["days"]], Split, Field(min_length=1, max_length=1)] = Field(
        default_factory=list, description="days: how many runs showed each on each of the last 14 days."
    )


class GroupChanged(Strict):
    """What people make of a finding; what is not given stays."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"reason": ["state"], "muted_until": ["state"]}})

    state: State = Field(default_factory=lambda: "open", description="`suppressed` wants a reason.")
    reason: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Why it has this state.")
    muted_until: AwareDatetime | None = Field(
        default=None, description="With `suppressed`: it is open again from then on. `null`: it has no end."
    )
    owner: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="`null`: nobody's.")

    @model_validator(mode="after")
    def _a_reason_has_a_state(self) -> Self:
        if "reason" in self.model_fields_set and "state" not in self.model_fields_set:
            raise PydanticCustomError("reason_without_state", "`reason` says why `state` is set: give both")
        if self.muted_until is not None and self.state != "suppressed":
            raise PydanticCustomError("end_without_mute", "`muted_until` goes with `state` suppressed: give both")
        return self


def _project_of(asked: str | None) -> str | None:
    """Return the project to look at: the one asked for, or the only one that the caller sees."""
    return caller().project if asked is None else asked


def _hidden(asked: str | None) -> bool:
    """Another project than the only one that the caller sees was asked for."""
    return caller().project is not None and asked not in {None, caller().project}


@blueprint.get("/v1/findings")
@query(FoundQuery)
@answers({200: Answer(text="A page of findings, newest first.", model=FindingList, headers=("Link",))})
def find_findings(query: FoundQuery) -> Response:
    """Findings over all runs that today's rules make and no comment suppresses, newest first."""
    after = read_cursor("findings", query)
    if _hidden(query.project):
        return page_reply("findings", query, [], None)
    with context().database.read() as transaction:
        page = findings.over_runs(
            transaction,
            tenant_id=caller().tenant_id,
            of_project=_project_of(query.project),
            level=query.level or (),
            rule=query.rule or (),
            confidence=query.confidence or (),
            path=query.path,
            fingerprint=query.fingerprint,
            created_after=None if query.created_gt is None else iso(query.created_gt),
            after=None if after is None else (after[0], after[1]),
            limit=query.limit,
        )
    return page_reply("findings", query, [found.json() for found in page.items], page.next)


@blueprint.get("/v1/finding-groups")
@query(GroupsQuery)
@answers({200: Answer(text="A page of groups, the one seen last first.", model=GroupList, headers=("Link",))})
def list_groups(query: GroupsQuery) -> Response:
    """The same finding over all runs of a project is one group; this lists them, the one seen last first."""
    after = read_cursor("finding-groups", query)
    with context().database.read() as transaction:
        page = find_groups(transaction, query, after)
        days = group_rows.runs_by_day(transaction, page.items) if query.include else None
    items = [_group_to_json(group, days) for group in page.items]
    return page_reply("finding-groups", query, items, page.next)


def find_groups(
    transaction: Transaction, query: GroupsQuery, after: Sequence[Any] | None, *, with_made_of: bool = True
) -> GroupPage:
    """Load a page of the caller's groups.

    Args:
        transaction: To read by.
        query: Which.
        after: `GroupPage.next` of the page before; None: the first page.
        with_made_of: As `group_rows.page` has it.
    """
    asked = caller()
    project = asked.project
    if query.project is not None:
        found = projects.find(transaction, query.project, tenant_id=asked.tenant_id)
        if found is None or asked.project not in {None, found.id}:
            return group_rows.GroupPage(items=(), next=None)
        project = found.id
    codes = {rule.code: rule.name for rule in every_rule()}
    which = GroupFilter(
        project=project,
        state=query.state or (),
        returned=query.returned,
        level=query.level or (),
        rule=[codes.get(rule, rule) for rule in query.rule or ()],
        owner=query.owner,
        words=(query.q or "").split(),
        codes=codes,
        first_seen_after=None if query.first_seen_gt is None else iso(query.first_seen_gt),
        last_seen_after=None if query.last_seen_gt is None else iso(query.last_seen_gt),
    )
    return group_rows.page(
        transaction,
        which,
        tenant_id=asked.tenant_id,
        after=None if after is None else (after[0], after[1]),
        limit=query.limit,
        with_made_of=with_made_of,
    )


@blueprint.get("/v1/finding-groups/<group>")
@query(WithDays)
@answers({200: Answer(text="The group.", model=GroupTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",))
def get_group(group: str, query: WithDays) -> Response:
    """One group by its id. A request with `include` is answered in full."""
    with context().database.read() as transaction:
        found = group_of(transaction, group)
        days = group_rows.runs_by_day(transaction, [found]) if query.include else None
    answer = json_reply(_group_to_json(found, days), headers=_headers(found))
    return answer if query.include else conditional(answer)


@blueprint.patch("/v1/finding-groups/<group>")
@body(GroupChanged)
@answers(
    {200: Answer(text="The group, changed.", model=GroupTold, headers=("ETag",))},
    problems=("if-match-needed", "stale", "reason-needed"),
    headers=("If-Match",),
    scope="findings:write",
)
def change_group(group: str, body: GroupChanged) -> Response:
    """Say what is made of a finding, and whose task it is. Needs `If-Match`; one seen again after `fixed` is open."""
    given: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if body.muted_until is not None:
        given["muted_until"] = _end_of_mute(body.muted_until)
    with effect() as write:
        found = group_of(write.transaction, group)
        check_match(f"group {found.id}", _headers(found)["ETag"])
        if given.get("state") == "suppressed" and given.get("reason") is None:
            detail = "A finding is suppressed for a reason; say which."
            place = Place(pointer="#/reason", code="reason-needed", detail=detail)
            raise Problem("reason-needed", detail, places=(place,))
        if not group_rows.change(write.transaction, found, given, actor=caller().actor):
            raise Problem("stale", f"Another request has just changed group {found.id}.")
        write.done("finding-group.change", found.id, detail={"fields": sorted(given)})
        found = group_of(write.transaction, group)
    return json_reply(_group_to_json(found), headers=_headers(found))


def _end_of_mute(asked: datetime.datetime) -> str:
    """Return that time as the store has it.

    Raises:
        Problem: `invalid-request`.
    """
    if not datetime.timedelta() < asked - datetime.datetime.now(datetime.UTC) <= MOST_AHEAD:
        detail = "A mute must end later than now, within ten years."
        place = Place(pointer="#/muted_until", code="out-of-range", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))
    return iso(asked.astimezone(datetime.UTC))


def group_of(transaction: Transaction, public_id: str) -> GroupRow:
    """Load the group of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    asked = caller()
    found = group_rows.get(transaction, public_id, tenant_id=asked.tenant_id) if is_id("fg", public_id) else None
    if found is None or asked.project not in {None, found.project}:
        raise Problem("not-found", f"There is no group of findings {public_id[:40]}.")
    return found


def _headers(found: GroupRow) -> dict[str, str]:
    return {"ETag": f'"{found.version}"', "Cache-Control": "no-cache"}


def _group_to_json(found: GroupRow, days: Mapping[int, Mapping[str, int]] | None = None) -> dict[str, Any]:
    told = queries.as_json(found)
    del told["number"]
    told["days"] = None
    if days is not None:
        its = days.get(found.number, {})
        told["days"] = [{"day": day, "runs": its.get(day, 0)} for day in group_rows.last_days()]
    links = {
        "self": f"/v1/finding-groups/{found.id}",
        "findings": f"/v1/findings?{urlencode({'fingerprint': found.fingerprint, 'project': found.project})}",
    }
    return {**told, "links": links}
