"""A machine whose clock is set, by an hour ahead and back, while runs are in hand: none is lost or doubled."""

import mmap
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import Stack

pytestmark = pytest.mark.usefixtures("sandbox")

HOUR = 3600
SLOW = "import time\nprint('here', flush=True)\ntime.sleep({seconds})\nprint('end')\n"


class MachineClock:
    """The clock of all processes that are started with its environment, the database's with them."""

    def __init__(self, folder: Path) -> None:
        library, file = folder / "set_clock.so", folder / "clock"
        source = Path(__file__).parents[1] / "support" / "set_clock.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        file.write_bytes(struct.pack("l", 0))
        self.environment = {"LD_PRELOAD": str(library), "TEST_CLOCK": str(file)}
        with file.open("r+b") as opened:
            self._seconds = mmap.mmap(opened.fileno(), 0)

    def set_by(self, seconds: int) -> None:
        (now,) = struct.unpack("l", self._seconds[:])
        self._seconds[:] = struct.pack("l", now + seconds)


@pytest.fixture
def machine(tmp_path, require) -> MachineClock:
    require("compiler")
    return MachineClock(tmp_path)


@pytest.fixture
def stack(tmp_path, machine) -> Iterator[Stack]:
    """SQLite, whose clock is the machine's, and the embedded broker."""
    embedded = Stack(environment={"BACKPROBE_HOME": str(tmp_path / "home")} | machine.environment, folder=tmp_path)
    yield embedded
    embedded.close()


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_run_in_hand_goes_on_and_a_worker_that_is_stopped_gives_it_time(stack, machine, seconds):
    worker = stack.start("worker", "--concurrency", "2", BACKPROBE_LEASE_SECONDS="4")
    stack.start("reaper")
    first, second = (stack.submit(SLOW.format(seconds=9)) for _ in range(2))
    for run in (first, second):
        stack.running(run)
    machine.set_by(seconds)
    stack.wait(lambda: "the database's clock was set by" in stack.log(), "the reaper has seen it")
    worker.terminate()
    machine.set_by(-seconds)
    assert worker.wait(120) == 0
    for run in (first, second):
        row = stack.wait_for_end(run)
        assert (row.status, row.attempt) == ("succeeded", 1), stack.log()
    assert "is no longer ours" not in stack.log()


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_killed_workers_run_is_taken_back_after_its_lease_and_no_sooner_or_later(stack, machine, seconds):
    worker = stack.start("worker", BACKPROBE_LEASE_SECONDS="4")
    stack.start("reaper")
    public_id = stack.submit("import time\ntime.sleep(600)")
    stack.running(public_id)
    stack.wait((stack.settings.home / "reaper.beat").exists, "the reaper is at work")
    worker.kill()
    machine.set_by(seconds)
    row = stack.wait(lambda: (row := stack.run(public_id)).status == "queued" and row, "it is taken back")
    assert row.attempt == 1
