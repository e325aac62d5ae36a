"""Groups of findings as rows of the API: a page of them, one of them, its days, and what people make of it."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from backprobe.rules import Identity, identity_of
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.findings.findings import SELECT_FINDING, FindingRow, finding_row
from store.findings.group_filter import GroupFilter
from store.findings.group_state import HAS_RETURNED, STATE_NOW, VERSION_NOW
from store.tables import (
    Now,
    audit,
    audit_item,
    finding,
    finding_group,
    finding_group_alias,
    finding_group_day,
    project,
    run,
    snippet,
)

State = Literal["open", "acknowledged", "suppressed", "fixed"]

DAYS: Final = 14
"""Days, in UTC and the last one not over, for which the runs that showed a group are counted."""


def _commit_of(shower: sa.FromClause) -> sa.ColumnElement[str | None]:
    """Return the label `commit` of a run, else of the last audit that the run is an item of."""
    query = sa.select(audit.c.labels["commit"].as_string()).join_from(
        audit_item, audit, audit.c.id == audit_item.c.audit_id
    )
    query = query.where(audit_item.c.run_id == shower.c.id).order_by(audit_item.c.audit_id.desc()).limit(1)
    return sa.func.coalesce(shower.c.labels["commit"].as_string(), query.correlate(shower).scalar_subquery())


_first: Final = run.alias("first")
_last: Final = run.alias("last")
_SELECT: Final = (
    sa.select(
        *[column for column in finding_group.c if column.name not in {"state", "version"}],
        STATE_NOW.label("state"),
        VERSION_NOW.label("version"),
        sa.func.coalesce(HAS_RETURNED, sa.false()).label("has_returned"),
        project.c.public_id.label("project"),
        project.c.name.label("project_name"),
        _first.c.public_id.label("first_run"),
        _last.c.public_id.label("last_run"),
        _commit_of(_first).label("first_commit"),
        _commit_of(_last).label("last_commit"),
    )
    .join_from(finding_group, project, project.c.id == finding_group.c.project_id)
    .join(_first, _first.c.id == finding_group.c.first_run_id)
    .join(_last, _last.c.id == finding_group.c.last_run_id)
)
_named: Final = (
    finding_group.c.public_id == sa.bindparam("its_id"),
    finding_group.c.tenant_id == sa.bindparam("its_tenant"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """The same finding over all runs of a project.

    Attributes:
        id: `fg_...`. project, first_run, last_run: public ids. project_name: as people call it.
        state: What people made of it. reason, state_by, state_at: why, who and when; None: nobody set it.
        muted_until: A suppressed group is open from then on; once that is past, it tells why the group is open. None:
            no end, or not suppressed.
        has_returned: It is open because a run showed it after it was fixed.
        owner: Whose task it is; None: nobody's.
        first_commit, last_commit: Label `commit` of the run, else of its last audit; None: neither has one.
        runs: How many showed it. returned: how often it came back after it was fixed.
        level, path, line, message: Of the finding seen last.
        made_of: What the fingerprint of the finding seen last was made of, which is an alias of the group's own once
            its file was renamed; None: the finding is not kept, or is not among the first of its kind.
        version: Rises with every change: the ETag. number: not shown.
    """

    id: str
    project: str
    project_name: str
    fingerprint: str
    made_of: Identity | None
    rule: str
    level: str
    state: State
    reason: str | None
    state_by: str | None
    state_at: str | None
    muted_until: str | None
    has_returned: bool
    owner: str | None
    first_run: str
    last_run: str
    first_commit: str | None
    last_commit: str | None
    first_seen_at: str
    last_seen_at: str
    runs: int
    returned: int
    path: str
    line: int
    message: str
    version: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """Some groups, the one seen last first; `next` is the `after` of the next page or None."""

    items: tuple[GroupRow, ...]
    next: tuple[str, int] | None


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> GroupRow | None:
    """One group; None: no such group of this tenant."""
    row = transaction.execute(_SELECT.where(*_named), {"its_id": public_id, "its_tenant": tenant_id}).first()
    return None if row is None else _row(row, _load_identities(transaction, [row.id]))


def page(
    transaction: Transaction,
    which: GroupFilter,
    *,
    tenant_id: int = 1,
    after: tuple[str, int] | None = None,
    limit: int = 100,
    with_made_of: bool = True,
) -> GroupPage:
    """List groups, the one seen last first. A group seen meanwhile moves to the front; none is listed twice.

    Args:
        transaction: To read by.
        which: Of those.
        tenant_id: Whose.
        after: `GroupPage.next` of the page before; None: the first page.
        limit: Groups at most.
        with_made_of: Load `GroupRow.made_of`, which takes as long as the rest; else it is None.
    """
    g = finding_group.c
    numbers = sa.select(g.id).where(g.tenant_id == tenant_id, *which.conditions())
    if after is not None:
        at, number = after
        numbers = numbers.where(sa.or_(g.last_seen_at < at, sa.and_(g.last_seen_at == at, g.id > number)))
    # A separate statement: PostgreSQL reads and sorts all groups if it joins their runs here.
    shown = transaction.execute(numbers.order_by(g.last_seen_at.desc(), g.id).limit(limit + 1)).scalars().all()
    query = _SELECT.where(in_numbers(g.id, shown)).order_by(g.last_seen_at.desc(), g.id)
    rows = transaction.execute(query).all()
    made_of = _load_identities(transaction, [row.id for row in rows[:limit]]) if with_made_of else {}
    items = tuple(_row(row, made_of) for row in rows[:limit])
    return GroupPage(items=items, next=(items[-1].last_seen_at, items[-1].number) if len(rows) > limit else None)


def runs_by_day(transaction: Transaction, groups: Iterable[GroupRow]) -> Mapping[int, Mapping[str, int]]:
    """How many runs showed each group on each of the last `DAYS` days, by number of the group and ISO date in UTC.

    A day without a run is left out. Trials are not counted, as `GroupRow.runs` does not count them.
    """
    d = finding_group_day.c
    which = (in_numbers(d.group_id, [group.number for group in groups]), d.day >= last_days()[0])
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for row in transaction.execute(sa.select(d.group_id, d.day, d.runs).where(*which)):
        found[row.group_id][row.day] = row.runs
    return found


def _select_fingerprints(groups: Sequence[int]) -> sa.Subquery:
    """Select the fingerprints of groups, aliases included, with the number and the last run of each group."""
    g, a = finding_group.c, finding_group_alias.c
    own = sa.select(g.id.label("group_id"), g.project_id, g.last_run_id, g.fingerprint).where(in_numbers(g.id, groups))
    same = sa.and_(a.project_id == g.project_id, a.known_as == g.fingerprint)
    other = sa.select(g.id, g.project_id, g.last_run_id, a.fingerprint).join_from(
        finding_group, finding_group_alias, same
    )
    return sa.union_all(own, other.where(in_numbers(g.id, groups))).subquery()


def newest_finding(transaction: Transaction, found: GroupRow) -> FindingRow | None:
    """Return the finding of the run that showed the group last; None: it is not kept. One that is gone comes last."""
    query = SELECT_FINDING.where(finding_group.c.id == found.number, finding.c.run_id == finding_group.c.last_run_id)
    row = transaction.execute(query.order_by(finding.c.gone_at.is_not(None), finding.c.n).limit(1)).first()
    return None if row is None else finding_row(row)


def last_days() -> list[str]:
    """Return the ISO dates of the last `DAYS` days in UTC, today last."""
    today = datetime.datetime.now(datetime.UTC).date()
    return [(today - datetime.timedelta(days=ago)).isoformat() for ago in range(DAYS - 1, -1, -1)]


def change(transaction: Transaction, found: GroupRow, given: Mapping[str, str | None], *, actor: str) -> bool:
    """Write a state with its reason, an owner, or both, if the group still is at the version that was read.

    Args:
        transaction: To write by.
        found: The group as its reader saw it.
        given: Any of `state`, `reason`, `muted_until`, `owner`. A new state without a reason, or an end, has none.
        actor: Who does it.

    Returns:
        Whether it was written; not if somebody else, or a run, changed it meanwhile.
    """
    values: dict[str, Any] = dict(given)
    if "state" in given:
        values = {"reason": None, "muted_until": None, **values, "state_by": actor, "state_at": Now()}
    if not values:
        return True
    statement = (
        sa.update(finding_group)
        .where(finding_group.c.id == found.number, sa.literal(found.version) == VERSION_NOW)
        .values(**values, version=found.version + 1)
    )
    return transaction.execute(statement).rowcount == 1


def _load_identities(transaction: Transaction, groups: Sequence[int]) -> dict[int, Identity | None]:
    """Load what the fingerprints of these groups were made of, from the runs that showed them last."""
    names = _select_fingerprints(groups)
    last = sa.and_(
        finding.c.project_id == names.c.project_id,
        finding.c.fingerprint == names.c.fingerprint,
        finding.c.run_id == names.c.last_run_id,
    )
    unnamed = sa.and_(snippet.c.id == run.c.snippet_id, ~snippet.c.named)
    query = (
        SELECT_FINDING.add_columns(names.c.group_id.label("its_group"), snippet.c.public_id.label("unnamed"))
        .join(names, last)
        .outerjoin(snippet, unnamed)
    )
    return {row.its_group: identity_of(finding_row(row).finding, row.unnamed) for row in transaction.execute(query)}


def _row(row: Any, made_of: Mapping[int, Identity | None]) -> GroupRow:
    names = [name for name in GroupRow.__slots__ if name not in {"id", "number", "made_of"}]
    fields = {name: getattr(row, name) for name in names}
    return GroupRow(id=row.public_id, number=row.id, made_of=made_of.get(row.id), **fields)
