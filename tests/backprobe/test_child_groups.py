"""A child is waited for, and ended with what it started, whether it came to its end or not."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from backprobe.child_groups import kill_group, wait_or_kill
from tests.support.waiting import wait_until

STARTS_ANOTHER = """
import subprocess, sys, time
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(other.pid))
time.sleep(float(sys.argv[2]))
sys.exit(3)
"""


def _started(told: Path, seconds: float) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", STARTS_ANOTHER, str(told), str(seconds)], start_new_session=True)


def _runs(pid: int) -> bool:
    """Not so if it is gone, or waits to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _ends(pid: int) -> bool:
    """SIGKILL is delivered a moment after it was sent."""
    return wait_until(lambda: not _runs(pid), f"{pid} ends")


def test_a_child_that_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    assert wait_or_kill(_started(told, 0), 60) == 3
    assert _ends(int(told.read_text()))


def test_a_child_that_does_not_end_is_killed_with_its_own(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    process = _started(told, 600)
    wait_until(lambda: told.exists() and told.read_text(), "the child says who it started")
    assert wait_or_kill(process, 0.1) is None
    assert process.returncode == -9
    assert _ends(int(told.read_text()))


WAITS = """
import subprocess, sys
from backprobe.child_groups import wait_or_kill
wait_or_kill(subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], start_new_session=True), 600)
"""


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_child_and_its_own_end_when_the_process_that_waits_for_it_ends(tmp_path: Path, sent: signal.Signals) -> None:
    told = tmp_path / "pid"
    client = subprocess.Popen([sys.executable, "-c", WAITS, STARTS_ANOTHER, str(told), "600"])
    wait_until(lambda: told.exists() and told.read_text(), "the child says who it started")
    client.send_signal(sent)
    assert client.wait(10) == -sent
    assert _ends(int(told.read_text()))


def test_a_child_is_killed_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    told, stop = tmp_path / "pid", threading.Event()
    process = _started(told, 600)
    wait_until(lambda: told.exists() and told.read_text(), "the child says who it started")
    stop.set()
    assert wait_or_kill(process, 600, stop) is None
    assert _ends(int(told.read_text()))


def test_a_group_that_is_gone_is_no_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    kill_group(process.pid)
    assert not os.path.exists(f"/proc/{process.pid}")
