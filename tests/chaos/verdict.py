"""What must be true when the chaos is over: each run ended once, rightly, whole; nothing of a dead attempt is left; and the
audit of them all has each of them once, and one verdict.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from store import queries
from store.audits import audits, items
from store.audits.policy import rules_of
from store.records import storage
from store.records.expiry.sweep import RECORD_TABLES
from store.runs import lifecycle
from store.runs.model import ENDED
from store.tables import finding, run, run_attempt, run_event
from tests.chaos.programs import SNAPSHOTS_LEAST, TENSORS, Program
from tests.chaos.stack import Besieged


@dataclass
class Verdict:
    """How it ended.

    Attributes:
        statuses: Runs by status. attempts: made in all. wrong: one line for each thing that is not as it must be.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    most_attempts: int = 0
    wrong: list[str] = field(default_factory=list)


def judge(stack: Besieged, programs: Iterable[Program], killed_children: set[int]) -> Verdict:
    """Look at every run and every row."""
    verdict = Verdict()
    with stack.database.read() as reading:
        ends = Counter(
            row.run_id
            for row in reading.execute(
                sa.select(run_event.c.run_id, run_event.c.payload).where(run_event.c.kind == "status")
            )
            if row.payload.get("status") in ENDED
        )
        attempts = defaultdict(list)
        for row in reading.execute(sa.select(run_attempt).order_by(run_attempt.c.run_id, run_attempt.c.attempt)):
            attempts[row.run_id].append(row)
        for program in programs:
            row = lifecycle.get(reading, stack.ids[program.number])
            wrong = [] if row is not None else ["it is gone"]
            if row is not None:
                verdict.statuses[row.status] += 1
                verdict.attempts += row.attempt
                verdict.most_attempts = max(verdict.most_attempts, row.attempt)
                wrong += _of_end(program, row, program.number in killed_children)
                wrong += _of_record(reading, program, row)
                wrong += _of_books(row, ends[row.run_id], attempts[row.run_id])
            verdict.wrong += [
                f"{program.kind} {program.number} ({stack.ids[program.number]}): {what}" for what in wrong
            ]
        verdict.wrong += _of_dead_attempts(reading)
        verdict.wrong += [f"audit: {what}" for what in _of_audit(reading, stack)]
    return verdict


def _of_end(program: Program, row: lifecycle.RunRow, was_killed: bool) -> list[str]:
    at_none = row.status == "failed" and row.outcome.signal == 9
    used_up = row.status == "lost" and row.attempt == row.max_attempts
    by_us = was_killed and (at_none or used_up)
    canceled = program.may_cancel and row.status == "canceled" and row.cancel_requested_at is not None
    if row.status != program.status and not by_us and not canceled:
        error = row.error
        return [f"{row.status}, not {program.status}: {error and (error.code, error.type, error.message[:80])}"]
    if row.status == "lost" and (row.error is None or row.error.whose != "ours" or not row.error.message):
        return ["lost without a reason"]
    return []


def _of_record(reading: Any, program: Program, row: lifecycle.RunRow) -> list[str]:
    """The record of a run that succeeded holds what its program did, row for row."""
    if row.status != "succeeded":
        return []
    record = None if row.key is None else storage.load(reading, row.key)
    if record is None:
        return ["it succeeded and has no record"]
    leaf = [value for value in record.small_values if value.of == "grad" and value.shape == (2,)]
    grads = {value.elements for value in leaf}
    stdout = queries.streams(reading, row).stdout.tail
    wrong = []
    if (len(record.tensors), row.record.state) != (TENSORS, "whole"):
        wrong.append(f"{len(record.tensors)} tensors, {row.record.state}")
    if not SNAPSHOTS_LEAST <= len(record.snapshots) == row.record.snapshots:
        wrong.append(f"{len(record.snapshots)} snapshots, told {row.record.snapshots}")
    if _grad(program.number) not in grads:
        wrong.append("the leaf's gradient is not the known one")
    if stdout != program.printed:
        wrong.append(f"printed {stdout!r}")
    return wrong


def _grad(number: int) -> bytes:
    return struct.pack("<2f", 2.0 * number, 2.0)


def _of_books(row: lifecycle.RunRow, ends: int, attempts: list[Any]) -> list[str]:
    wrong = []
    if ends != 1:
        wrong.append(f"it ended {ends} times")
    if [attempt.attempt for attempt in attempts] != list(range(1, row.attempt + 1)):
        wrong.append(f"attempts {[attempt.attempt for attempt in attempts]} of {row.attempt}")
    if any(attempt.ended_at is None for attempt in attempts):
        wrong.append("an attempt never ended")
    finished = sum(attempt.outcome == "finished" for attempt in attempts)
    if finished != (row.record.attempt is not None or row.outcome.wall_seconds is not None):
        wrong.append(f"{finished} attempts finished it")
    return wrong


def _of_audit(reading: Any, stack: Besieged) -> list[str]:
    """The audit is whole: each program is one item, every item has ended, and the verdict counts what items say."""
    found = None if stack.audit is None else audits.get(reading, stack.audit)
    if found is None:
        return ["it is gone"]
    rows = []
    while len(rows) < found.items:
        page = items.page(reading, found, rules_of(None), frozenset(), after=rows[-1].n if rows else -1)
        if not page:
            break
        rows += page
    wrong = []
    if sorted(row.run or "" for row in rows) != sorted(stack.ids.values()):
        wrong.append(f"{len(rows)} items of {found.items} told, and {len(stack.ids)} runs")
    if found.status != "judged" or found.running:
        wrong.append(f"{found.status}, {found.running} items have not ended")
    if len(found.verdicts) != 1:
        wrong.append(f"{len(found.verdicts)} verdicts")
    counted = Counter(row.verdict for row in rows)
    for verdict in found.verdicts:
        told = {word: count for word, count in verdict.counts["items"].items() if count}
        if told != counted:
            wrong.append(f"the verdict counts {told}, its items are {dict(counted)}")
    return wrong


def _of_dead_attempts(reading: Any) -> list[str]:
    """No row is left of an attempt other than the one that ended its run."""
    wrong = []
    for table in (*RECORD_TABLES, finding):
        if "run_id" not in table.c or "attempt" not in table.c:
            continue
        dead = sa.select(sa.func.count()).select_from(table.join(run, run.c.id == table.c.run_id))
        dead = dead.where(sa.or_(run.c.result_attempt.is_(None), run.c.result_attempt != table.c.attempt))
        number = reading.execute(dead).scalar_one()
        if number:
            wrong.append(f"{table.name}: {number} rows of dead attempts")
    return wrong
