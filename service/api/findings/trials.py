"""Trials of a finding's fixes: begun and listed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backprobe.rules.edits.text_edits import program_with
from service.api.findings.finding_json import finding_of, trial_json
from service.api.records.record import NoQuery
from service.api.runs.isolation_offer import WorkerRequirements, choose_level
from service.api.runs.run_json import require_record, run_of
from service.api.runs.submission import build_rerun, told_run
from service.auth.caller import caller
from service.context import context
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.program_checks import Snippet
from service.schemas.requests import RerunAsked, TrialAsked
from service.schemas.responses.findings import TrialList
from service.schemas.responses.runs import RunTold
from service.web.body import body, query
from service.web.idempotency import storing
from service.web.parameters import Included
from service.web.reply import json_reply
from store.findings import trials
from store.runs import lifecycle
from store.runs.trial import TrialOf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flask import Response

    from backprobe.rules import Fix
    from store.database.session import Transaction
    from store.findings.findings import FindingRow
    from store.runs.model import Queue, Submission

blueprint = Operations("trials", __name__, tag="Findings")


@blueprint.get("/v1/findings/<finding>/trials")
@query(NoQuery)
@answers({200: Answer(text="The newest 20.", model=TrialList)})
def list_trials(finding: str) -> Response:
    """The newest 20 trials of a finding's fixes, the newest first. A verdict is null until its run has ended."""
    with context().database.read() as transaction:
        row = finding_of(transaction, finding)
        found = trials.of_findings(transaction, [row.id], tenant_id=caller().tenant_id)
    return json_reply({"items": [trial_json(trial) for trial in found.get(row.id, ())], "next_cursor": None})


@blueprint.post("/v1/findings/<finding>/trials")
@body(TrialAsked, optional=True)
@query(Included)
@answers(
    {
        202: Answer(text="A trial is queued; Location has it.", model=RunTold, headers=("Location", "Retry-After")),
        200: Answer(text="Ended while waited for.", model=RunTold, headers=("Location", "Preference-Applied", "ETag")),
    },
    problems=("not-found", "source-not-kept", "record-expired", "isolation-unavailable", "queue-full", *STORING, *ONCE),
    headers=("Prefer", "Idempotency-Key", "traceparent"),
    scope="runs:write",
    rate="submits",
)
def try_fix(finding: str, body: TrialAsked, query: Included) -> Response:
    """Run the finding's program again with one of its fixes in it; the run's `trial` has the verdict when it has ended.

    Everything else is as it was: arguments, seed, limits, capture, rules. Lists of runs leave trials out but for
    `origin=trial`. While a trial of the fix is queued or running, its run is the answer, and no other is begun.
    """
    shared = context()
    queue: Queue | None = None
    with storing() as write:
        if write.known is None:
            row = finding_of(write.transaction, finding)
            number, fix = _fix(row, body.fix)
            of = TrialOf(finding=row.id, fix=number)
            going = trials.going(write.transaction, of, tenant_id=caller().tenant_id)
            if going is None:
                trial = _submission(write.transaction, row, of, fix)
                shared.backlog.demand(write.transaction, trial.queue, tenant_id=caller().sharing)
                going = lifecycle.enqueue(write.transaction, trial).id
                queue = trial.queue
            new = going
            write.done("finding.try", new, run=new, detail={"of": row.id})
        else:
            new = str(write.known.run)
    if queue is not None:
        shared.wakeups.publish(queue)
    return told_run(new, query.include, write.headers)


def _submission(transaction: Transaction, row: FindingRow, of: TrialOf, fix: Fix) -> Submission:
    first = require_record(run_of(transaction, row.run))
    files = lifecycle.program_of(transaction, first)
    if files is None or first.entry is None or first.key is None:
        raise Problem("source-not-kept", f"The program of run {first.id} was not stored, or was deleted.")
    texts = _program_with(files, fix)
    its = {path: files[path] for path in {edit.path for edit in fix.edits}}
    if (path := trials.otherwise(transaction, first.key, its)) is not None:
        detail = f"Run {first.id} compiled another text of {path[:200]} than the program has that was sent."
        raise Problem("source-not-kept", f"{detail} The fix does not fit it.")
    again = build_rerun(RerunAsked(), first, texts)
    Snippet(files=texts, entry=again.entry, pointers=dict.fromkeys(texts, "#")).check_room(again.limits.disk_bytes)
    wanted = WorkerRequirements(
        queue=again.queue,
        device="cuda" if again.queue == "gpu" else "cpu",
        isolation=again.min_isolation,
        processes=None,
        disk_bytes=None,
        limits=again.limits,
        device_class=again.device_class,
    )
    least = choose_level(transaction, wanted)
    return replace(again, min_isolation=least, rerun_of=None, trial=of)


def _fix(row: FindingRow, number: int | None) -> tuple[int, Fix]:
    """Return the fix that is to be tried.

    Raises:
        Problem: `invalid-request`: there is none, or it is advice, or the finding is no finding any more.
    """
    if row.gone is not None:
        detail = f"Newer rules no longer make finding {row.id}: a trial could not confirm a fix."
        raise Problem(
            "invalid-request", detail, places=(Place(detail=detail, code="finding-gone", parameter="finding"),)
        )
    if row.finding.suppressed is not None:
        detail = f"A comment suppresses finding {row.id}: take the comment away and run the program again."
        raise Problem(
            "invalid-request", detail, places=(Place(detail=detail, code="finding-suppressed", parameter="finding"),)
        )
    fixes = row.finding.fixes
    with_edits = [at for at, fix in enumerate(fixes) if fix.edits]
    at = number if number is not None else (with_edits[0] if with_edits else None)
    if at in with_edits:
        return at, fixes[at]
    detail = f"Finding {row.id} has {len(with_edits)} of {len(fixes)} fixes with edits" + (
        f": {', '.join(map(str, with_edits))}." if with_edits else "."
    )
    raise Problem("invalid-request", detail, places=(Place(pointer="#/fix", code="no-such-fix", detail=detail),))


def _program_with(files: Mapping[str, str], fix: Fix) -> dict[str, str]:
    try:
        return program_with(files, fix.edits)
    except IndexError:
        raise Problem(
            "source-not-kept", "The program that was sent is too short: the fix changes a line after its end."
        ) from None
    except KeyError as missing:
        detail = f"The file {missing.args[0][:200]} that the fix changes is none of the program's."
        raise Problem("source-not-kept", detail) from None
