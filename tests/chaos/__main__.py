"""An audit while everything around it breaks; prints a table and ends with 1 if anything was lost, doubled or wrong.

    python -m tests.chaos [--runs 2000] [--stacks embedded,redis,rabbitmq] [--small] [--seed 1]

Each stack: three workers, one of them with a clock 90 s wrong, and a reaper. `--small` uses the servers that run
already, named by BACKPROBE_TEST_POSTGRES, _REDIS and _RABBITMQ, and restarts none of them; without it each stack has
separate servers on a small file system, which is filled for a while (that takes root).
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.faults import Faults
from tests.chaos.measured import Measured, measure
from tests.chaos.programs import Program, program
from tests.chaos.servers import Postgres, RabbitMQ, Redis, Server
from tests.chaos.stack import Besieged
from tests.chaos.verdict import Verdict, judge

STACKS = {"embedded": "SQLite + embedded", "redis": "PostgreSQL + Redis", "rabbitmq": "PostgreSQL + RabbitMQ"}
BATCH = 20
WORKERS = 3
DISK_MIB = 320
CLOCK_SECONDS = 90
STUCK_SECONDS = 240.0
"""Without any run ending for so long, with nothing broken any more: something is lost."""


@dataclass
class Result:
    """One stack's row of the table."""

    name: str
    runs: int
    seconds: float
    faults: Faults
    verdict: Verdict
    measured: Measured
    wakes: dict[str, int] = field(default_factory=dict)


def main() -> int:
    arguments = _arguments()
    if not arguments.small and os.getuid() == 0 and "CHAOS_APART" not in os.environ:
        # a mount namespace of our own: what is mounted is gone with us
        apart = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.chaos", *sys.argv[1:]]
        return subprocess.run(apart, env=os.environ | {"CHAOS_APART": "1"}, check=False).returncode
    random.seed(arguments.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # so that what was started is ended
    results = []
    for name in arguments.stacks.split(","):
        results.append(_under_chaos(name, arguments))
        print(_row(results[-1]), flush=True)
    print("\n".join(["", *_table(results)]))
    return int(any(result.verdict.wrong for result in results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000, help="per stack")
    parser.add_argument("--stacks", default=",".join(STACKS))
    parser.add_argument("--small", action="store_true", help="short faults, on servers that run already")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and database")
    return parser.parse_args()


@contextlib.contextmanager
def _place(arguments: argparse.Namespace) -> Iterator[tuple[Path, Path | None]]:
    """A folder for the stack, and the small file system in it that may be filled; None: there is none."""
    folder = Path(tempfile.mkdtemp(prefix="backprobe-chaos-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user
    disk = None
    if "CHAOS_APART" in os.environ:
        disk = folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=755", "tmpfs", disk], check=True)
    try:
        yield folder, disk
    finally:
        if disk is not None:
            subprocess.run(["umount", "--lazy", disk], check=False)
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _wrong_clock(folder: Path) -> dict[str, str]:
    library = folder / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "CHAOS_CLOCK_SECONDS": str(CLOCK_SECONDS)}


def _urls(name: str, servers: dict[str, Server]) -> tuple[str | None, str | None]:
    if name == "embedded":
        return None, None
    if not servers:
        broker = "BACKPROBE_TEST_REDIS" if name == "redis" else "BACKPROBE_TEST_RABBITMQ"
        return os.environ["BACKPROBE_TEST_POSTGRES"], os.environ[broker]
    return tuple(server.url for server in servers.values())  # type: ignore[return-value]  # two servers, in this order


def _under_chaos(name: str, arguments: argparse.Namespace) -> Result:
    with _place(arguments) as (folder, disk):
        servers: dict[str, Server] = {}
        data = disk or folder
        if name != "embedded" and not arguments.small:
            servers["PostgreSQL"] = Postgres(data / "postgres")
            kind = Redis if name == "redis" else RabbitMQ
            servers[kind.__name__] = kind(folder / "broker")
        database_url, broker_url = _urls(name, servers)
        home = data / "stack"
        home.mkdir()
        stack = Besieged(
            name=STACKS[name],
            folder=home,
            database_url=database_url,
            broker_url=broker_url,
            lease_seconds=3.0 if arguments.small else 6.0,
            servers=servers,
            wrong_clock=_wrong_clock(folder),
        )
        try:
            return _run(stack, disk, arguments)
        finally:
            stack.close()
            if arguments.keep:
                shutil.copytree(home, folder / "kept", ignore=shutil.ignore_patterns("*.db*"), dirs_exist_ok=True)


def _run(stack: Besieged, disk: Path | None, arguments: argparse.Namespace) -> Result:
    stack.start_reaper()
    for n in range(WORKERS):
        stack.start_worker(wrong=n == 0)
    measured = measure(stack, small=arguments.small)
    faults = Faults(stack=stack, most_seconds=2.0 if arguments.small else 30.0, disk=disk)
    stack.meanwhile = faults.turn
    programs = [program(number, poison=not arguments.small) for number in range(arguments.runs)]
    began = time.monotonic()
    wakes = _storm(stack, faults, programs, pause=2.0 if arguments.small else 5.0)
    seconds = time.monotonic() - began
    stack.close_audit()
    faults.end()
    _calm(stack, faults)
    verdict = judge(stack, [*programs, *measured.programs], faults.killed_children)
    verdict.wrong += measured.wrong
    for line in verdict.wrong[:20]:
        print(f"  {stack.name}: {line}", flush=True)
    return Result(stack.name, len(programs), seconds, faults, verdict, measured, wakes)


def _storm(stack: Besieged, faults: Faults, programs: list[Program], pause: float) -> dict[str, int]:
    """Submit in batches, drop half of the wake-ups and double a third, and break something every `pause` seconds."""
    wakes = {"sent": 0, "dropped": 0, "doubled": 0}
    waiting, next_fault = list(programs), time.monotonic() + 1.0
    cancel: list[int] = []
    left, moved_at = -1, time.monotonic()
    while True:
        if waiting and stack.count_left() < 3 * BATCH:
            batch, waiting = waiting[:BATCH], waiting[BATCH:]
            stack.submit_all(batch)
            cancel += [row.number for row in batch if row.may_cancel]
            _wake(stack, wakes)
        if cancel and random.random() < 0.3:
            stack.cancel(cancel.pop(random.randrange(len(cancel))))
        if time.monotonic() >= next_fault:
            faults.begin_one()
            next_fault = time.monotonic() + random.uniform(0.2, 2.0) * pause
        faults.turn()
        now = stack.count_left()
        if not waiting and not now:
            return wakes
        if now != left:
            left, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > STUCK_SECONDS:
            print(f"  {stack.name}: {left} runs have not ended, and nothing moves", flush=True)
            return wakes
        time.sleep(0.05)


def _wake(stack: Besieged, wakes: dict[str, int]) -> None:
    if random.random() < 0.5:
        wakes["dropped"] += 1
        return
    times = 2 if random.random() < 0.3 else 1
    wakes["doubled"] += times - 1
    wakes["sent"] += sum(stack.wake() for _ in range(times))


def _calm(stack: Besieged, faults: Faults) -> None:
    """Everything is mended; what is left must end, and the audit of it all."""
    deadline = time.monotonic() + STUCK_SECONDS
    while (stack.count_left() or not stack.is_judged()) and time.monotonic() < deadline:
        faults.turn()
        time.sleep(0.2)


def _row(result: Result) -> str:
    verdict = "nothing lost, nothing doubled" if not result.verdict.wrong else f"{len(result.verdict.wrong)} WRONG"
    statuses = ", ".join(f"{n} {status}" for status, n in sorted(result.verdict.statuses.items()))
    return f"{result.name}: {result.runs} runs in {result.seconds:.0f} s ({statuses}): {verdict}"


def _table(results: list[Result]) -> list[str]:
    head = [
        "stack",
        "runs",
        "s",
        "ended",
        "attempts (most)",
        "faults",
        "wake-ups",
        "killed to running, s",
        "cut off, child gone before its lease, s",
        "wrong",
    ]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for result in results:
        told = result.measured
        cells = [
            result.name,
            result.runs,
            f"{result.seconds:.0f}",
            ", ".join(f"{n} {status}" for status, n in sorted(result.verdict.statuses.items())),
            f"{result.verdict.attempts} ({result.verdict.most_attempts})",
            ", ".join(f"{n} {what}" for what, n in sorted(result.faults.counts.items())),
            ", ".join(f"{n} {what}" for what, n in result.wakes.items()),
            f"{max(told.again_seconds):.1f} of {told.lease_seconds + 2.0:.0f}" if told.again_seconds else "-",
            f"{min(told.before_lease_seconds):.1f}" if told.before_lease_seconds else "-",
            len(result.verdict.wrong),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, "", f"Load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."]


if __name__ == "__main__":
    sys.exit(main())
