"""Trials of fixes: which there are of findings, and the verdict when one ends.

The verdict is made by who ends the trial, from both records, and stored with its run: reading it compares nothing.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from backprobe.rules.edits.text_edits import program_with
from backprobe.rules.framework.finding import Trial
from backprobe.rules.framework.judge import Judgement
from backprobe.rules.trials import Failure, Shown, compared, shown
from store.database.session import Database, Transaction
from store.findings import findings
from store.records.reader import at_key, load_record
from store.runs.owner_changes import program_of
from store.runs.reading.run_rows import SELECT_RUN, by_public_id, run_row
from store.tables import finding, run
from store.tables import record as record_head

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding, Fix
    from store.findings.findings import FindingRow
    from store.runs.model import Claim, RunKey, RunRow
    from store.runs.trial import TrialOf

_log: Final = logging.getLogger(__name__)

MOST_TOLD: Final = 20
"""At most so many trials of one finding are returned; `GET /v1/runs?origin=trial` lists all."""

NO_SEED: Final = "the first loss was not compared: the run has no seed"
GONE: Final = "newer rules no longer make the finding, or a comment suppresses it"
OTHER_RULES: Final = "other rules judged the run of the finding"
JUDGED_AGAIN: Final = "the finding was judged again meanwhile and has this fix no more"


def of_findings(transaction: Transaction, ids: Sequence[str], *, tenant_id: int) -> Mapping[str, list[RunRow]]:
    """Load the newest `MOST_TOLD` trials of each finding, newest first, by the finding's public id."""
    place = sa.func.row_number().over(partition_by=run.c.trial_of, order_by=run.c.id.desc()).label("place")
    placed = sa.select(run.c.id, place).where(run.c.trial_of.in_(ids), run.c.tenant_id == tenant_id).subquery()
    newest = sa.select(placed.c.id).where(placed.c.place <= MOST_TOLD)
    query = SELECT_RUN.where(run.c.id.in_(newest)).order_by(run.c.id.desc())
    found: defaultdict[str, list[RunRow]] = defaultdict(list)
    for row in transaction.execute(query) if ids else ():
        found[row.trial_of].append(run_row(row))
    return found


def going(transaction: Transaction, of: TrialOf, *, tenant_id: int) -> str | None:
    """Public id of a run that tries that fix and has not ended; None: there is none.

    Until the transaction ends nobody else gets an answer for that finding, so that two who ask at once begin one trial.
    """
    transaction.execute(sa.select(finding.c.id).where(finding.c.public_id == of.finding).with_for_update())
    query = sa.select(run.c.public_id).where(run.c.trial_of == of.finding, run.c.trial_fix == of.fix)
    waiting = query.where(run.c.tenant_id == tenant_id, run.c.status.in_(("queued", "running")))
    return transaction.execute(waiting.order_by(run.c.id).limit(1)).scalar()


def otherwise(transaction: Transaction, key: RunKey, files: Mapping[str, str]) -> str | None:
    """Path of one of these files that the record under a key has with another text, or not at all; None: there is none.

    The places of an edit are those of the text that was compiled. Line ends and a byte order mark do not count.
    """
    kept = transaction.execute(sa.select(record_head.c.sources).where(at_key(record_head, key))).scalar()
    compiled = {row["path"]: row for row in kept or ()}
    for path, text in files.items():
        row = compiled.get(path, {"text": "", "sha256": ""})
        if _plain(row["text"]) != _plain(text) and row["sha256"] != hashlib.sha256(text.encode()).hexdigest():
            return path
    return None


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def trial_facts(
    database: Database, claim: Claim, record: Record | None, judgement: Judgement | None, limit: str | None
) -> dict[str, Any]:
    """Return the columns of a trial's run that hold its verdict; empty if the trial left nothing to judge.

    Args:
        claim: Of a trial.
        limit: Name of the limit that stopped it; None: none did.
    """
    if record is None or judgement is None or claim.trial is None:
        return {}
    after = shown(record, judgement)
    if limit is not None:
        after = replace(after, failure=Failure(what=f"the limit {limit} stopped it"))
    try:
        trial = _verdict(database, claim, after, judgement.ruleset)
    except (SQLAlchemyError, OSError):
        raise  # nothing can be stored either: whoever ends the run asks again
    except Exception as error:  # noqa: BLE001 - the fence around a comparison: the run has ended, whatever happens here
        _log.error("no verdict was made on %s", claim.public_id, exc_info=error)
        trial = Trial(verdict="not-tried", why=f"the comparison failed ({type(error).__name__}); the log says where")
    return {"trial_verdict": trial.verdict, "trial_why": trial.why}


def _verdict(database: Database, claim: Claim, after: Shown, ruleset: str) -> Trial:
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
        rows = _all_of(transaction, first)
        program = program_of(transaction, first) or {}
    fix = _find_tried_fix(row.finding, claim, program)
    if fix is None:
        return Trial(verdict="not-tried", why=JUDGED_AGAIN)
    if {first.findings.ruleset, *(other.ruleset for other in rows)} != {ruleset}:
        return Trial(verdict="not-tried", why=f"{OTHER_RULES}: POST /v1/runs/{first.id}/judge, then try the fix again")
    stored = tuple(other.finding for other in rows)
    before = shown(record, Judgement(findings=stored, rules_judged=0, not_run=(), ruleset=ruleset))
    if first.outcome.limit is not None:
        before = replace(before, failure=Failure(what=f"the limit {first.outcome.limit} stopped it"))
    same = next((other for other in before.findings if other.fingerprint == row.finding.fingerprint), None)
    if same is None:
        return Trial(verdict="not-tried", why=GONE)
    trial = compared(same, fix.edits, before, after)
    unseeded = trial.verdict == "changes-values" and claim.seed is None
    return Trial(verdict="confirmed", why=NO_SEED) if unseeded else trial


def _find_tried_fix(judged: Finding, claim: Claim, program: Mapping[str, str]) -> Fix | None:
    """Return the fix whose edits a trial ran with; None if the finding no longer has it."""
    at = -1 if claim.trial is None else claim.trial.fix
    if not 0 <= at < len(judged.fixes):
        return None
    try:
        files = program_with(program, judged.fixes[at].edits)
    except LookupError:
        return None
    return judged.fixes[at] if files == dict(claim.files) else None


def _all_of(transaction: Transaction, first: RunRow) -> tuple[FindingRow, ...]:
    found: list[FindingRow] = []
    after: int | None = None
    while True:
        page = findings.page(transaction, first, after=after, limit=1000)
        found += page.items
        if page.next is None:
            return tuple(found)
        after = page.next
