"""Groups of findings as rows of the API: a page of them, one of them, and what people make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import sqlalchemy as sa

from backprobe.rules import Identity, identity_of
from store.database.session import Transaction
from store.findings.findings import SELECT_FINDING, finding_row
from store.tables import Now, finding, finding_group, project, run, snippet

State = Literal["open", "acknowledged", "suppressed", "fixed"]

_first: Final = run.alias("first")
_last: Final = run.alias("last")
_SELECT: Final = (
    sa.select(
        finding_group,
        project.c.public_id.label("project"),
        _first.c.public_id.label("first_run"),
        _last.c.public_id.label("last_run"),
    )
    .join_from(finding_group, project, project.c.id == finding_group.c.project_id)
    .join(_first, _first.c.id == finding_group.c.first_run_id)
    .join(_last, _last.c.id == finding_group.c.last_run_id)
)
_project_id: Final = project.c.public_id
_named: Final = (
    finding_group.c.public_id == sa.bindparam("its_id"),
    finding_group.c.tenant_id == sa.bindparam("its_tenant"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """The same finding over all runs of a project.

    Attributes:
        id: `fg_...`. project, first_run, last_run: public ids.
        state: What people made of it. reason, state_by, state_at: why, who and when; None: nobody set it.
        owner: Whose task it is; None: nobody's.
        runs: How many showed it. returned: how often it came back after it was fixed.
        level, path, line, message: Of the finding seen last.
        made_of: What the fingerprint was made of; None: the finding seen last is not kept, or names another.
        version: Rises with every change: the ETag. number: not shown.
    """

    id: str
    project: str
    fingerprint: str
    made_of: Identity | None
    rule: str
    level: str
    state: State
    reason: str | None
    state_by: str | None
    state_at: str | None
    owner: str | None
    first_run: str
    last_run: str
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
    return None if row is None else _row(row, _made_of(transaction, [row.id]))


def page(  # noqa: PLR0913 - a filter each
    transaction: Transaction,
    *,
    tenant_id: int = 1,
    project: str | None = None,
    state: Sequence[str] = (),
    level: Sequence[str] = (),
    rule: Sequence[str] = (),
    owner: str | None = None,
    last_seen_after: str | None = None,
    after: tuple[str, int] | None = None,
    limit: int = 100,
) -> GroupPage:
    """Groups, the one seen last first. One that is seen meanwhile moves to the front; none is shown twice for it.

    Args:
        transaction: To read by.
        tenant_id: Whose.
        project: Public id of the only project; None: all of the tenant's.
        state: Any of these; empty: all. level, rule (names): likewise.
        owner: Only this one's.
        last_seen_after: ISO time, exclusive.
        after: `GroupPage.next` of the page before; None: the first page.
        limit: Groups at most.
    """
    g = finding_group.c
    query = _SELECT.where(g.tenant_id == tenant_id)
    for column, values in ((g.state, state), (g.level, level), (g.rule, rule)):
        if values:
            query = query.where(column.in_(values))
    for column, value in ((_project_id, project), (g.owner, owner)):
        if value is not None:
            query = query.where(column == value)
    if last_seen_after is not None:
        query = query.where(g.last_seen_at > last_seen_after)
    if after is not None:
        at, number = after
        query = query.where(sa.or_(g.last_seen_at < at, sa.and_(g.last_seen_at == at, g.id > number)))
    rows = transaction.execute(query.order_by(g.last_seen_at.desc(), g.id).limit(limit + 1)).all()
    made_of = _made_of(transaction, [row.id for row in rows[:limit]])
    items = tuple(_row(row, made_of) for row in rows[:limit])
    return GroupPage(items=items, next=(items[-1].last_seen_at, items[-1].number) if len(rows) > limit else None)


def change(transaction: Transaction, found: GroupRow, given: Mapping[str, str | None], *, actor: str) -> bool:
    """Write a state with its reason, an owner, or both, if the group still is at the version that was read.

    Args:
        transaction: To write by.
        found: The group as its reader saw it.
        given: Any of `state`, `reason`, `owner`. A new state without a reason has none.
        actor: Who does it.

    Returns:
        Whether it was written; not if somebody else, or a run, changed it meanwhile.
    """
    values: dict[str, Any] = dict(given)
    if "state" in given:
        values = {"reason": None, **values, "state_by": actor, "state_at": Now()}
    if not values:
        return True
    statement = (
        sa.update(finding_group)
        .where(finding_group.c.id == found.number, finding_group.c.version == found.version)
        .values(**values, version=finding_group.c.version + 1)
    )
    return transaction.execute(statement).rowcount == 1


def _made_of(transaction: Transaction, groups: Sequence[int]) -> dict[int, Identity | None]:
    """What the fingerprints of these groups were made of, as the runs that showed them last tell it."""
    g = finding_group.alias("its_group")
    last = sa.and_(finding.c.run_id == g.c.last_run_id, finding.c.fingerprint == g.c.fingerprint)
    unnamed = sa.and_(snippet.c.id == run.c.snippet_id, ~snippet.c.named)
    query = (
        SELECT_FINDING.add_columns(g.c.id.label("its_group"), snippet.c.public_id.label("unnamed"))
        .join(g, last)
        .outerjoin(snippet, unnamed)
        .where(g.c.id.in_(groups))
    )
    return {row.its_group: identity_of(finding_row(row).finding, row.unnamed) for row in transaction.execute(query)}


def _row(row: Any, made_of: Mapping[int, Identity | None]) -> GroupRow:
    names = [name for name in GroupRow.__slots__ if name not in {"id", "number", "made_of"}]
    fields = {name: getattr(row, name) for name in names}
    return GroupRow(id=row.public_id, number=row.id, made_of=made_of.get(row.id), **fields)
