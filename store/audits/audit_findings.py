"""The findings of an audit's runs, worst first, and among equals in order of the items: page by page, without a sort.

Each run is listed once, at its first item, however many items it is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.severity import LEVELS
from store.audits.audits import Audit
from store.database.session import Transaction
from store.findings.findings import SELECT_FINDING, FindingRow, finding_row
from store.tables import audit_item, finding, run

_earlier: Final = audit_item.alias("earlier")
_shown: Final = finding.alias("shown")
_base_item: Final = audit_item.alias("base_item")
_base_run: Final = run.alias("base_run")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFindings:
    """Some findings; `next` is the `after` of the next page or None."""

    items: tuple[FindingRow, ...]
    next: tuple[int, int, int] | None


def page(
    transaction: Transaction,
    found: Audit,
    *,
    level: Sequence[str] = (),
    new: bool | None = None,
    after: tuple[int, int, int] | None = None,
    limit: int = 100,
) -> AuditFindings:
    """List the findings that today's rules make of an audit's runs and no comment suppresses.

    Args:
        transaction: To read by.
        found: The audit.
        level: Any of these; empty: all.
        new: Only those that its baseline has not, or has; None: both.
        after: `AuditFindings.next` of the page before; None: the first page.
        limit: Findings at most.
    """
    rank, place, n = after or (0, -1, -1)
    rows: list[tuple[tuple[int, int, int], Any]] = []
    for at in range(rank, len(LEVELS)):
        if level and LEVELS[at] not in level:
            continue
        query = _of_level(found, LEVELS[at], new=new)
        if at == rank:
            query = query.where(sa.or_(audit_item.c.n > place, sa.and_(audit_item.c.n == place, finding.c.n > n)))
        wanted = limit + 1 - len(rows)
        rows += [((at, row.place, row.n), row) for row in transaction.execute(query.limit(wanted))]
        if len(rows) > limit:
            break
    shown = rows[:limit]
    items = tuple(finding_row(row) for _, row in shown)
    return AuditFindings(items=items, next=shown[-1][0] if len(rows) > limit else None)


def _of_level(found: Audit, level: str, *, new: bool | None) -> Any:
    first = sa.exists().where(
        _earlier.c.run_id == audit_item.c.run_id,
        _earlier.c.audit_id == audit_item.c.audit_id,
        _earlier.c.n < audit_item.c.n,
    )
    query = (
        SELECT_FINDING.add_columns(audit_item.c.n.label("place"))
        .join(audit_item, audit_item.c.run_id == run.c.id)
        .where(audit_item.c.audit_id == found.number, ~first.correlate(audit_item))
        .where(finding.c.level == level, finding.c.gone_at.is_(None), finding.c.suppressed.is_(None))
        .order_by(audit_item.c.n, finding.c.n)
    )
    if new is None:
        return query
    return query.where(~_in_baseline(found) if new else _in_baseline(found))


def _in_baseline(found: Audit) -> sa.ColumnElement[bool]:
    """Select the findings that the baseline has as well."""
    if found.baseline_id is None:
        return sa.false()
    of = (
        sa.select(_shown.c.fingerprint)
        .join_from(_base_item, _base_run, _base_run.c.id == _base_item.c.run_id)
        .join(_shown, sa.and_(_shown.c.run_id == _base_run.c.id, _shown.c.attempt == _base_run.c.result_attempt))
        .where(_base_item.c.audit_id == found.baseline_id, _shown.c.gone_at.is_(None), _shown.c.suppressed.is_(None))
    )
    return finding.c.fingerprint.in_(of)
