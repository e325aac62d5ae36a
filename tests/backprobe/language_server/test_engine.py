"""A local run's child, by an interpreter that replaces one with torch: when it is stopped, and by which signals."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from backprobe.language_server.runs import engine
from backprobe.language_server.runs.engine import NotRun, run_locally
from backprobe.language_server.runs.program import Program
from backprobe.language_server.runs.waiting_process import Standby
from backprobe.language_server.settings import Settings
from tests.support.waiting import wait_until

pytestmark = pytest.mark.asyncio

INTERPRETER = f"""#!{sys.executable}
import json, os, signal, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent
with (here / "started").open("a") as file:
    file.write(str(os.getpid()) + " ")
arguments = json.loads(sys.stdin.readline() or "[]")
if not arguments:
    sys.exit(0)
if (here / "leaves-a-child").exists():
    subprocess.Popen(["sleep", "600"])
(here / "ran").write_text(str(os.getpid()))
seconds = float((here / "seconds").read_text())

def note(number, frame):
    with (here / "signals").open("a") as file:
        file.write(signal.Signals(number).name + " ")

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, note)
time.sleep(seconds)
Path(arguments[arguments.index("--save") + 1]).write_bytes(b"BPREC")
(here / "begun").touch()
until = time.monotonic() + (0.1 if seconds else 600)
while time.monotonic() < until:
    time.sleep(0.01)
"""


@pytest.fixture
def standby() -> Standby:
    return Standby()


@pytest.fixture
def interpreter(tmp_path: Path) -> Path:
    path = tmp_path / "python"
    path.write_text(INTERPRETER)
    path.chmod(0o755)
    return path


def run(interpreter: Path, start_seconds: float, seconds: float, standby: Standby, **environment: str):
    (interpreter.parent / "seconds").write_text(str(start_seconds))
    program = Program(root=interpreter.parent, entry="train.py", files={"train.py": ""}, environment=environment)
    return run_locally(program, Settings(interpreter=str(interpreter), seconds=seconds), os.environ, standby)


def pids(interpreter: Path, name: str) -> list[int]:
    path = interpreter.parent / name
    return [int(word) for word in path.read_text().split()] if path.exists() else []


async def test_a_canceled_program_gets_the_signals_one_after_the_other(interpreter, standby, monkeypatch):
    monkeypatch.setattr(engine, "REPORT_SECONDS", 0.3)
    monkeypatch.setattr(engine, "TERMINATE_SECONDS", 0.3)
    going_on = asyncio.ensure_future(run(interpreter, 0, 600, standby))
    await asyncio.to_thread(wait_until, (interpreter.parent / "begun").exists, "the program runs")
    going_on.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going_on
    assert (interpreter.parent / "signals").read_text().split() == ["SIGINT", "SIGTERM"]
    await standby.end()


async def test_the_time_until_the_first_statement_does_not_count(interpreter, standby):
    with pytest.raises(NotRun, match="no report came: exit code 0"):
        await run(interpreter, 1.5, 1.0, standby)
    assert not (interpreter.parent / "signals").exists()
    await standby.end()


async def test_a_child_that_a_program_leaves_behind_does_not_delay_its_end(interpreter, standby):
    (interpreter.parent / "leaves-a-child").touch()
    async with asyncio.timeout(60):
        with pytest.raises(NotRun, match="no report came: exit code 0"):
            await run(interpreter, 0.01, 600, standby)
    await standby.end()


async def test_a_process_waits_for_the_next_run_that_is_started_alike(interpreter, standby):
    async def run_once(**environment: str) -> int:
        with pytest.raises(NotRun):
            await run(interpreter, 0.01, 60, standby, **environment)
        return pids(interpreter, "ran")[0]

    first = await run_once()
    await asyncio.to_thread(wait_until, lambda: len(pids(interpreter, "started")) == 2, "one waits for the next run")
    waiting = pids(interpreter, "started")[1]
    assert await run_once() == waiting != first
    await asyncio.to_thread(wait_until, lambda: len(pids(interpreter, "started")) == 3, "another one waits")
    waiting = pids(interpreter, "started")[2]
    assert await run_once(SEED="1") != waiting, "it was started in another environment"
    await asyncio.to_thread(wait_until, lambda: has_ended(waiting), "it was not needed, and is ended")
    await standby.end()
    assert all(has_ended(pid) for pid in pids(interpreter, "started"))


def has_ended(pid: int) -> bool:
    """It is gone, or waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
