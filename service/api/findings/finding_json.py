"""Findings as JSON, with the trials of their fixes; and the way to one by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.api.runs.run_json import run_of
from service.auth.caller import caller
from service.problems.errors import Problem
from store.database.ids import is_id
from store.findings import findings, trials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database.session import Transaction
    from store.findings.findings import FindingRow
    from store.runs.model import RunRow


def finding_of(transaction: Transaction, public_id: str) -> FindingRow:
    """Load the finding of that id.

    Raises:
        Problem: `not-found`, also if it is of another tenant or project.
    """
    asked = caller()
    found = findings.get(transaction, public_id, tenant_id=asked.tenant_id) if is_id("f", public_id) else None
    if found is not None and asked.project is not None:
        run_of(transaction, found.run)
    if found is None:
        raise Problem("not-found", f"There is no finding {public_id[:40]}.")
    return found


def with_trials(transaction: Transaction, rows: Sequence[FindingRow], *, wanted: bool) -> list[dict[str, Any]]:
    """Convert findings to JSON, with their trials, newest first, if they are wanted; else null."""
    known = trials.of_findings(transaction, [row.id for row in rows], tenant_id=caller().tenant_id) if wanted else {}
    return [
        row.json() | {"trials": [trial_json(trial) for trial in known.get(row.id, ())] if wanted else None}
        for row in rows
    ]


def trial_json(run: RunRow) -> dict[str, Any]:
    """Convert a trial to JSON as `TrialTold` describes it."""
    trial = run.trial
    if trial is None:
        raise ValueError(f"{run.id} is no trial")
    return {
        "run": run.id,
        "status": run.status,
        "fix": trial.fix,
        "verdict": trial.verdict,
        "why": trial.why,
        "created_at": run.created_at,
    }
