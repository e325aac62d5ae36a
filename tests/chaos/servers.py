"""Servers of the test's own, on ports of their own, that may be killed: PostgreSQL, Redis, RabbitMQ."""

import os
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path

from tests.support.addresses import free_port

START_SECONDS = 90


def binary(name: str, *folders: str) -> str:
    """Path of a server's program.

    Raises:
        SystemExit: it is not installed.
    """
    places = [str(path) for pattern in folders for path in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)]
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if found is None:
        raise SystemExit(f"{name} is not installed: the chaos of servers needs it; `--small` uses servers that run")
    return found


class Server(ABC):
    """One server process; `kill` and `start` again as often as you like.

    Args:
        folder: Its data; made and filled by `prepare`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen | None = None
        folder.mkdir(parents=True)
        self.prepare()
        self.start()

    def prepare(self) -> None:  # noqa: B027 - most have nothing to prepare
        """Make the data folder's content."""

    @abstractmethod
    def command(self) -> list[str]:
        """What starts the server."""

    def environment(self) -> dict[str, str]:
        return {}

    user: str | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        with (self.folder.parent / f"{type(self).__name__}.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                env=os.environ | self.environment(),
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,
                cwd=self.folder,
            )
        deadline = time.monotonic() + START_SECONDS
        while wait and not self.answers():
            if time.monotonic() > deadline or not self.alive:
                raise SystemExit(f"{self.command()[0]} did not start; see its log in {self.folder.parent}")
            time.sleep(0.1)

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self._process is not None:
            if self.alive:
                os.killpg(self._process.pid, number)
            self._process.wait(60)


class Postgres(Server):
    """A cluster; `kill` is an immediate shutdown, which leaves recovery to the next start."""

    user = "postgres" if os.getuid() == 0 else None

    def prepare(self) -> None:
        if self.user:
            shutil.chown(self.folder, self.user)
        initdb = binary("initdb", "/usr/lib/postgresql/*/bin")
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--wal-segsize=4"]
        done = subprocess.run(
            [initdb, "-D", self.folder, *options], user=self.user, cwd="/", capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)

    def command(self) -> list[str]:
        settings = {"max_connections": 200, "max_wal_size": "64MB", "shared_buffers": "64MB"}
        more = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        where = ["-D", str(self.folder), "-p", str(self.port), "-k", str(self.folder), "-h", "127.0.0.1"]
        return [binary("postgres", "/usr/lib/postgresql/*/bin"), *where, *more]

    def answers(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.url, connect_timeout=2) as connection:
                connection.execute("select 1")
        except psycopg.Error:
            return False
        return True

    def kill(self, number: int = signal.SIGQUIT) -> None:
        if self._process is not None and self.alive:
            self._process.send_signal(number)
            self._process.wait(60)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"


class Redis(Server):
    """In memory only: what it held is lost with it, as a wake-up may be."""

    def command(self) -> list[str]:
        return [
            binary("redis-server"),
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class RabbitMQ(Server):
    """A separate node."""

    def command(self) -> list[str]:
        return [binary("rabbitmq-server", "/usr/lib/rabbitmq/bin")]

    def environment(self) -> dict[str, str]:
        plugins = self.folder / "plugins"
        plugins.write_text("[].\n")
        config = self.folder / "rabbitmq.conf"  # else the machine's own would be read, with its port
        config.write_text(f"listeners.tcp.default = 127.0.0.1:{self.port}\n")
        (self.folder / "rabbitmq-env.conf").touch()
        return {
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"chaos{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": str(config),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "rabbitmq-env.conf"),
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
        }

    def prepare(self) -> None:
        self._dist_port = free_port()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"
