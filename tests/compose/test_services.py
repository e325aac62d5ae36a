"""Each service's very command and environment, as processes: a snippet goes in at the API and its findings come out.

No container engine is needed: the names of hosts, the published port and the mount points are mapped to this machine;
Redis is started by its own command with its own password, PostgreSQL gets a role with its password in a database of
this test's own. Everything else is as docker-compose.yml says it.
"""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests.support.addresses import free_port
from tests.support.machine_level import machine_level
from tests.support.processes import Processes
from tests.support.waiting import wait_until
from workers.sandbox.levels.usable_cpus import usable_cpus

pytestmark = pytest.mark.usefixtures("full_tier")

SNIPPET = """\
import torch

x = torch.ones(3, requires_grad=True)
h = x * 2
loss = h.sum()
loss.backward()
print(h.grad)
"""
PASSWORDS = {
    "POSTGRES_PASSWORD": "pg" + uuid.uuid4().hex,
    "REDIS_PASSWORD": "re" + uuid.uuid4().hex,
    "BACKPROBE_API_KEY": uuid.uuid4().hex,
    "BACKPROBE_SECRET": uuid.uuid4().hex,
}
BIN = Path(sys.executable).parent
READY_SECONDS = 180


class Services:
    """The services of the file as processes on this machine."""

    def __init__(self, services: dict, folder: Path, places: dict[str, str]) -> None:
        self.services, self.places = services, places
        self.running: dict[str, psutil.Popen] = {}
        self._processes = Processes(folder)

    def mapped(self, text: str) -> str:
        for written, here in self.places.items():
            text = text.replace(written, here)
        return text

    def command(self, name: str, health: bool = False) -> list[str]:
        """A service's command, or its health check's, as the container would start it."""
        service = self.services[name]
        words = service["healthcheck"]["test"][1:] if health else service["command"]
        if not health and service["image"].startswith("backprobe:"):
            words = ["backprobe", *words]  # the image's entry point
        program = {"backprobe": str(BIN / "backprobe"), "python": sys.executable}.get(words[0], words[0])
        return [program, *(self.mapped(word) for word in words[1:])]

    def environment(self, name: str) -> dict[str, str]:
        """A service's environment without any variable of Backprobe."""
        found = self.services[name].get("environment", {})
        return {key: self.mapped(value) for key, value in found.items() if value is not None}

    def start(self, name: str, *more: str) -> None:
        self.running[name] = self._processes.start(
            [*self.command(name), *more], self.environment(name), name=name, cwd="/"
        )

    def run_to_end(self, name: str) -> int:
        self.start(name)
        return self.running[name].wait(READY_SECONDS)

    def healthy(self, name: str) -> bool:
        """What the service's own health check says now."""
        process = self.running[name]
        assert process.poll() is None, f"{name} ended with {process.returncode}:\n{self.read_output(name)}"
        command = self.command(name, health=True)
        return (
            subprocess.run(
                command, env=self.environment(name), cwd="/", capture_output=True, check=False, timeout=60
            ).returncode
            == 0
        )

    def wait_healthy(self, name: str) -> None:
        wait_until(lambda: self.healthy(name), lambda: f"{name} is healthy:\n{self.read_output(name)}", READY_SECONDS)

    def read_output(self, name: str) -> str:
        return self._processes.read_output(self.running[name])[-4000:]

    def stop(self) -> None:
        """End all, in reverse; what does not end by itself is killed."""
        for process in reversed(self.running.values()):
            self._processes.stop(process)
        self._processes.kill()


@pytest.fixture(scope="module")
def role(module_empty_postgres_url):
    """A role with the password of the file's variable, who owns nothing but this module's database."""
    import psycopg

    name = f"backprobe_{uuid.uuid4().hex[:8]}"
    database = urlsplit(module_empty_postgres_url).path.lstrip("/")
    with psycopg.connect(module_empty_postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '{PASSWORDS['POSTGRES_PASSWORD']}'")
        admin.execute(f'ALTER DATABASE "{database}" OWNER TO "{name}"')
        admin.execute(f'GRANT ALL ON SCHEMA public TO "{name}"')
        yield name, database
        admin.execute(f'REASSIGN OWNED BY "{name}" TO CURRENT_USER')
        admin.execute(f'DROP OWNED BY "{name}"')
        admin.execute(f'DROP ROLE "{name}"')


@pytest.fixture(scope="module")
def stack(compose_with, role, require, module_empty_postgres_url, tmp_path_factory):
    require("redis")
    require("redis-server")
    folder = tmp_path_factory.mktemp("compose")
    (folder / "socket").mkdir(mode=0o700)
    (folder / "data").mkdir(mode=0o700)
    user, database = role
    where = urlsplit(module_empty_postgres_url)
    redis_port, api_port = free_port(), free_port()
    places = {
        "//backprobe:": f"//{user}:",
        "@postgres:5432/backprobe": f"@{where.hostname}:{where.port}/{database}",
        "@redis:6379": f"@127.0.0.1:{redis_port}",
        "127.0.0.1:8000": f"127.0.0.1:{api_port}",
        "8000": str(api_port),
        "0.0.0.0": "127.0.0.1",
        "/run/backprobe": str(folder / "socket"),
        "/tmp/backprobe": str(folder / "home"),
        "/data/": f"{folder}/data/",
    }
    stack = Services(compose_with(PASSWORDS)["services"], folder, places)
    try:
        stack.start("redis", "--port", str(redis_port), "--dir", str(folder))
        wait_until(lambda: _listens(redis_port), "redis listens")
        assert stack.run_to_end("migrate") == 0, stack.read_output("migrate")
        for name in ("executor-cpu", "api", "reaper", "worker-cpu"):
            stack.start(name)
        for name in ("api", "executor-cpu", "worker-cpu", "reaper"):
            stack.wait_healthy(name)
        stack.port = api_port
        yield stack
    finally:
        stack.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ask(
    stack: Services, method: str, path: str, body=None, key: str | None = PASSWORDS["BACKPROBE_API_KEY"], **headers
):
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=60)
    named = {"Content-Type": "application/json"} | headers
    if key is not None:
        named["Authorization"] = f"Bearer {key}"
    with contextlib.closing(connection):
        connection.request(method, path, None if body is None else json.dumps(body), named)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")


def finished(stack: Services, source: str):
    status, run = ask(stack, "POST", "/v1/runs", {"source": source}, Prefer="wait=30")
    assert status in (200, 202), run
    wait_until(
        lambda: ask(stack, "GET", f"/v1/runs/{run['id']}")[1]["ended"],
        lambda: stack.read_output("worker-cpu") + stack.read_output("executor-cpu"),
    )
    return ask(stack, "GET", f"/v1/runs/{run['id']}")[1]


def test_a_snippet_goes_through_all_services_to_its_findings(stack):
    run = finished(stack, SNIPPET)
    assert run["status"] == "succeeded", run
    status, findings = ask(stack, "GET", f"/v1/runs/{run['id']}/findings")
    assert status == 200, (findings, stack.read_output("api"))
    assert [finding["rule"]["code"] for finding in findings["items"]] == ["BP101"]


def test_the_run_says_which_isolation_it_had(stack):
    isolation = finished(stack, "import torch")["isolation"]
    assert isolation["level"] == machine_level()
    assert isolation["attested"] == (machine_level() != "none")


def test_the_executor_holds_no_environment_but_empty_settings_of_the_sandbox(stack):
    pid = stack.running["executor-cpu"].pid
    held = Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0").split(b"\0")
    assert all(entry.startswith(b"BACKPROBE_") and entry.endswith(b"=") for entry in held), held


def test_no_process_shows_a_password_in_its_command_line(stack):
    alive = [process for name, process in stack.running.items() if name != "migrate"]
    for process in alive:
        words = " ".join(process.cmdline())
        assert not any(secret in words for secret in PASSWORDS.values()), words


def test_the_worker_has_slots_for_the_processors_of_its_executor(stack):
    (worker,) = ask(stack, "GET", "/v1/workers")[1]["items"]
    assert worker["slots"] == int(2 * usable_cpus())


def test_a_snippet_sees_no_secret_and_no_address(stack):
    source = "import os, torch\nprint('|'.join(f'{k}={v}' for k, v in os.environ.items()))\n"
    run = finished(stack, source)
    assert run["status"] == "succeeded", run
    _, told = ask(stack, "GET", f"/v1/runs/{run['id']}")
    seen = json.dumps(told)
    assert not any(secret in seen for secret in (*PASSWORDS.values(), "BACKPROBE_DATABASE_URL", "BACKPROBE_BROKER_URL"))


def test_the_snippet_ran_in_the_executor_and_not_in_the_worker(stack):
    status, run = ask(stack, "POST", "/v1/runs", {"source": "import time, torch\ntime.sleep(20)\n"})
    assert status == 202
    executor = psutil.Process(stack.running["executor-cpu"].pid)
    before = len(executor.children(recursive=True))
    try:
        wait_until(lambda: len(executor.children(recursive=True)) > before or before > 1, "a child of the executor")
    finally:
        ask(stack, "POST", f"/v1/runs/{run['id']}/cancel")
    wait_until(lambda: ask(stack, "GET", f"/v1/runs/{run['id']}")[1]["ended"], "the canceled run ends")


@pytest.mark.parametrize("key", [None, "wrong"])
def test_without_the_key_nothing_is_answered(stack, key):
    assert ask(stack, "GET", "/v1/runs", key=key)[0] == 401


def test_the_api_refuses_to_start_without_a_key(stack):
    environment = {name: value for name, value in stack.environment("api").items() if name != "BACKPROBE_API_KEY"}
    command = [str(BIN / "backprobe"), *stack.services["api"]["command"]]  # 0.0.0.0, as in the container
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "BACKPROBE_API_KEY" in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_redis_refuses_who_has_no_password(stack):
    import redis

    port = int(stack.places["@redis:6379"].rsplit(":", 1)[1])
    with pytest.raises(redis.AuthenticationError), redis.Redis(port=port) as client:
        client.ping()
