"""Trials of fixes: which there are of findings, and the verdict when one ends.

The verdict is made by who ends the trial, from both records, and stored with its run: reading it compares nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backprobe.rules.framework.finding import Trial
from backprobe.rules.framework.judge import Judgement
from backprobe.rules.trials import Failure, Shown, compared, shown
from store.database.session import Database, Transaction
from store.findings import findings
from store.records.reader import load_record
from store.runs.reading.run_rows import SELECT_RUN, by_public_id, run_row
from store.tables import run

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding
    from store.runs.model import Claim, RunRow

NO_SEED = "the first loss was not compared: the run has no seed"


def of_findings(transaction: Transaction, ids: Sequence[str], *, tenant_id: int) -> Mapping[str, list[RunRow]]:
    """The trials of findings, the newest first, by the finding's public id."""
    query = SELECT_RUN.where(run.c.trial_of.in_(ids), run.c.tenant_id == tenant_id)
    found: defaultdict[str, list[RunRow]] = defaultdict(list)
    for row in transaction.execute(query.order_by(run.c.id.desc())) if ids else ():
        found[row.trial_of].append(run_row(row))
    return found


def trial_facts(
    database: Database, claim: Claim, record: Record | None, judgement: Judgement | None, limit: str | None
) -> dict[str, Any]:
    """The columns of a trial's run that hold its verdict; none where it left nothing to judge.

    Args:
        claim: Of a trial.
        limit: Name of the limit that stopped it; None: none did.
    """
    if record is None or judgement is None or claim.trial is None:
        return {}
    after = shown(record, judgement)
    if limit is not None:
        after = replace(after, failure=Failure(what=f"the limit {limit} stopped it"))
    trial = _verdict(database, claim, after)
    return {"trial_verdict": trial.verdict, "trial_why": trial.why}


def _verdict(database: Database, claim: Claim, after: Shown) -> Trial:
    if claim.trial is None:
        raise ValueError(f"{claim.public_id} is no trial")
    with database.read() as transaction:
        row = findings.get(transaction, claim.trial.finding, tenant_id=claim.tenant_id)
        first = None if row is None else by_public_id(transaction, row.run, tenant_id=claim.tenant_id)
        if row is None or first is None or first.key is None:
            return Trial(verdict="not-tried", why="the finding is not kept")
        record = load_record(transaction, first.key)
        if record is None:
            return Trial(verdict="not-tried", why=f"the record of run {first.id} is gone")
        stored = _all_of(transaction, first)
    one = next((other for other in stored if other.fingerprint == row.finding.fingerprint), row.finding)
    before = shown(record, Judgement(findings=stored, rules_judged=0, not_run=(), ruleset=""))
    if first.outcome.limit is not None:
        before = replace(before, failure=Failure(what=f"the limit {first.outcome.limit} stopped it"))
    trial = compared(one, row.finding.fixes[claim.trial.fix].edits, before, after)
    unseeded = trial.verdict == "changes-values" and claim.seed is None
    return Trial(verdict="confirmed", why=NO_SEED) if unseeded else trial


def _all_of(transaction: Transaction, first: RunRow) -> tuple[Finding, ...]:
    found: list[Finding] = []
    after: int | None = None
    while True:
        page = findings.page(transaction, first, after=after, limit=1000)
        found += [row.finding for row in page.items]
        if page.next is None:
            return tuple(found)
        after = page.next
