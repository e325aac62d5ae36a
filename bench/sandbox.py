"""Submit to findings inside the worker, without HTTP or database, per level, against `python snippet.py`; in turn.

usage: python -m bench.sandbox [--pairs 15] [--sustained 100]

Besides the pairs: what the lockdown takes of a run, memory that a child has to itself, runs per second of CPU time, and
how soon a fresh worker gives its first findings.
"""

import argparse
import contextlib
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from backprobe.isolation import IsolationLevel
from bench.submit import SNIPPET, cold, milliseconds
from bench.tables import pair_ratios, spread, table, write
from store.runs.limits import Limits
from workers import pipeline
from workers.sandbox.levels.capabilities import confinement, lacking
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

LEVELS: tuple[IsolationLevel, ...] = ("none", "process", "namespace")
WARM_SECONDS = 25.0
"""What the warm process goes on to load in its pauses takes some seconds on a busy machine; then it is fully warm."""

HELD = "\nimport time\nprint('held', flush=True)\ntime.sleep(3)\n"
LOCKED = 30


def job(source: str) -> Job:
    """The snippet, with nowhere to write: what every level can give."""
    return Job(files={"main.py": source}, entry="main.py", limits=Limits(disk_bytes=0))


def warm(supervisor: Supervisor, source: str) -> None:
    """One run to its findings."""
    result = pipeline.run(supervisor, job(source))
    if result.outcome.status != "succeeded" or result.judgement is None:
        raise RuntimeError(f"{result.outcome.status}: {result.outcome.facts.stderr[-500:]!r}")


@contextlib.contextmanager
def open_supervisor(level: IsolationLevel, *, ahead: bool = True) -> Iterator[Supervisor]:
    """A supervisor with a warm process at a level; without children ahead, a run takes all that it takes."""
    chosen = confinement(level)
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen, ahead=ahead) as supervisor:
        if not supervisor.wait_warm(120):
            raise RuntimeError(f"{level}: {supervisor.failure}")
        yield supervisor


def lockdown(supervisor: Supervisor, source: str) -> list[float]:
    """Milliseconds from the order to fork to `go`, as the supervisor sees them."""
    found: list[float] = []
    watch = supervisor._watch  # noqa: SLF001 - the clocks of an attempt are nobody else's
    usual = watch.submit
    attempts = []

    def submit(attempt) -> None:  # noqa: ANN001 an Attempt
        attempts.append(attempt)
        usual(attempt)

    watch.submit = submit
    try:
        for _ in range(LOCKED):
            warm(supervisor, source)
            found.append((attempts[-1].gone_at - attempts[-1].started_at) * 1e3)
    finally:
        watch.submit = usual
    return found


def unique_memory(supervisor: Supervisor, source: str) -> float:
    """MiB that one child has to itself after the snippet: its private pages."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    run = threading.Thread(target=supervisor.run, args=(job(source + HELD),))
    run.start()
    most = 0.0
    while run.is_alive():
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                if child.pid not in before:
                    most = max(most, _private(child.pid))
        time.sleep(0.1)  # between two looks
    return most


def _private(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def cpu_seconds() -> float:
    """CPU time of this process and of all children that have ended, whoever reaped them, and of those that live."""
    spent = psutil.Process().cpu_times()
    total = spent.user + spent.system
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            own = child.cpu_times()
            total += own.user + own.system + own.children_user + own.children_system
    return total


def sustained(supervisor: Supervisor, source: str, runs: int) -> tuple[float, float]:
    """Runs per CPU second, records and judgements included, and per second by the clock, two in flight."""
    warm(supervisor, source)
    began, spent = time.perf_counter(), cpu_seconds()
    threads = [threading.Thread(target=lambda: [warm(supervisor, source) for _ in range(runs // 2)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return runs / (cpu_seconds() - spent), runs / (time.perf_counter() - began)


def measure(level: IsolationLevel, source: str, pairs: int, runs: int) -> list[object]:
    """One row of the table."""
    began = time.perf_counter()
    with open_supervisor(level) as supervisor:
        warm(supervisor, source)
        first = time.perf_counter() - began
        cold()
        deadline = time.monotonic() + WARM_SECONDS
        while time.monotonic() < deadline:
            time.sleep(2.0)  # a pause, in which it goes on warming up
        warm(supervisor, source)
        with open_supervisor(level, ahead=False) as plain:
            warm(plain, source)
            time.sleep(WARM_SECONDS)
            warm(plain, source)
            colds, warms, alone = [], [], []
            for _ in range(pairs):
                colds.append(milliseconds(cold))
                warms.append(milliseconds(lambda: warm(supervisor, source)))
                alone.append(milliseconds(lambda: warm(plain, source)))
            locked, own = statistics.median(lockdown(plain, source)), unique_memory(plain, source)
        by_cpu, by_clock = sustained(supervisor, source, runs)
        return [
            level,
            spread(warms),
            f"**{spread(pair_ratios(colds, warms))}**",
            spread(alone),
            f"{locked:.1f}",
            f"{own:.1f}",
            f"{by_cpu:.0f}",
            f"{by_clock:.0f}",
            f"{first * 1e3 / statistics.median(colds):.1f}",
        ]


def main() -> None:
    """Measure every level that this machine can give, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--sustained", type=int, default=100)
    asked = parser.parse_args()
    source = SNIPPET.read_text("utf-8")
    rows = [measure(level, source, asked.pairs, asked.sustained) for level in LEVELS if not lacking(level)]
    head = [
        "level", "submit to findings, ms", "times faster than `python snippet.py`, by pairs",
        "with no child made ahead, ms", "its fork to `go`, ms",
        "private memory, MiB", "runs per CPU second", "runs per second by the clock",
        "first run of a fresh worker, in cold starts",
    ]  # fmt: skip
    write(
        "sandbox",
        "The sandbox, without HTTP and database, against a cold start",
        f"Five-line snippet, {asked.pairs} pairs a level; median (least to most).\n\n{table(head, rows)}",
    )


if __name__ == "__main__":
    main()
