"""Submit to findings over HTTP, warm, against `python snippet.py` cold: the same snippet, in turn.

usage: python -m bench.submit [--pairs 15] [--rounds 3] [--pause 1]

A pair is one cold run of the interpreter and one POST /v1/runs with `Prefer: wait` and `include=findings`, over a
connection that stays open: one request, answered by the ended run with its findings. Which of the two comes first
alternates, and before each of them a second passes: the machine is idle, as whoever submits one snippet finds it, and a
worker has made its next child (docs/adr/0018). `--pause 0` is one after the other: every second run then comes before
there is a child.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.service import Service, serving, stores
from bench.tables import pair_ratios, spread, table, write

SNIPPET = Path(__file__).parent / "programs" / "five_lines.py"
WARM_UPS = 5
WARM_SECONDS = 25.0
"""What the warm process goes on to load in its pauses takes some seconds; only then it makes children ahead."""


def cold() -> None:
    """One `python snippet.py`."""
    subprocess.run([sys.executable, str(SNIPPET)], check=True, stdout=subprocess.DEVNULL)


def warm(service: Service, source: str) -> None:
    """One run to its findings."""
    run = service.run(source, include="findings")
    if run["findings"]["rules_judged"] == 0 or run["included"]["findings"] is None:
        raise RuntimeError(f"{run['id']} came without its findings")


def milliseconds(measured: Callable[[], None]) -> float:
    """Wall time of one call, in ms."""
    started = time.perf_counter()
    measured()
    return (time.perf_counter() - started) * 1e3


def measure(stack: str, pairs: int, pause: float) -> tuple[list[float], list[float]]:
    """Cold and warm milliseconds, pair by pair."""
    source = SNIPPET.read_text()
    colds, warms = [], []

    def after_pause(measured: Callable[[], None]) -> float:
        time.sleep(pause)
        return milliseconds(measured)

    with stores(stack) as environment, serving(environment) as service:
        cold()
        for _ in range(WARM_UPS):
            warm(service, source)
        time.sleep(WARM_SECONDS)
        for number in range(pairs):
            if number % 2:
                warms.append(after_pause(lambda: warm(service, source)))
            colds.append(after_pause(cold))
            if not number % 2:
                warms.append(after_pause(lambda: warm(service, source)))
    return colds, warms


def main() -> None:
    """Measure both stacks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3, help="fresh services per stack")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds before each")
    parser.add_argument("--stacks", default="embedded,PostgreSQL + Redis")
    asked = parser.parse_args()
    rows = []
    for stack in asked.stacks.split(","):
        for number in range(asked.rounds):
            colds, warms = measure(stack, asked.pairs, asked.pause)
            ratios = pair_ratios(colds, warms)
            rows.append([stack, number + 1, spread(colds, "{:.0f}"), spread(warms), f"**{spread(ratios)}**"])
    head = ["stack", "round", "`python snippet.py`, ms", "submit to findings, ms", "times faster, by pairs"]
    how = f"{asked.pairs} pairs a round, {asked.pause:g} s before each run"
    body = f"Five-line snippet, {how}; median (least to most).\n\n{table(head, rows)}"
    write("submit", "Submit to findings against a cold start", body)


if __name__ == "__main__":
    main()
