"""Prove the GPU side, part by part: `python -m tests.gpu`; `make gpu` is the same.

    BACKPROBE_GPU_STANDIN=cpu python -m tests.gpu            every line, on the CPU in place of CUDA
    python -m tests.gpu --parts capture,waits                some parts
    python -m tests.gpu --small --together                   few repetitions, in this process: what `make test` runs

Each part has a separate process and a limit in seconds; all of them together have one as well. A part that does not
end is a failure. The exit code is 0 if no check failed, 1 if one did, 2 if there is nothing to run on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.gpu import waits
from tests.gpu.parts import PARTS, Part
from tests.gpu.place import SECONDS_LEFT, NoDevice, NotHere, Place, Row, find_place

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 465.0
"""Of all parts together: a lent machine runs one command for ten minutes, and starts up within them."""


def prove(part: Part, place: Place) -> list[Row]:
    """The rows of a part, each told as it comes."""
    return [_print_row(row) for row in part.prove(place)]


def _print_row(row: Row) -> Row:
    print(f"  {row.outcome:<9} {row.what}{': ' if row.note else ''}{row.note}", flush=True)
    return row


def prove_apart(part: Part, place: Place, seconds: float) -> list[Row]:
    """The same in a fresh process, which is killed after so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "tests.gpu", "--parts", part.name, "--together", "--rows", str(path)]
        process = subprocess.Popen(
            [*command, *(["--small"] if place.small else [])],
            cwd=ROOT,
            env={**os.environ, SECONDS_LEFT: str(seconds), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        try:
            process.wait(timeout=max(1.0, seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return [_print_row(Row(what=part.name, outcome="failed", note=f"did not end within {seconds:.0f} s"))]
        if not path.exists():
            ended = f"its process ended with {process.returncode}"
            return [_print_row(Row(what=part.name, outcome="failed", note=ended))]
        return [Row(**row) for row in json.loads(path.read_text())[part.name]["rows"]]


def table(place: Place, found: dict[str, tuple[float, list[Row]]]) -> str:
    """Part, seconds, and how many of its checks had which outcome."""
    lines = [f"{'part':<12} {'seconds':>8} {'seen':>6} {'stand-in':>9} {'not seen':>9} {'failed':>7}"]
    for name, (seconds, part) in found.items():
        tally = Counter(row.outcome for row in part)
        counts = f"{tally['seen']:>6} {tally['stand-in']:>9} {tally['not seen']:>9} {tally['failed']:>7}"
        lines.append(f"{name:<12} {seconds:>8.1f} {counts}")
    lines.append(f"{'all':<12} {sum(seconds for seconds, _ in found.values()):>8.1f}   on {place.name}")
    return "\n".join(lines)


def main() -> int:
    """Run parts; the exit code comes back."""
    given = _arguments()
    try:
        place = find_place(small=given.small)
    except NoDevice as error:
        print(f"tests.gpu: {error}", file=sys.stderr)
        return 2
    if not place.is_cuda:
        with contextlib.suppress(NotHere):
            waits.hold_device()  # before the first backward call: autograd counts the kinds of devices once in a process
    began = time.monotonic()
    found: dict[str, tuple[float, list[Row]]] = {}
    inner = os.environ.get(SECONDS_LEFT) is not None  # it is one part's process: the outer one tells the rest
    if not inner:
        print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {_machine(place)}", flush=True)
    for part in PARTS:
        if given.parts and part.name not in given.parts.split(","):
            continue
        if not inner:
            print(f"{part.name}: {part.what}", flush=True)
        started = time.monotonic()
        left = MOST_SECONDS - (started - began)
        rows = prove(part, place) if given.together else prove_apart(part, place, min(part.limit, left))
        found[part.name] = (time.monotonic() - started, rows)
    if not inner:
        print(table(place, found))
    if given.rows:
        told = {name: {"seconds": s, "rows": [asdict(row) for row in rows]} for name, (s, rows) in found.items()}
        Path(given.rows).write_text(json.dumps(told, indent=1))
    return 1 if any(row.outcome == "failed" for _, rows in found.values() for row in rows) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description="what is true of Backprobe on a GPU")
    parser.add_argument("--parts", default="", help=f"some of {', '.join(part.name for part in PARTS)}")
    parser.add_argument("--small", action="store_true", help="few repetitions")
    parser.add_argument("--together", action="store_true", help="all parts in this process, without limits")
    parser.add_argument("--rows", default="", help="a file for what was found, as JSON")
    given = parser.parse_args()
    known = {part.name for part in PARTS}
    unknown = sorted(set(filter(None, given.parts.split(","))) - known)
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return given


def _machine(place: Place) -> str:
    import platform

    import torch

    from backprobe.capture.torch_access import native

    return (
        f"Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores, the engine's core in "
        f"{native.kind}, {place.name}"
    )


if __name__ == "__main__":
    sys.exit(main())
