"""The small storm: two hundred runs on each stack while workers, children and the reaper are killed and cut off.

`make chaos` has the whole one, with separate servers that are restarted, cut off and out of disk.
"""

import subprocess
import sys
from pathlib import Path

import pytest

RUNS = 200
SECONDS = 900
"""Long beyond any machine's load; the storm itself ends when nothing moves any more."""


@pytest.fixture(autouse=True)
def _a_wrong_clock_can_be_compiled(require) -> None:
    require("compiler")


def storm(stack: str, **urls: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.chaos", "--small", "--runs", str(RUNS), "--stacks", stack]
    environment = {f"BACKPROBE_TEST_{name.upper()}": url for name, url in urls.items()}
    return subprocess.run(
        ["env", *(f"{name}={value}" for name, value in environment.items()), *command],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def untouched(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0 and f"{RUNS} runs in " in done.stdout and "nothing lost, nothing doubled" in done.stdout


@pytest.mark.timeout(SECONDS + 60)
def test_no_run_is_lost_or_doubled_embedded() -> None:
    done = storm("embedded")
    assert untouched(done), done.stdout + done.stderr


@pytest.mark.timeout(SECONDS + 60)
def test_no_run_is_lost_or_doubled_on_postgresql_and_redis(postgres_url: str, redis_url: str) -> None:
    done = storm("redis", postgres=postgres_url, redis=redis_url)
    assert untouched(done), done.stdout + done.stderr


@pytest.mark.timeout(SECONDS + 60)
def test_no_run_is_lost_or_doubled_on_postgresql_and_rabbitmq(postgres_url: str, rabbitmq_url: str) -> None:
    done = storm("rabbitmq", postgres=postgres_url, rabbitmq=rabbitmq_url)
    assert untouched(done), done.stdout + done.stderr
