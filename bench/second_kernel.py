"""Level `gvisor` against `process`, `namespace` and a cold start, in turn: what a second kernel costs a run.

usage: python -m bench.second_kernel [--pairs 15]
"""

import argparse
import contextlib
import statistics
import time
from pathlib import Path

import psutil

from backprobe.isolation import IsolationLevel
from bench.sandbox import WARM_SECONDS, lockdown, warm
from bench.submit import SNIPPET, cold, milliseconds
from bench.tables import pair_ratios, spread, table, write
from workers.sandbox.levels.capabilities import confinement, lacking
from workers.sandbox.levels.names import Confinement
from workers.sandbox.levels.probe import prove
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.supervisor import Supervisor

LEVELS: tuple[IsolationLevel, ...] = ("process", "namespace", "gvisor")


def boot_seconds(chosen: Confinement) -> float:
    """Until a fresh warm process would take a run."""
    began = time.perf_counter()
    with Supervisor(lambda: exec_zygote("", chosen), confinement=chosen) as supervisor:
        if not supervisor.wait_warm(120):
            raise RuntimeError(f"{chosen.level}: {supervisor.failure}")
        return time.perf_counter() - began


def resident_mebibytes() -> float:
    """Proportional memory of all processes below this one: of a sandbox with its sentry and its gofer."""
    total = 0
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{child.pid}/smaps_rollup").read_text("ascii").split("\n")
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def main() -> None:
    """Measure every level that this machine can give, and write the table."""
    parser = argparse.ArgumentParser(description="Level `gvisor` against the others and a cold start, in turn.")
    parser.add_argument("--pairs", type=int, default=15)
    asked = parser.parse_args()
    source = SNIPPET.read_text("utf-8")
    levels: dict[IsolationLevel, Confinement] = {level: confinement(level) for level in LEVELS if not lacking(level)}
    boots = {level: [boot_seconds(chosen) for _ in range(3)] for level, chosen in levels.items()}
    with contextlib.ExitStack() as stack:
        opened: dict[IsolationLevel, Supervisor] = {}
        memory: dict[IsolationLevel, float] = {}
        for level, chosen in levels.items():
            before = resident_mebibytes()
            boot = Supervisor(lambda chosen=chosen: exec_zygote("", chosen), confinement=chosen)
            opened[level] = stack.enter_context(boot)
            opened[level].wait_warm(120)
            warm(opened[level], source)
            memory[level] = resident_mebibytes() - before
        time.sleep(WARM_SECONDS)
        colds: list[float] = []
        warms: dict[IsolationLevel, list[float]] = {level: [] for level in opened}
        for _ in range(asked.pairs):
            colds.append(milliseconds(cold))
            for level, supervisor in opened.items():
                warms[level].append(milliseconds(lambda supervisor=supervisor: warm(supervisor, source)))
        rows = [
            [
                level,
                f"{statistics.median(boots[level]):.1f}",
                spread(warms[level]),
                f"**{spread(pair_ratios(colds, warms[level]))}**",
                f"{statistics.median(lockdown(supervisor, source)):.0f}",
                f"{prove(supervisor).seconds:.1f}",
                f"{memory[level]:.0f}",
            ]
            for level, supervisor in opened.items()
        ]
    head = [
        "level", "boot of the warm process, s", "submit to findings, ms", "times faster than `python snippet.py`",
        "fork to `go`, ms", "the probe, s", "memory of a warm process, MiB",
    ]  # fmt: skip
    write(
        "second_kernel",
        "A second kernel under the sandbox, in turn with the levels that have none",
        f"Five-line snippet, {asked.pairs} rounds; median (least to most); one run in flight.\n\n{table(head, rows)}",
    )


if __name__ == "__main__":
    main()
