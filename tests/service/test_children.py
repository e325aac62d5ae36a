"""Child processes are kept alive, started anew when silent, and end with us."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil
import pytest

from service import children as children_module
from service.children import Children


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.fixture
def start(tmp_path):
    """Starts children: real commands, some of which end by themselves."""
    started = []

    def one(commands, **more):
        found = Children(commands, {**os.environ, "BACKPROBE_HOME": str(tmp_path / "home")}, tmp_path, **more)
        started.append(found)
        found.start()
        return found

    yield one
    for found in started:
        found.kill()
        assert found.wait(20)


def test_a_child_that_ends_is_started_again_later_and_later(start, tmp_path):
    start({"rules": ("rules",)})
    log = tmp_path / "rules.log"
    until(lambda: log.exists() and log.read_text().count("BP101") >= 2)


def test_a_silent_child_is_killed_and_started_again(start, monkeypatch):
    monkeypatch.setattr(children_module, "SILENT_LOOK_SECONDS", 0.2)
    told = []

    def silent(pids):
        if pids and not told:
            told.append(dict(pids))
            return set(pids)
        return set()

    found = start({"reaper": ("reaper",)}, silent=silent)
    until(lambda: told)
    until(lambda: found.pids() and found.pids() != told[0])


def test_stopping_ends_every_child(start):
    found = start({"reaper": ("reaper",)})
    pid = until(found.pids)["reaper"]
    found.stop()
    assert found.wait(40)
    assert not psutil.pid_exists(pid)


def test_a_child_dies_with_its_parent(tmp_path):
    code = (
        "import os, pathlib, sys, time\n"
        "from service.children import Children\n"
        f"c = Children({{'reaper': ('reaper',)}}, dict(os.environ), pathlib.Path({str(tmp_path)!r}))\n"
        "c.start()\n"
        "while not c.pids(): time.sleep(0.02)\n"
        "print(c.pids()['reaper'], flush=True)\n"
        "time.sleep(60)\n"
    )
    import subprocess

    environ = {**os.environ, "BACKPROBE_HOME": str(tmp_path / "home")}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environ) as parent:
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, 10)
