"""Programs under real capture: `captured(source)` gives the record, from a fork of one warm process per session."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backprobe.record import Record, loads

Captured = Callable[..., Record]


@pytest.fixture(scope="session")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    """`captured(source)`: the record of a program that ran as `train.py`, at most 60 seconds long."""
    runner = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("warm_runner.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    assert runner.stdin is not None
    assert runner.stdout.readline() == "warm\n"
    target = tmp_path_factory.mktemp("records") / "one.bprec"

    def run(source: str, *, tier: str = "full", seed: int | None = 0, files: dict[str, str] | None = None) -> Record:
        asked = {
            "files": {"train.py": source, **(files or {})},
            "entry": "train.py",
            "argv": [],
            "tier": tier,
            "seed": seed,
            "seconds": 60,
            "record": str(target),
        }
        runner.stdin.write(json.dumps(asked) + "\n")
        runner.stdin.flush()
        answer = json.loads(runner.stdout.readline())
        assert answer["status"] == 0, f"the run did not end: wait status {answer['status']}"
        return loads(target.read_bytes())

    yield run
    runner.stdin.close()
    runner.stdout.close()
    assert runner.wait(10) == 0
