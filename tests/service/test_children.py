"""Child processes are kept alive, restarted when silent, and end with the service."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from service.server import managed_processes as children_module
from service.server.managed_processes import Children
from tests.support.waiting import wait_until


@pytest.fixture
def start(tmp_path):
    """Starts children: real commands, some of which end by themselves."""
    started = []

    def start_children(commands, logs=tmp_path, **more):
        found = Children(commands, {**os.environ, "BACKPROBE_HOME": str(tmp_path / "home")}, logs, **more)
        started.append(found)
        found.start()
        return found

    yield start_children
    for found in started:
        found.kill()
        assert found.wait(20)


def test_a_child_that_ends_is_started_again_later_and_later(start, tmp_path):
    found = start({"rules": ("rules",)})
    log = tmp_path / "rules.log"
    wait_until(lambda: log.exists() and log.read_text().count("BP101") >= 2)
    wait_until(lambda: found.restarts()["rules"] >= 1)


def test_a_child_that_cannot_be_started_is_tried_again(start, tmp_path, caplog):
    folder = tmp_path / "logs"
    folder.write_text("")
    found = start({"reaper": ("reaper",)}, logs=folder)
    wait_until(lambda: "reaper could not be started" in caplog.text)
    folder.unlink()
    wait_until(found.pids)
    assert not found.failed


def test_a_log_folder_that_goes_is_made_again(start, tmp_path):
    folder = tmp_path / "logs"
    found = start({"reaper": ("reaper",)}, logs=folder)
    pid = wait_until(found.pids)["reaper"]
    shutil.rmtree(folder)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: found.pids().get("reaper", pid) != pid)
    assert folder.is_dir()


def test_a_supervisor_that_falls_says_so_and_ends_its_children(start, monkeypatch):
    monkeypatch.setattr(children_module, "SILENT_LOOK_SECONDS", 0.2)
    told = threading.Event()
    held = []

    def broken(pids):
        held.extend(pids.values())
        raise RuntimeError("broken on purpose")

    found = start({"reaper": ("reaper",)}, silent=broken, fallen=told.set)
    assert told.wait(20)
    assert found.wait(20)
    assert found.failed
    assert not any(psutil.pid_exists(pid) for pid in held)


def test_serve_ends_with_a_code_when_nobody_supervises_the_children(tmp_path):
    code = (
        "import pathlib, sys\n"
        "from service.server import managed_processes as children, serve\n"
        "def broken(*_): raise RuntimeError('broken on purpose')\n"
        "children.Children._spawn = broken\n"
        f"sys.exit(serve.run(serve.ServeOptions(port=0, home=pathlib.Path({str(tmp_path / 'home')!r}))))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "no longer supervised" in ended.stderr


def test_a_silent_child_is_killed_and_started_again(start, monkeypatch):
    monkeypatch.setattr(children_module, "SILENT_LOOK_SECONDS", 0.2)
    told = []

    def silent(pids):
        if pids and not told:
            told.append(dict(pids))
            return set(pids)
        return set()

    found = start({"reaper": ("reaper",)}, silent=silent)
    wait_until(lambda: told)
    wait_until(lambda: found.pids() and found.pids() != told[0])


def test_stopping_ends_every_child(start):
    found = start({"reaper": ("reaper",)})
    pid = wait_until(found.pids)["reaper"]
    found.stop()
    assert found.wait(40)
    assert not psutil.pid_exists(pid)


def test_a_child_dies_with_its_parent(tmp_path):
    code = (
        "import os, pathlib, sys, time\n"
        "from service.server.managed_processes import Children\n"
        f"c = Children({{'reaper': ('reaper',)}}, dict(os.environ), pathlib.Path({str(tmp_path)!r}))\n"
        "c.start()\n"
        "while not c.pids(): time.sleep(0.02)\n"
        "print(c.pids()['reaper'], flush=True)\n"
        "time.sleep(60)\n"
    )
    environ = {**os.environ, "BACKPROBE_HOME": str(tmp_path / "home")}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environ) as parent:
        pid = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, seconds=10)
