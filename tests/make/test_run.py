"""`make run` starts everything, shows a program whose `.grad` is None, and leaves nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.support.addresses import free_port, own_uid
from tests.support.resources import ROOT

pytestmark = pytest.mark.usefixtures("full_tier")

FIRST_RESULT_SECONDS = 60


class Started:
    """`make run` in a new session, as a terminal would start it."""

    def __init__(self, venv: Path, home: Path, port: int) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BACKPROBE_")}
        environment |= {"BACKPROBE_SANDBOX_UID": str(own_uid())}
        self.process = subprocess.Popen(
            ["make", "--no-print-directory", "run", f"VENV={venv}", f"ARGS=--port {port}"],
            cwd=ROOT,
            env=environment | {"BACKPROBE_HOME": str(home), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said = ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with self.process.stdout as stdout:
            for line in stdout:
                self.said += line

    def wait_for(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + FIRST_RESULT_SECONDS
        while not (found := re.search(pattern, self.said)):
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)
        return found

    def wait_for_parts(self, *words: str) -> list[psutil.Process]:
        """Everyone, once each of the words is part of somebody's command line."""
        deadline = time.monotonic() + FIRST_RESULT_SECONDS
        while True:
            everyone = self.everyone()
            commands = [" ".join(process.cmdline()) for process in everyone if process.is_running()]
            if all(any(word in command for command in commands) for word in words):
                return everyone
            assert time.monotonic() < deadline, commands
            time.sleep(0.05)

    def everyone(self) -> list[psutil.Process]:
        make = psutil.Process(self.process.pid)
        return [make, *make.children(recursive=True)]


@pytest.fixture
def start(tmp_path):
    """A started `make run`, on this interpreter's installed packages: nothing is installed for it."""
    venv = tmp_path / "venv"
    venv.mkdir()
    (venv / "bin").symlink_to(Path(sys.executable).parent)
    (venv / "installed-all").touch()
    started: list[Started] = []

    def run(port: int) -> Started:
        started.append(Started(venv, tmp_path / "home", port))
        return started[-1]

    yield run
    for starter in started:
        for process in starter.everyone() if starter.process.poll() is None else []:
            process.kill()
        starter.process.wait()


@pytest.fixture
def demo(start):
    port = free_port()
    started = start(port)
    started.url = started.wait_for(rf"http://127\.0\.0\.1:{port}/runs/run_\w+")[0]
    return started


def wait_for_exit(processes, seconds: float = 20) -> list[psutil.Process]:
    return psutil.wait_procs(processes, timeout=seconds)[1]


def test_it_prints_the_examples_tensors_and_its_page_and_ctrl_c_ends_all(demo):
    for name in ("w", "x", "loss"):
        assert re.search(rf"(?m)^\W*{name}\b", demo.said), demo.said
    with urllib.request.urlopen(demo.url, timeout=20) as page:
        assert page.status == 200
    everyone = demo.wait_for_parts("worker", "zygote", "reaper")
    os.killpg(demo.process.pid, signal.SIGINT)  # what Ctrl-C in a terminal does
    assert wait_for_exit(everyone) == []
    assert "Traceback" not in demo.said


def test_a_term_to_make_alone_ends_all(demo):
    everyone = demo.everyone()
    os.kill(demo.process.pid, signal.SIGTERM)
    assert wait_for_exit(everyone) == []


def test_a_kill_of_serve_leaves_nobody(demo):
    everyone = demo.everyone()
    serve = next(process for process in everyone if "serve" in process.cmdline())
    serve.kill()
    assert wait_for_exit(everyone) == []


def test_a_taken_port_is_one_clear_line_with_a_way_out(start):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        started = start(port)
        started.process.wait(FIRST_RESULT_SECONDS)
    assert started.process.returncode != 0
    said = [line for line in started.said.splitlines() if line and not line.startswith("make")]
    assert len(said) <= 2, started.said
    assert str(port) in started.said
    assert "--port" in started.said
