"""PyTorch's own autograd tests, run plain and under capture, and compared test by test.

usage: python -m tests.transparency.suite SOURCE_FOLDER [--tiers state,grad,full] [--cores c,python] [--shards 2]
           [--only FILE] [--caps usual|none] [--work FOLDER]
With --work the prepared folder and the plain results stay there, and the next call with the same shards uses them.

SOURCE_FOLDER is the folder `test` of a public checkout of Ascend/pytorch: its `test_autograd.py` and `autograd/` are a
port of PyTorch's own suite, which PyTorch's wheels do not carry. The files are copied, made to run on a CPU, and never
kept. Plain runs twice: a test that differs between the two proves nothing and is left out, by name. A difference is an
outcome, a failure's text, or a warning (test, category, file, line, text). The exit code is 1 if there is one, or if
the engine swallowed an internal error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
TEST_SECONDS = 240
"""CPU time that a test may take, its children's included; plain none takes 20 but the one that compiles C++."""
IDLE_SECONDS = 1200
"""Longest wait for a test's outcome by the clock: a test that hangs takes no CPU time."""
RULES = (
    (r"^( *)import torch_npu.*$", r"\1pass"),
    (r"torch_npu\.npu\.get_device_name\(0\)", '"cpu"'),
    (r"torch\.npu\.is_available\(\)", "False"),
    (r"torch\.npu\b", "torch.cuda"),
    (r"(['\"])npu\1", r"\1cpu\1"),
    (r"only_for='privateuse1'", "only_for='cpu'"),
)
"""What makes the port run without its device."""


def prepare(source: Path, target: Path) -> None:
    """Copy the tests and the runner into an empty folder."""
    shutil.copytree(source / "autograd", target / "autograd")
    shutil.copy(source / "test_autograd.py", target / "test_autograd_port.py")
    for path in target.rglob("*.py"):
        text = path.read_text()
        for pattern, replacement in RULES:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        path.write_text(text)
    (target / "autograd" / "__init__.py").touch()
    (target / "pytest.ini").write_text("[pytest]\n")
    shutil.copy(HERE / "runners" / "suite_runner.py", target)


@dataclass
class Ran:
    """What all shards of one start did.

    Attributes:
        tests: Outcome and text of each test. warnings: Each warning's test, category, file, line and text, counted.
        notes: Per process, what the engine said at the end; empty for plain. cut: Tests that took too long or ended
            their process, with which of the two. broken: Shards that ended otherwise.
    """

    tests: dict[str, list[str]] = field(default_factory=dict)
    warnings: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    notes: list[dict[str, Any]] = field(default_factory=list)
    cut: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    seconds: float = 0


def start(folder: Path, files: list[str], shard: str, tier: str | None, core: str, caps: str) -> Ran:
    """Run one shard; `tier` None is plain. A test that takes too long, or ends its process, costs only itself."""
    ran, events, note = Ran(), folder / "events.jsonl", folder / "note.json"
    events.unlink(missing_ok=True)
    command = [str(folder / "suite_runner.py"), str(events), *shard.split("/"), *files]
    if tier is not None:
        command = [str(HERE / "capture_with.py"), str(note), tier, caps, *command]
    began = time.monotonic()
    environment = {**os.environ, "BACKPROBE_CORE": core, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    environment.setdefault("TORCH_EXTENSIONS_DIR", str(folder / "extensions"))  # one test compiles C++: once is enough
    while not ran.broken:
        note.unlink(missing_ok=True)
        ended = watched([sys.executable, *command], folder, environment, events)
        seen = read_output(events)
        if tier is not None and (note.exists() or not ended.late):
            said = {"own_errors": 1, "own_error": f"ended with {ended.code}: {ended.said}"}
            ran.notes.append(json.loads(note.read_text()) if note.exists() else said)
        if any(words[0] == "ends" for words in seen):
            break
        at = unfinished(seen)
        if at is None:
            ran.broken.append(f"shard {shard} ended with {ended.code} between two tests: {ended.said}")
        else:
            why = f"took over {TEST_SECONDS} s" if ended.late else f"ended the process with {ended.code}"
            ran.cut[at] = why
            print(f"    {at} {why}", flush=True)
    ran.seconds = time.monotonic() - began
    for kind, *words in read_output(events):
        if kind == "test":
            ran.tests[words[0]] = words[1:]
        elif kind == "warning":
            ran.warnings[tuple(words)] += 1
    ran.tests |= {name: ["cut", why] for name, why in ran.cut.items()}
    return ran


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended: its code, whether we ended it since a test took too long, the last words it printed."""

    code: int
    late: bool
    said: str


def watched(command: list[str], folder: Path, environment: dict[str, str], events: Path) -> ProcessEnd:
    """Run a command, and end it once nothing was added to its events for the time that a test may take."""
    late = False
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        process = psutil.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
        moved, spent, size = time.monotonic(), 0.0, -1
        while process.poll() is None:
            time.sleep(0.5)
            now, used = events.stat().st_size if events.exists() else 0, cpu_seconds(process)
            if now != size:
                moved, spent, size = time.monotonic(), used, now
            elif used - spent > TEST_SECONDS or time.monotonic() - moved > IDLE_SECONDS:
                late = True
                end(process)
        out.seek(0)
        return ProcessEnd(process.returncode, late, out.read()[-3000:])


def cpu_seconds(process: psutil.Popen) -> float:
    """CPU time of a process and of its children that ended; those that run count from their start."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [process, *process.children(recursive=True)]
        return sum(sum(row.cpu_times()[:4]) for row in family)
    return 0


def end(process: psutil.Popen) -> None:
    """End a process and what it started."""
    family = [process, *process.children(recursive=True)]
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait()


def read_output(events: Path) -> list[list[Any]]:
    """What the runner wrote, without a last line that was cut."""
    found = []
    for line in events.read_text().splitlines() if events.exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def unfinished(seen: list[list[Any]]) -> str | None:
    """The test that began last and has no outcome; None if there is none."""
    begun = [words[1] for words in seen if words[0] == "begins"]
    done = {words[1] for words in seen if words[0] == "test"}
    return begun[-1] if begun and begun[-1] not in done else None


def joined(parts: list[Ran]) -> Ran:
    """The shards of one start as one."""
    whole = Ran()
    for part in parts:
        whole.tests |= part.tests
        whole.warnings += part.warnings
        whole.notes += part.notes
        whole.cut |= part.cut
        whole.broken += part.broken
        whole.seconds += part.seconds
    return whole


def differences(first: Ran, other: Ran, without: frozenset[str]) -> Iterator[str]:
    """What differs, but for the tests named in `without`."""
    yield from other.broken
    for name in sorted({*first.tests, *other.tests} - without):
        was, is_now = first.tests.get(name, ["missing", ""]), other.tests.get(name, ["missing", ""])
        if was != is_now:
            yield f"{name}: {was[0]} -> {is_now[0]}\n    was: {was[1][-1500:]}\n    is:  {is_now[1][-1500:]}"
    for row in sorted({*first.warnings, *other.warnings}, key=repr):
        if row[0] not in without and first.warnings[row] != other.warnings[row]:
            yield f"warning {first.warnings[row]} -> {other.warnings[row]} times: {row}"


def flaky(first: Ran, second: Ran) -> frozenset[str]:
    """Tests that two plain runs do not agree on, in outcome, text or warnings."""
    names = {name for name in first.tests if first.tests[name] != second.tests.get(name)}
    warned = (first.warnings - second.warnings) + (second.warnings - first.warnings)
    return frozenset(names | {str(row[0]) for row in warned})


def once(path: Path, make: Callable[[], Ran]) -> Ran:
    """What was kept in a file; where there is none it is made, and kept."""
    if not path.exists():
        ran = make()
        path.write_text(json.dumps([ran.tests, list(ran.warnings.items()), ran.broken, ran.seconds]))
    tests, warned, broken, seconds = json.loads(path.read_text())
    return Ran(tests, Counter({tuple(row): times for row, times in warned}), broken=broken, seconds=seconds)


def counts(ran: Ran) -> str:
    """One line about a start."""
    outcome = Counter(outcome for outcome, _ in ran.tests.values())
    return f"{len(ran.tests)} tests, {dict(outcome)}, {sum(ran.warnings.values())} warnings, {ran.seconds:.0f} s"


def compare(folder: Path, asked: argparse.Namespace) -> int:
    """Run everything that was asked for; the number of differences and own errors."""
    files = [asked.only] if asked.only else ["test_autograd_port.py", "autograd"]
    shards = [f"{number}/{asked.shards}" for number in asked.shard or range(asked.shards)]

    def whole(tier: str | None, core: str = "python") -> Ran:
        return joined([start(folder, files, shard, tier, core, asked.caps) for shard in shards])

    label = f"{asked.shards}-{asked.shard or 'all'}-{asked.only or 'all'}".replace("/", "-")
    plain, again = (once(folder / f"plain-{label}-{n}.json", lambda: whole(None)) for n in (1, 2))
    unsure = flaky(plain, again)
    print("plain:", counts(plain), flush=True)
    print("plain again:", counts(again), "; not compared:", sorted(unsure) or "nothing", flush=True)
    if not plain.tests:
        print(
            "no test ran: is every package there that the suite imports? `make suite` installs them.",
            *plain.broken,
            sep="\n",
        )
        return 1
    wrong = len(plain.broken)
    print(*plain.broken, sep="\n")
    for core in asked.cores.split(","):
        for tier in asked.tiers.split(","):
            captured = whole(tier, core)
            found = list(differences(plain, captured, unsure))
            own = sum(note["own_errors"] for note in captured.notes)
            print(f"\ncore {core}, tier {tier}: {counts(captured)}; {len(found)} differences, {own} own errors")
            print(*found, *[note["own_error"] for note in captured.notes if note["own_errors"]], sep="\n", flush=True)
            wrong += len(found) + own
    return wrong


def main() -> None:
    """Compare and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--tiers", default="state,grad,full")
    parser.add_argument("--cores", default="c,python")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--shard", type=int, action="append", help="only this shard")
    parser.add_argument("--caps", choices=("usual", "none"), default="none")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", help="one file of the prepared folder, or one test of it")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="backprobe-suite-") as name:
        folder = (asked.work or Path(name)) / "suite"
        if not folder.exists():
            prepare(asked.source, folder)
        wrong = compare(folder, asked)
    print(f"\n{wrong} differences and own errors in all")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
