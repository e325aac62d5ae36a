"""`backprobe serve` as a user starts it: up, used, refused, killed; nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import psutil
import pytest

from service.process import required_modules
from service.process.home import CannotServe
from service.server.managed_processes import Silence
from service.settings import Settings
from tests.support.addresses import own_uid
from tests.support.machine_level import machine_level
from tests.support.served import SMALL
from workers.sandbox.levels.capabilities import lacking

pytestmark = pytest.mark.usefixtures("full_tier")

READY_SECONDS = 60
OIDC = {
    "BACKPROBE_OIDC_ISSUER": "https://id.example",
    "BACKPROBE_OIDC_CLIENT_ID": "backprobe",
    "BACKPROBE_OIDC_CLIENT_SECRET": "hush",
    "BACKPROBE_OIDC_URL": "https://backprobe.example",
    "BACKPROBE_OIDC_ALLOWED": "@example.org",
}


class Serve:
    """One `backprobe serve`."""

    def __init__(self, home, *arguments, env=None):
        self.home, self.said = home, ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "backprobe", "serve", "--home", str(home), "--port", "0", *arguments],
            env={
                **os.environ,
                "BACKPROBE_HOME": "",
                "BACKPROBE_LEASE_SECONDS": "5",
                "BACKPROBE_SANDBOX_UID": str(own_uid()),
                **SMALL,
                "PYTHONUNBUFFERED": "1",
                **(env or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.said += line

    def wait_until(self, condition, seconds=READY_SECONDS, what="it was ready"):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what}: {self.said}"
            assert self.process.poll() is None, self.said
            time.sleep(0.05)
        return found

    def ready(self, *, worker=False):
        self.wait_until(lambda: "Backprobe serves " in self.said)
        self.url = self.said.split("Backprobe serves ")[1].split()[0]
        if worker:
            self.wait_until(lambda: self.get("/readyz")["workers"]["cpu"] > 0, what="a worker was alive")
        return self

    def get(self, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **headers}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, sent), timeout=60) as answer:
            return json.load(answer)

    def family(self):
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def end(self, number=signal.SIGTERM, seconds=45):
        """Send a signal; every process must be gone."""
        family = self.family()
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        self._reader.join(10)
        _gone, alive = psutil.wait_procs(family, timeout=15)
        assert alive == [], alive
        return code


@pytest.fixture
def serve(tmp_path):
    started = []

    def start(*arguments, home=None, env=None):
        started.append(Serve(home or tmp_path / "home", *arguments, env=env))
        return started[-1]

    yield start
    for service in started:
        for process in [*service.family(), service.process] if service.process.poll() is None else []:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                process.kill()
        service.process.wait(10)
        service._reader.join(10)
        service.process.stdout.close()


def assert_refused(service, *words):
    assert service.process.wait(30) == 2
    service._reader.join(10)
    lines = [line for line in service.said.splitlines() if line.startswith("backprobe: ")]
    assert len(lines) == 1, service.said
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in service.said


def test_a_snippet_goes_in_and_its_finding_comes_out(serve, samples):
    service = serve().ready(worker=True)
    run = service.get("/v1/runs?include=findings,tensors", {"source": samples.TUTORIAL}, Prefer="wait=30")
    assert run["status"] == "succeeded", run
    assert [finding["rule"]["code"] for finding in run["included"]["findings"]["items"]] == ["BP101"]
    assert {"x", "W", "b", "z", "loss"} <= {tensor["name"] for tensor in run["included"]["tensors"]["items"]}
    assert service.end() == 0, service.said
    assert (service.home.stat().st_mode & 0o777, (service.home / "secret").stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("theirs", [False, True])
def test_a_home_of_ours_is_closed_to_others_and_so_is_what_lies_in_it(serve, tmp_path, theirs):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    if theirs:
        (home / "thesis.tex").write_text("")
    service = serve(home=home).ready()
    service.wait_until(
        lambda: find_children(service, "reaper") and (home / "logs" / "worker-1.log").exists(), what="its children"
    )
    assert service.end() == 0, service.said
    made = [path for path in home.rglob("*") if path.name != "thesis.tex"]
    assert {path.name: oct(path.stat().st_mode & 0o077) for path in made if path.stat().st_mode & 0o077} == {}
    assert home / "backprobe.db" in made
    assert home.stat().st_mode & 0o777 == (0o755 if theirs else 0o700)


def test_a_second_serve_names_the_first_one(serve):
    first = serve("--no-worker").ready()
    assert_refused(serve("--no-worker"), first.url, "--home")
    assert first.end(signal.SIGINT) == 0


def test_after_a_kill_the_home_is_free_again_and_no_process_is_left(serve):
    service = serve().ready(worker=True)
    family = service.family()
    assert len(family) >= 2
    service.process.kill()
    service.process.wait(10)
    _gone, alive = psutil.wait_procs(family, timeout=15)
    assert alive == []
    assert serve("--no-worker").ready().end() == 0


def find_children(service, word):
    """Return the pids of the living children whose command has this word."""
    found = set()
    for child in service.family():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if word in child.cmdline():
                found.add(child.pid)
    return found


def test_the_first_lines_say_what_runs_get_now(serve):
    service = serve().ready(worker=True)
    service.wait_until(lambda: "Runs execute at isolation level " in service.said, 120, "the level was said")
    first, second = service.said.splitlines()[:2]
    assert first.endswith("Ctrl-C stops it. Now runs wait until the worker has proved its isolation.")
    (level,) = service.get("/readyz")["isolation"]["cpu"]["levels"]
    assert level == machine_level()
    assert second.startswith(f"Runs execute at isolation level {level}")
    assert service.end() == 0, service.said


def test_a_level_that_cannot_be_given_is_said_and_is_not_ready(serve, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    service = serve(env={"BACKPROBE_ISOLATION": "gvisor"}).ready()
    lacks = lacking("gvisor")
    assert any("runsc is not installed" in lack for lack in lacks)
    line = f"a worker cannot start: backprobe worker: isolation gvisor cannot be given here: {'; '.join(lacks)}"
    service.wait_until(lambda: line in service.said, 120, "it was said")
    with pytest.raises(urllib.error.HTTPError) as answer:
        service.get("/readyz")
    told = json.load(answer.value)
    answer.value.close()
    assert (answer.value.code, told["status"], told["isolation"]["cpu"]["state"]) == (503, "not-ready", "cannot-start")
    assert service.end() == 0, service.said


def test_a_worker_is_silent_by_our_own_clock_whatever_the_machines_says(clock):
    silence = Silence(clock)
    assert silence.find_silent({"h:1:a": "2026-11-20T10:00:00.000Z"}) == set()
    clock.now += 20
    assert silence.find_silent({"h:1:a": "2026-11-20T11:00:05.000Z"}) == set()  # it beat, by a clock that was set
    clock.now += 29
    assert silence.find_silent({"h:1:a": "2026-11-20T11:00:05.000Z", "h:2:b": "2026-11-20T09:00:00.000Z"}) == set()
    clock.now += 2
    assert silence.find_silent({"h:1:a": "2026-11-20T11:00:05.000Z", "h:2:b": "2026-11-20T09:00:00.000Z"}) == {"h:1:a"}
    silence.forget()
    assert silence.find_silent({"h:1:a": "2026-11-20T11:00:05.000Z"}) == set()


def test_a_killed_child_is_started_again(serve):
    service = serve().ready(worker=True)
    (reaper,) = service.wait_until(lambda: find_children(service, "reaper"), what="the reaper")
    os.kill(reaper, signal.SIGKILL)
    service.wait_until(lambda: find_children(service, "reaper") - {reaper}, what="another reaper")
    assert service.end() == 0, service.said


def test_a_taken_port_is_told_in_one_line(serve, tmp_path):
    first = serve("--no-worker").ready()
    port = first.url.rsplit(":", 1)[1]
    assert_refused(serve("--no-worker", "--port", port, home=tmp_path / "other"), f"127.0.0.1:{port}", "--port")


@pytest.mark.parametrize("port", ["99999", "65536", "-1", "+1", "http", ""])
@pytest.mark.parametrize("command", ["serve", "api"])
def test_a_port_that_is_none_is_a_usage_error(command, port, tmp_path):
    line = [sys.executable, "-m", "backprobe", command, "--home", str(tmp_path / "home"), f"--port={port}"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "is no port: it takes 0 to 65535" in ended.stderr
    assert not (tmp_path / "home").exists()


def test_a_home_that_cannot_be_written_is_told_in_one_line(serve, tmp_path):
    (tmp_path / "file").write_text("")
    assert_refused(serve("--no-worker", home=tmp_path / "file" / "home"), "cannot be written", "--home")


def test_a_newer_database_is_told_in_one_line_and_left_alone(serve, tmp_path):
    assert serve("--no-worker").ready().end() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "home" / "backprobe.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = 'from-the-future'")
        database.commit()
    assert_refused(serve("--no-worker"), "from-the-future")


def test_a_database_that_is_away_is_told_in_one_line(serve):
    assert_refused(
        serve("--no-worker", env={"BACKPROBE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}), "does not answer"
    )


def test_a_short_secret_is_told_in_one_line(serve, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").touch()
    assert_refused(serve("--no-worker"), "has 0 bytes and needs at least 32")


@pytest.mark.parametrize(
    ("environ", "module"),
    [
        ({"BACKPROBE_RATE_URL": "redis://127.0.0.1:1/0"}, "redis"),
        ({"BACKPROBE_SPANS_URL": "http://127.0.0.1:1/v1/traces"}, "opentelemetry.sdk"),
        (OIDC, "authlib"),
    ],
)
def test_a_module_that_a_setting_needs_is_named_before_the_start(tmp_path, monkeypatch, environ, module):
    find = required_modules.find_spec
    monkeypatch.setattr(required_modules, "find_spec", lambda name: None if name == module else find(name))
    settings = Settings.from_environment(environ, tmp_path)
    with pytest.raises(
        CannotServe, match=rf"BACKPROBE_\w+ cannot be used: the Python module `{module}` is not installed"
    ):
        required_modules.check_modules(settings)
    monkeypatch.undo()
    required_modules.check_modules(settings)


def test_the_api_alone_refuses_a_database_that_is_not_migrated(tmp_path):
    command = [sys.executable, "-m", "backprobe", "api", "--home", str(tmp_path / "home"), "--port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert "run `backprobe migrate` first" in line


def test_beyond_loopback_a_key_is_needed(serve):
    assert_refused(serve("--host", "0.0.0.0"), "BACKPROBE_API_KEY")
    for weak, said in (("a", "has 1 of the 32 characters"), ("a" * 32, "is one character repeated")):
        assert_refused(serve("--host", "0.0.0.0", env={"BACKPROBE_API_KEY": weak}), f"BACKPROBE_API_KEY {said}")
    key = "0123456789abcdef" * 2
    service = serve("--host", "0.0.0.0", "--no-worker", env={"BACKPROBE_API_KEY": key}).ready()
    with pytest.raises(urllib.error.HTTPError) as denied:
        service.get("/v1/runs")
    denied.value.close()
    assert denied.value.code == 401
    assert service.get("/v1/runs", Authorization=f"Bearer {key}")["items"] == []
    assert service.end() == 0, service.said


def test_no_key_reaches_a_child(serve):
    service = serve(env={"BACKPROBE_API_KEY": "k"}).ready()
    service.wait_until(lambda: len(service.family()) >= 2, what="children")
    for child in service.family():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            assert "BACKPROBE_API_KEY" not in child.environ()
    assert service.end() == 0, service.said


def test_stopping_answers_requests_that_wait(serve):
    service = serve("--no-worker").ready()
    run, heard = service.get("/v1/runs", {"source": "x = 1\n"}), []
    waiter = threading.Thread(target=lambda: heard.append(service.get(run["links"]["self"], Prefer="wait=30")))
    waiter.start()
    server = psutil.Process(service.process.pid)
    service.wait_until(
        lambda: [c for c in server.net_connections() if c.status == psutil.CONN_ESTABLISHED], what="the request came"
    )
    begun = time.monotonic()
    assert service.end() == 0, service.said
    assert time.monotonic() - begun < 8
    waiter.join(10)
    assert [told["status"] for told in heard] == ["queued"]


def test_the_demo_says_why_grad_is_none_and_adds_nothing_to_a_service_with_runs(serve):
    first = serve("--demo").ready()
    first.wait_until(lambda: "A training with" in first.said, 120, "both runs of the demo")
    for word in ("non-leaf-grad-read", "BP101", "is not a leaf", "backward calls", "/runs/run_"):
        assert word in first.said
    runs = first.get("/v1/runs")["items"]
    assert [run["labels"]["demo"] for run in runs] == ["showcase", "grad-is-none"]
    assert first.end(signal.SIGINT) == 0
    again = serve("--demo").ready()
    again.wait_until(lambda: "There are runs already, so the demo adds none" in again.said, 60, "the demo's line")
    assert [run["id"] for run in again.get("/v1/runs")["items"]] == [run["id"] for run in runs]
    assert again.end(signal.SIGINT) == 0
