"""Plant the faults of `planted.toml`, one after the other, and see a test fail on each: `python -m tests.mutation.planted`.

usage: python -m tests.mutation.planted [--default-tier] [TEXT...]

TEXT chooses the faults whose file or words contain one of them. `--default-tier` runs what `make test` runs and leaves
the rest of the tests out: it tells which faults only `make test-full` sees. The project is copied first, so nothing is changed here.
First the chosen tests run without a fault, and must pass. Of the tests of a fault those of the first file run first; the
first failure is enough. Exit code 1: a fault is not seen. 2: a test fails without any fault.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.resources import ROOT

FAULTS: Final = Path(__file__).with_name("planted.toml")

SECONDS: Final = 1200
"""The tests of one fault may take so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of `planted.toml`."""

    what: str
    file: str
    text: str
    becomes: str
    tests: tuple[str, ...]


def faults() -> list[Fault]:
    """All of them, in the order of the file."""
    return [Fault(**fault | {"tests": tuple(fault["tests"])}) for fault in tomllib.loads(FAULTS.read_text())["planted"]]


def planted(fault: Fault, source: str) -> str:
    """The source with the fault in it.

    Raises:
        ValueError: its text does not stand there exactly once.
    """
    if source.count(fault.text) != 1:
        raise ValueError(f"{fault.file} has this {source.count(fault.text)} times: {fault.text}")
    return source.replace(fault.text, fault.becomes)


def seen_by(fault: Fault, folder: Path, options: Sequence[str] = ()) -> str | None:
    """The first test that fails with the fault in this copy of the project; None: none does."""
    path = folder / fault.file
    source = path.read_text()
    path.write_text(planted(fault, source))
    try:
        for tests in fault.tests:
            if (failed := _failed(tests, folder, options)) is not None:
                return failed
        return None
    finally:
        path.write_text(source)


def _failed(tests: str, folder: Path, options: Sequence[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "--no-header", "-p", "no:cacheprovider", tests]
    command += options
    try:
        ran = subprocess.run(
            command,
            check=False,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            timeout=SECONDS,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return f"{tests}: not ended within {SECONDS} s"
    if ran.returncode == 0 or (options and ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED):
        return None
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not lines:
        raise RuntimeError(f"no test of {tests} ran:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return lines[0].split(" - ")[0]


def copied(target: Path) -> Path:
    """A copy of what is in the repository and of what is built in it, without history."""
    ignored = shutil.ignore_patterns(".git", ".venv", "node_modules", "build", "__pycache__")
    shutil.copytree(ROOT, target, ignore=ignored, symlinks=True)
    return target


def main(words: Sequence[str]) -> int:
    """Plant those that were chosen; print each with the test that failed."""
    options = ["-m", "not full"] if "--default-tier" in words else []
    words = [word for word in words if word != "--default-tier"]
    chosen = [fault for fault in faults() if not words or any(word in f"{fault.file} {fault.what}" for word in words)]
    unseen = 0
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as made:  # in /tmp no run has a private root
        Path(made).chmod(0o755)
        folder = copied(Path(made, "backprobe"))
        for tests in sorted({tests for fault in chosen for tests in fault.tests}):
            if (failed := _failed(tests, folder, options)) is not None:
                print(f"without any fault: {failed}", file=sys.stderr)
                return 2
        for number, fault in enumerate(chosen, 1):
            began = time.monotonic()
            failed = seen_by(fault, folder, options)
            unseen += failed is None
            print(f"[{number}/{len(chosen)}] {fault.file}: {fault.what}", flush=True)
            print(f"    {failed or 'NO TEST FAILS'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(chosen)} faults planted, {len(chosen) - unseen} fail a test, {unseen} do not")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
