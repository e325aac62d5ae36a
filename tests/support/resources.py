"""Servers and programs that a test needs, by name: looked for, required, and what would bring an absent one.

A test asks with `require("chromium")`. Absent, the test is skipped under that name; it fails instead when the environment
variable BACKPROBE_REQUIRE lists it. A skip is never a pass: `summary.py` lists them at the end of each run.
"""

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]

POSTGRES = os.environ.get("BACKPROBE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("BACKPROBE_TEST_REDIS", "redis://127.0.0.1:6379/0")
RABBITMQ = os.environ.get("BACKPROBE_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something that a machine may lack.

    Attributes:
        present: Looks for it now.
        command: What brings it, for a person at a shell.
    """

    present: Callable[[], bool]
    command: str


def answers(url: str) -> bool:
    """Something listens at this URL's host and port."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 0), timeout=2):
            return True
    except OSError:
        return False


@cache
def _postgres_lets_us_in() -> bool:
    """A server is there and takes this user; Debian's asks for a password that nobody has set."""
    import psycopg

    try:
        psycopg.connect(POSTGRES, connect_timeout=5).close()
    except psycopg.Error:
        return False
    return True


def chromium_path() -> str | None:
    """Path of the browser's program, None without one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def examples_folder() -> Path:
    """A checkout of github.com/pytorch/examples, where BACKPROBE_EXAMPLES says; nothing of it is kept here."""
    return Path(os.environ.get("BACKPROBE_EXAMPLES") or ROOT / "absent")


def _cuda_works() -> bool:
    """torch finds a CUDA device here; asked only where a test needs one, for it loads torch."""
    import torch

    return torch.cuda.is_available()


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


RESOURCES: dict[str, Resource] = {
    "postgres": Resource(
        present=_postgres_lets_us_in,
        command="apt-get install postgresql && service postgresql start && "
        'su postgres -c "psql -c \\"ALTER USER postgres PASSWORD \'test\'\\"" && '
        "BACKPROBE_TEST_POSTGRES=postgresql://postgres:test@127.0.0.1:5432/postgres make test",
    ),
    "redis": Resource(
        present=lambda: answers(REDIS),
        command="apt-get install redis-server && redis-server --daemonize yes   # or BACKPROBE_TEST_REDIS=redis://...",
    ),
    "rabbitmq": Resource(
        present=lambda: answers(RABBITMQ),
        command="apt-get install rabbitmq-server && rabbitmq-server -detached   # or BACKPROBE_TEST_RABBITMQ=amqp://...",
    ),
    "chromium": Resource(present=lambda: chromium_path() is not None, command="apt-get install chromium"),
    "assets": Resource(
        present=(ROOT / "service" / "dashboard" / "static" / "dist" / "manifest.json").is_file,
        command="make web",
    ),
    "curl": Resource(present=_program("curl"), command="apt-get install curl"),
    "bubblewrap": Resource(present=_program("bwrap"), command="apt-get install bubblewrap"),
    "runsc": Resource(present=_program("runsc"), command="apt-get install runsc"),
    "redis-server": Resource(present=_program("redis-server"), command="apt-get install redis-server"),
    "sqlite3": Resource(present=_program("sqlite3"), command="apt-get install sqlite3"),
    "git": Resource(present=_program("git"), command="apt-get install git"),
    "compiler": Resource(present=_program("g++", "clang++"), command="apt-get install g++ libc6-dev python3-dev"),
    "core": Resource(
        present=lambda: any((ROOT / "backprobe" / "capture").glob(f"_core{EXTENSION_SUFFIXES[0]}")),
        command="apt-get install gcc libc6-dev python3-dev && make core",
    ),
    "vscode-tools": Resource(
        present=lambda: (
            (ROOT / "editors" / "vscode" / "node_modules" / "typescript").is_dir() and shutil.which("node") is not None
        ),
        command="make vscode",
    ),
    "cuda": Resource(present=_cuda_works, command="run on a machine with a CUDA device, with a CUDA build of torch"),
    "examples": Resource(
        present=lambda: examples_folder().is_dir(),
        command="git clone https://github.com/pytorch/examples && BACKPROBE_EXAMPLES=$PWD/examples make test",
    ),
}
"""What a test may require."""


def required(name: str) -> bool:
    """BACKPROBE_REQUIRE lists this name: a test that lacks it fails."""
    return name in os.environ.get("BACKPROBE_REQUIRE", "").replace(" ", "").split(",")


def require(name: str) -> None:
    """Skip the test, by name, when `name` is absent; fail it when BACKPROBE_REQUIRE lists it.

    Raises:
        KeyError: `name` is not in `RESOURCES`.
    """
    if not RESOURCES[name].present():
        lack(name, f"{name} is not there")


def lack(name: str, reason: str) -> None:
    """Skip or fail, as `require` does, for a reason that was found in another way."""
    if required(name):
        pytest.fail(f"{name} is required (BACKPROBE_REQUIRE): {reason}", pytrace=False)
    pytest.skip(reason)
