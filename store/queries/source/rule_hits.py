"""Which runs a rule found something in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.tables import SECONDS, Now, finding, run

_last: Final = sa.func.max(finding.c.created_at).label("last_at")
_FOUND: Final = (
    sa.select(finding.c.run_id, _last, sa.func.count().label("findings"))
    .where(
        finding.c.tenant_id == sa.bindparam("of_tenant"),
        finding.c.rule == sa.bindparam("of_rule"),
        finding.c.created_at >= Now(sa.bindparam("since_seconds", type_=SECONDS)),
    )
    .group_by(finding.c.run_id)
    .order_by(_last.desc(), finding.c.run_id.desc())
    .limit(sa.bindparam("most"))
    .subquery()
)
_NAMED: Final = (
    sa.select(run.c.public_id, _FOUND.c.last_at, _FOUND.c.findings)
    .join_from(_FOUND, run, run.c.id == _FOUND.c.run_id)
    .order_by(_FOUND.c.last_at.desc(), _FOUND.c.run_id.desc())
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundIn:
    """A run with findings of a rule.

    Attributes:
        run: Public id. findings: how many of the rule. last_at: when the last of them was stored.
    """

    run: str
    findings: int
    last_at: Any


def runs_with(
    transaction: Transaction, rule: str, *, days: float = 30.0, tenant_id: int = 1, limit: int = 100
) -> tuple[FoundIn, ...]:
    """List the runs in which a rule, by name, found something in the last `days`, those seen last first."""
    asked = {"of_tenant": tenant_id, "of_rule": rule, "since_seconds": -days * 86400.0, "most": limit}
    rows = transaction.execute(_NAMED, asked)
    return tuple(FoundIn(run=row.public_id, findings=row.findings, last_at=row.last_at) for row in rows)
