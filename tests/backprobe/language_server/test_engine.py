"""A local run's child, by an interpreter that stands in for one with torch: when it is stopped, and by which signals."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from backprobe.language_server.runs import engine
from backprobe.language_server.runs.engine import NotRun, run_locally
from backprobe.language_server.runs.program import Program
from backprobe.language_server.settings import Settings
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio

INTERPRETER = f"""#!{sys.executable}
import signal, sys, time
from pathlib import Path

here = Path(__file__).parent
seconds = float((here / "seconds").read_text())

def note(number, frame):
    with (here / "signals").open("a") as file:
        file.write(signal.Signals(number).name + " ")

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, note)
time.sleep(seconds)
Path(sys.argv[sys.argv.index("--save") + 1]).write_bytes(b"BPREC")
(here / "begun").touch()
until = time.monotonic() + (0.1 if seconds else 600)
while time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text(INTERPRETER)
    path.chmod(0o755)
    return path


def run(interpreter: Path, start_seconds: float, seconds: float):
    (interpreter.parent / "seconds").write_text(str(start_seconds))
    program = Program(root=interpreter.parent, entry="train.py", files={"train.py": ""})
    return run_locally(program, Settings(interpreter=str(interpreter), seconds=seconds), os.environ)


async def test_a_canceled_program_gets_the_signals_one_after_the_other(interpreter, monkeypatch):
    monkeypatch.setattr(engine, "REPORT_SECONDS", 0.3)
    monkeypatch.setattr(engine, "TERMINATE_SECONDS", 0.3)
    going_on = asyncio.ensure_future(run(interpreter, 0, 600))
    await asyncio.to_thread(until, (interpreter.parent / "begun").exists, "the program runs")
    going_on.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert (interpreter.parent / "signals").read_text().split() == ["SIGINT", "SIGTERM"]


async def test_the_time_until_the_first_statement_does_not_count(interpreter):
    with pytest.raises(NotRun, match="no report came: exit code 0"):
        await run(interpreter, 1.5, 1.0)
    assert not (interpreter.parent / "signals").exists()
