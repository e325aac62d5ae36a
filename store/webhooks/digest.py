"""The weekly digest of a project: groups of findings that are new, regressed and fixed, and the worst that are open.

1. A digest is an event `digest.weekly` of the outbox about the last week that is over, Monday to Sunday in UTC.
2. Its `event_id` names project and week and is unique: a restart, or a second reaper, makes no second digest.
3. It is made for a project if a webhook wants it and there is something to say. That is read before anything is
   written: a project with nothing to say is looked at again all week.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.findings.group_state import HAS_RETURNED, is_in_state
from store.tables import Now, finding_group, outbox, project, webhook

KIND: Final = "digest.weekly"
MOST_GROUPS: Final = 5
_WEEK: Final = datetime.timedelta(days=7)

_g: Final = finding_group.c
_HOOKS: Final = sa.select(webhook.c.tenant_id, webhook.c.project_id, webhook.c.events).where(webhook.c.enabled)
_IN_USE: Final = sa.select(project.c.id, project.c.public_id, project.c.tenant_id, project.c.name).where(
    project.c.archived_at.is_(None)
)
_WORST_FIRST: Final = (sa.case((_g.level == "error", 0), (_g.level == "warning", 1), else_=2), _g.runs.desc(), _g.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A digest that may leave: columns of `outbox`."""

    event_id: str
    subject: str
    tenant_id: int
    project_id: int
    body: Mapping[str, Any]


def week_before(now: datetime.datetime) -> datetime.date:
    """Return the Monday with which the last week began that is over."""
    today = now.astimezone(datetime.UTC).date()
    return today - datetime.timedelta(days=today.weekday()) - _WEEK


def find_missing(transaction: Transaction, monday: datetime.date) -> list[Digest]:
    """Return the digests of that week that are wanted, are not made and have something to say."""
    projects = _find_projects(transaction, monday)
    counts = _count_groups(transaction, [row.id for row in projects], monday)
    return [
        Digest(
            event_id=_event_id(row.public_id, monday),
            subject=row.public_id,
            tenant_id=row.tenant_id,
            project_id=row.id,
            body=_describe_week(transaction, row, counts[row.id], monday),
        )
        for row in projects
        if row.id in counts
    ]


def _find_projects(transaction: Transaction, monday: datetime.date) -> list[Any]:
    """Return the projects whose digest of that week is wanted and not made: rows of id, public_id, tenant_id, name."""
    wanted: set[tuple[int, int | None]] = set()
    for hook in transaction.execute(_HOOKS):
        if KIND in hook.events:
            wanted.add((hook.tenant_id, hook.project_id))
    if not wanted:
        return []
    of_tenants = sa.or_(*(_is_of(*owner) for owner in sorted(wanted, key=str)))
    after_it = (outbox.c.kind == KIND, outbox.c.created_at >= _midnight(monday + _WEEK))
    made = set(transaction.execute(sa.select(outbox.c.event_id).where(*after_it)).scalars())
    projects = transaction.execute(_IN_USE.where(of_tenants).order_by(project.c.id)).all()
    return [row for row in projects if _event_id(row.public_id, monday) not in made]


def _is_of(tenant_id: int, project_id: int | None) -> sa.ColumnElement[bool]:
    return project.c.tenant_id == tenant_id if project_id is None else project.c.id == project_id


def _midnight(day: datetime.date) -> str:
    return f"{day}T00:00:00.000Z"


def _event_id(project_id: str, monday: datetime.date) -> str:
    return f"evt_{project_id.removeprefix('prj_')}_{monday:%Y%m%d}"


def enqueue(transaction: Transaction, digests: Iterable[Digest]) -> int:
    """Let digests leave that were not made meanwhile; how many."""
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    enqueued = 0
    for digest in digests:
        added = insert(outbox).values(**asdict(digest), kind=KIND, created_at=Now())
        added = added.on_conflict_do_nothing(index_elements=["event_id"]).returning(outbox.c.id)
        enqueued += len(transaction.execute(added).all())
    return enqueued


def _conditions(monday: datetime.date) -> dict[str, sa.ColumnElement[bool]]:
    """Return which groups a digest counts, by word. `open` counts groups as they are now."""
    since, until = _midnight(monday), _midnight(monday + _WEEK)
    set_then = sa.and_(_g.state_at >= since, _g.state_at < until)
    return {
        "new": sa.and_(_g.first_seen_at >= since, _g.first_seen_at < until),
        "regressed": sa.and_(HAS_RETURNED, set_then),
        "fixed": sa.and_(_g.state == "fixed", set_then),
        "open": sa.and_(is_in_state(["open"]), _g.first_seen_at < until),
    }


def _count_groups(
    transaction: Transaction, projects: Iterable[int], monday: datetime.date
) -> dict[int, dict[str, int]]:
    """Count the groups of projects, by number of the project; one without any is left out."""
    conditions = _conditions(monday)
    sums = [sa.func.sum(sa.case((condition, 1), else_=0)).label(name) for name, condition in conditions.items()]
    query = sa.select(_g.project_id, *sums).where(in_numbers(_g.project_id, projects)).group_by(_g.project_id)
    counts = {
        row.project_id: {name: int(getattr(row, name)) for name in conditions} for row in transaction.execute(query)
    }
    return {number: counted for number, counted in counts.items() if any(counted.values())}


def _describe_week(
    transaction: Transaction, row: Any, counts: Mapping[str, int], monday: datetime.date
) -> dict[str, Any]:
    """Return what a digest says."""
    seen_then = sa.select(_g.public_id.label("group"), _g.rule, _g.level, _g.runs).where(
        _g.project_id == row.id, _conditions(monday)["open"], _g.last_seen_at >= _midnight(monday)
    )
    top = transaction.execute(seen_then.order_by(*_WORST_FIRST).limit(MOST_GROUPS)).mappings()
    last = monday + _WEEK - datetime.timedelta(days=1)
    return {
        "project": row.public_id,
        "project_name": row.name,
        "from": str(monday),
        "to": str(last),
        **counts,
        "groups": [dict(group) for group in top],
    }
