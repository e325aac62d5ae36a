"""The whole oracle: thousands of generated programs, each recorded and compared with what torch itself says.

    python -m tests.oracle.campaign --programs 10000

Chunks are drawn with their own number as the seed, so that every run has the same programs. Each chunk done leaves a
line in the ledger; a run that is started again goes on behind it. A difference is printed with its program made small.
"""

from __future__ import annotations

import argparse
import collections
import gc
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from backprobe.capture import Options, run_source
from backprobe.record import Record
from backprobe.record.record import Tier
from tests.oracle import words
from tests.oracle.compare import differences, kinds
from tests.oracle.programs import assembled, programs
from tests.oracle.shrink import shrunk
from tests.oracle.truth import fresh_torch, truth

CHUNK: Final = 125
TIERS: Final[tuple[Tier, ...]] = ("full", "full", "full", "grad", "state")
"""What programs are recorded at, in turn."""


def draw_programs(chunk: int, count: int) -> list[str]:
    """The programs of a chunk, each once."""
    found: dict[str, None] = {}

    @seed(chunk)
    @settings(
        max_examples=count + count // 4, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(programs())
    def draw(program: str) -> None:
        if len(found) < count:
            found[program] = None

    try:
        draw()
    except Exception as error:  # hypothesis may find no more new ones
        print(f"chunk {chunk}: {type(error).__name__}: {error}", file=sys.stderr)
    return list(found)


def recorded(source: str, tier: Tier) -> Record:
    """The record of a program."""
    with fresh_torch():
        return run_source(source, options=Options(seed=0, tier=tier))


def found_in(source: str, tier: Tier) -> list[str]:
    """The differences of a program; the nodes' lines are asked of every third."""
    try:
        traced = truth(source, traced=True) if tier == "full" and len(source) % 3 == 0 else None
        return differences(recorded(source, tier), truth(source), source, traced)
    except Exception:
        return [f"broken: {traceback.format_exc()}"]


def warmed() -> None:
    """Everything that torch does once only has been done: its first times leave frames and modules behind."""
    torch.set_num_threads(1)
    start = ["a = torch.ones(2, 2, requires_grad=True)", "b = a * 2", "c = b.exp()", "d = e = c * 2"]
    for net in words.NETS:
        body: list[str] = []
        for group, form in (
            (words.CALLS, "d = {}"),
            (words.GRADS, "d = {}"),
            (words.OTHER, "{}"),
            (words.BACKWARD, "{}"),
        ):
            for word in group:
                text = form.format(word.format(x="a", y="b", z="c", flag=True))
                body += ["try:", f"    {text}", "except Exception:", "    pass", start[0]]
        source = assembled(start, body, net, words.OPTIMIZERS[1])
        truth(source)
        recorded(source, "full")
    gc.collect()
    gc.freeze()


def survey(chunk: int, count: int) -> dict[str, Any]:
    """One chunk: how many programs, how many differ, and the smallest of each kind of difference."""
    started, tally, worst = time.process_time(), collections.Counter[str](), dict[str, tuple[str, Tier]]()
    sources = draw_programs(chunk, count)
    for index, source in enumerate(sources):
        tier = TIERS[index % len(TIERS)]
        found = found_in(source, tier)
        tally["differ"] += bool(found)
        for kind in set(kinds(found)):
            tally[kind] += 1
            if kind not in worst or len(worst[kind][0]) > len(source):
                worst[kind] = (source, tier)
        if index % 25 == 0:
            gc.collect()
    shown: list[str] = []
    for kind, (source, tier) in worst.items():
        small = shrunk(source, lambda text, kind=kind, tier=tier: kind in kinds(found_in(text, tier)), 80)
        shown.append(f"{tier}\n{small}" + "\n".join(found_in(small, tier)[:4]))
    seconds = round(time.process_time() - started, 1)
    return {"chunk": chunk, "programs": len(sources), "seconds": seconds, "tally": dict(tally), "shown": shown}


def _worker(first: int, step: int, chunks: int, ledger: Path) -> None:
    warmed()
    for chunk in range(first, chunks, step):
        if chunk in {row["chunk"] for row in _rows(ledger)}:
            continue
        row = survey(chunk, CHUNK)
        with ledger.open("a") as out:
            out.write(json.dumps(row) + "\n")


def _rows(ledger: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def _watched(children: list[subprocess.Popen[bytes]], ledger: Path) -> Iterator[dict[str, Any]]:
    """Rows as they come."""
    told = 0
    while True:
        over = all(child.poll() is not None for child in children)
        rows = _rows(ledger)
        yield from rows[told:]
        told = len(rows)
        if over:
            return
        time.sleep(1)


def main() -> int:
    """Run the campaign; 0 if no program differs."""
    parser = argparse.ArgumentParser(description="generated programs, recorded, beside what torch says of them")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=0, help="first chunk: other programs")
    parser.add_argument(
        "--ledger", type=Path, default=Path(".oracle") / f"{os.environ.get('BACKPROBE_CORE', 'auto')}.jsonl"
    )
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given_ = parser.parse_args()
    chunks = given_.first + -(-given_.programs // CHUNK)
    given_.ledger.parent.mkdir(parents=True, exist_ok=True)
    if given_.worker is not None:
        _worker(given_.first + given_.worker, given_.jobs, chunks, given_.ledger)
        return 0
    command = [sys.executable, "-m", "tests.oracle.campaign", *sys.argv[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    children = [subprocess.Popen([*command, "--worker", str(job)], env=environment) for job in range(given_.jobs)]
    done = differ = 0
    started = time.monotonic()
    for row in _watched(children, given_.ledger):
        done, differ = done + row["programs"], differ + row["tally"].get("differ", 0)
        print(
            f"{done} of {given_.programs} programs, {differ} differ; chunk {row['chunk']}: {row['seconds']} s {row['tally']}"
        )
        print(*row["shown"], sep="\n\n", flush=True)
    failed = any(child.returncode for child in children)
    print(f"{done} programs, {differ} with differences; {time.monotonic() - started:.0f} s in this run")
    return 1 if failed or differ else 0


if __name__ == "__main__":
    sys.exit(main())
