"""A service to measure: `backprobe serve` with a temporary home, embedded or on PostgreSQL and Redis."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

POSTGRES = os.environ.get("BACKPROBE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("BACKPROBE_TEST_REDIS", "redis://127.0.0.1:6379/15")
READY_SECONDS = 90


@dataclass
class Service:
    """A running service and one connection to it, kept open as an editor would."""

    process: subprocess.Popen[bytes]
    port: int
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """Status and decoded body of one request."""
        sent = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request(method, path, sent, named | {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def run(self, source: str, wait: int = 30, include: str = "") -> dict[str, Any]:
        """Submit a snippet and wait for its end; the answer includes what is named.

        Raises:
            RuntimeError: it was refused, or has not succeeded within `wait` seconds.
        """
        status, run = self.ask(
            "POST", f"/v1/runs{include and '?include='}{include}", {"source": source}, Prefer=f"wait={wait}"
        )
        if status != 200 or run["status"] != "succeeded":
            raise RuntimeError(f"{status}: {json.dumps(run)[:600]}")
        return run


def free_port() -> int:
    """A TCP port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(environ: Mapping[str, str], *arguments: str) -> Iterator[Service]:
    """`backprobe serve` on a free port until the block ends.

    Raises:
        RuntimeError: it was not ready within 90 s; the message holds what it printed.
    """
    with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home:
        port = free_port()
        said = Path(home, "serve.log")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BACKPROBE_")}
        command = [str(Path(sys.executable).with_name("backprobe")), "serve", "--port", str(port), *arguments]
        with said.open("wb") as out:
            process = subprocess.Popen(
                command, env=environment | {"BACKPROBE_HOME": home} | environ, stdout=out, stderr=subprocess.STDOUT
            )
        service = Service(process, port)
        try:
            _until_ready(service, said)
            yield service
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until_ready(service: Service, said: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and service.process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if service.ask("GET", "/readyz")[0] == 200:
                return
        service.connection.close()
        time.sleep(0.1)
    raise RuntimeError(f"the service is not ready:\n{said.read_text()[-3000:]}")


@contextlib.contextmanager
def stores(name: str) -> Iterator[dict[str, str]]:
    """The environment of a stack: "embedded", or "PostgreSQL + Redis" with a fresh database."""
    if name == "embedded":
        yield {}
        return
    import psycopg
    import redis

    database = f"backprobe_bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(POSTGRES, autocommit=True) as admin, redis.Redis.from_url(REDIS) as broker:
        admin.execute(f'CREATE DATABASE "{database}"')
        broker.flushdb()
        try:
            yield {
                "BACKPROBE_DATABASE_URL": urlunsplit(urlsplit(POSTGRES)._replace(path=f"/{database}")),
                "BACKPROBE_BROKER_URL": REDIS,
            }
        finally:
            broker.flushdb()
            admin.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
