"""Two promises, measured while nothing else breaks: a killed worker's run comes back; a worker cut off lets go in time."""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psutil
import sqlalchemy as sa

from store.admin import workers
from store.tables import run, run_attempt
from tests.chaos.faults import program_of
from tests.chaos.programs import GOOD, Program
from tests.chaos.stack import Besieged
from tests.support.processes import descendants

HOLDS = "mark = open('mark-{n}', 'w')\nimport os, time\nwhile not os.path.exists({flag!r}): time.sleep(0.05)\n" + GOOD
FIRST = 1_000_000
"""Numbers of the programs here, apart from the others'."""


@dataclass
class Measured:
    """What was seen.

    Attributes:
        again_seconds: From the kill of a worker to its run running again.
        before_lease_seconds: How long before the lease's end the child of a worker that was cut off was gone.
    """

    lease_seconds: float
    programs: list[Program] = field(default_factory=list)
    again_seconds: list[float] = field(default_factory=list)
    before_lease_seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def measure(stack: Besieged, *, small: bool) -> Measured:
    """Both promises, on a stack whose workers and reaper have just been started."""
    measured = Measured(lease_seconds=stack.lease_seconds)
    for n in range(1 if small else 3):
        stack.wait(lambda: _idle_slots(stack) >= 4, "two workers that offer their slots")
        _killed(stack, measured, FIRST + n)
    for n in range(0 if small else 2):  # tests/workers/test_lease.py has a test that cuts one off
        stack.wait(lambda: _idle_slots(stack) >= 2, "a worker that offers its slots")
        _cut_off(stack, measured, FIRST + 100 + n, silent=bool(n % 2))
    return measured


def _idle_slots(stack: Besieged) -> int:
    """Of workers that live: the rows of those that were killed stay for a minute."""
    alive = {str(worker.pid) for worker in stack.workers}
    with stack.database.read() as reading:
        nodes = [node for node in workers.live(reading) if node.id.split(":")[1] in alive and node.devices]
    return sum(node.slots - node.busy for node in nodes)


def _started(
    stack: Besieged, measured: Measured, number: int
) -> tuple[psutil.Process, psutil.Popen, Callable[[], None]]:
    """A program at work until the last of these is called: its process, and the worker above it."""
    flag = stack.folder / f"flag-{number}"
    source = HOLDS.format(n=number, flag=str(flag))
    program = Program(number, "held", source, "succeeded", f"[{2.0 * number}, 2.0]\n")
    measured.programs.append(program)
    stack.submit_all([program])
    stack.wake()
    child, worker = stack.wait(lambda: _find_process(stack, number), f"program {number} at work")
    return child, worker, flag.touch


def _find_process(stack: Besieged, number: int) -> tuple[psutil.Process, psutil.Popen] | None:
    for worker in stack.workers:
        for descendant in descendants(worker):
            if program_of(descendant) == number:
                return descendant, worker
    return None


def _attempts(stack: Besieged, number: int) -> int:
    query = sa.select(sa.func.count()).select_from(run_attempt.join(run, run.c.id == run_attempt.c.run_id))
    return int(stack.all(query.where(run.c.public_id == stack.ids[number]))[0][0])


def _has_ended(stack: Besieged, number: int) -> bool:
    return bool(stack.all(sa.select(run.c.finished_at).where(run.c.public_id == stack.ids[number]))[0][0])


def _killed(stack: Besieged, measured: Measured, number: int) -> None:
    _, worker, let_go = _started(stack, measured, number)
    before = _attempts(stack, number)
    stack.kill(worker)
    began = time.monotonic()
    stack.wait(lambda: _attempts(stack, number) > before, "the killed worker's run is running again")
    measured.again_seconds.append(time.monotonic() - began)
    let_go()
    stack.start_worker()
    stack.wait(lambda: _has_ended(stack, number), "its end")


def _cut_off(stack: Besieged, measured: Measured, number: int, *, silent: bool) -> None:
    child, _, let_go = _started(stack, measured, number)
    fix = _cut(stack, silent=silent)
    stack.wait(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, "the end of the child")
    measured.before_lease_seconds.append(_lease_left(stack, number))
    stack.wait(lambda: _lease_left(stack, number) < -1.0, "the end of the lease")
    let_go()
    if _has_ended(stack, number) or _attempts(stack, number) != 1:
        measured.wrong.append(f"program {number}: something was written while nobody could write")
    fix()
    stack.wait(lambda: _has_ended(stack, number), "its end by another attempt")
    if _attempts(stack, number) < 2:
        measured.wrong.append(f"program {number}: a worker that was cut off longer than its lease ended its run")


def _cut(stack: Besieged, *, silent: bool) -> Callable[[], None]:
    if stack.to_database is not None:
        stack.to_database.cut(silent=silent)
        return stack.to_database.fix
    held = sqlite3.connect(stack.database.url.database or "", timeout=30)
    held.isolation_level = None
    held.execute("BEGIN IMMEDIATE")  # nobody else can write: no heartbeat, no claim

    def let_go() -> None:
        held.execute("ROLLBACK")
        held.close()

    return let_go


_LEFT = {
    "sqlite": "select (julianday(lease_until) - julianday('now')) * 86400.0 from run where public_id = :id",
    "postgresql": "select extract(epoch from lease_until - clock_timestamp()) from run where public_id = :id",
}


def _lease_left(stack: Besieged, number: int) -> float:
    dialect = "sqlite" if stack.sqlite else "postgresql"
    return float(stack.all(sa.text(_LEFT[dialect]).bindparams(id=stack.ids[number]))[0][0])
