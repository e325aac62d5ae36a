"""What leaves with the end of a run, in the transaction that ends it: the events that webhooks hear of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from store.database.session import Transaction
from store.findings.groups import Change
from store.webhooks import outbox


def tell_ended(transaction: Transaction, row: Any, status: str, findings: Mapping[str, int] | None = None) -> None:
    """Let webhooks know that a run has ended.

    Args:
        transaction: The one that ends it.
        row: The run's row with `public_id`, `tenant_id` and `project_id`.
        status: Its last status.
        findings: By level, those not suppressed; None: it was not judged.
    """
    body: dict[str, Any] = {"run": row.public_id, "status": status}
    if findings is not None:
        body["findings"] = {level: count for level, count in findings.items() if count}
    owner = {"tenant_id": row.tenant_id, "project_id": row.project_id}
    outbox.enqueue(transaction, "run.ended", row.public_id, body, **owner)


def tell_groups(transaction: Transaction, row: Any, changes: Sequence[Change]) -> None:
    """Let webhooks know of findings that no run of the project had shown, or that had been fixed."""
    owner = {"tenant_id": row.tenant_id, "project_id": row.project_id}
    for change in changes:
        body = {"group": change.group, "run": row.public_id, "rule": change.rule, "level": change.level}
        if outbox.enqueue(transaction, f"finding.{change.what}", change.group, body, **owner) is None:
            return  # nobody listens
