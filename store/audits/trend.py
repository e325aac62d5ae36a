"""What audits came to, day by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.audits.policy import VERDICTS
from store.database.session import Transaction
from store.tables import audit, audit_verdict, policy, project

_DAY: Final[dict[str, sa.ColumnElement[str]]] = {
    "postgresql": sa.literal_column("to_char(audit.created_at at time zone 'UTC', 'YYYY-MM-DD')", sa.Text()),
    "sqlite": sa.literal_column("substr(audit.created_at, 1, 10)", sa.Text()),
}
_FINDINGS: Final = ("new", "known", "gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditDay:
    """Audits begun on one day (UTC), by what the newest verdict of each says.

    Attributes:
        day: `2026-11-20`. audits: Begun, those without a verdict too.
        items: Of audits that have a verdict, by verdict. findings: of these audits, new, known and gone.
    """

    day: str
    audits: int
    passed: int
    failed: int
    canceled: int
    items: dict[str, int]
    findings: dict[str, int]


def by_day(
    transaction: Transaction,
    *,
    tenant_id: int = 1,
    of_project: str | None = None,
    of_policy: str | None = None,
    first: str,
    last: str,
) -> tuple[AuditDay, ...]:
    """Days with audits, oldest first.

    Args:
        transaction: To read by.
        tenant_id: Whose.
        of_project: Public id of the only project; None: all.
        of_policy: Public id of the only policy, whatever its revision; None: all.
        first: The first day, `2026-11-01`. last: the last one.
        last: See first.
    """
    which = [
        audit.c.tenant_id == tenant_id,
        audit.c.created_at >= f"{first}T00:00:00.000Z",
        audit.c.created_at <= f"{last}T23:59:59.999Z",
    ]
    for column, table, value in ((audit.c.project_id, project, of_project), (audit.c.policy_id, policy, of_policy)):
        if value is not None:
            which.append(column.in_(sa.select(table.c.id).where(table.c.public_id == value)))
    verdicts = _newest(which)
    counts = verdicts.c.counts
    day = _DAY[transaction.dialect.name].label("day")
    query = sa.select(
        day,
        sa.func.count().label("audits"),
        _count(verdicts.c.verdict == "passed").label("passed"),
        _count(verdicts.c.verdict == "failed").label("failed"),
        _count(audit.c.status == "canceled").label("canceled"),
        *(_sum(counts["items"][name]).label(f"items_{name}") for name in VERDICTS),
        *(_sum(counts["findings"][name]).label(f"findings_{name}") for name in _FINDINGS),
    )
    query = query.select_from(audit).outerjoin(verdicts, verdicts.c.audit_id == audit.c.id).where(*which)
    return tuple(_day(row) for row in transaction.execute(query.group_by(day).order_by(day)))


def _newest(which: Sequence[sa.ColumnElement[bool]]) -> sa.Subquery:
    """Select the newest verdict of each of these audits."""
    order = sa.func.row_number().over(
        partition_by=audit_verdict.c.audit_id,
        order_by=(audit_verdict.c.judged_at.desc(), audit_verdict.c.ruleset.desc()),
    )
    mine = audit_verdict.c.audit_id.in_(sa.select(audit.c.id).where(*which))
    ordered = sa.select(audit_verdict, order.label("place")).where(mine).subquery()
    return sa.select(ordered).where(ordered.c.place == 1).subquery()


def _count(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _sum(value: Any) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(value.as_integer()), 0)


def _day(row: Any) -> AuditDay:
    told = row._mapping  # noqa: SLF001 - the documented way to columns whose names are made
    names = ("audits", "passed", "failed", "canceled")
    return AuditDay(
        day=row.day,
        **{name: int(told[name]) for name in names},
        items={name: int(told[f"items_{name}"]) for name in VERDICTS},
        findings={name: int(told[f"findings_{name}"]) for name in _FINDINGS},
    )
