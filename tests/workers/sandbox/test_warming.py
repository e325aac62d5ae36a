"""A zygote goes on warming up in its pauses; that is no wear. What it does not catch on its way is a line of the log."""

import json
import subprocess
import sys

import pytest

from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

DYNAMO_MAPPED = 60 << 20
"""Resident bytes that the first optimizer adds at least: torch imports its compiler then."""


def test_warming_up_in_a_pause_does_not_wear_a_zygote_out(zygotes, until):
    known = set(zygotes())
    with Supervisor(exec_zygote) as supervisor:
        assert supervisor.wait_warm(60)
        [zygote] = set(zygotes()) - known
        at_first = zygote.memory_info().rss
        until(lambda: zygote.memory_info().rss > at_first + DYNAMO_MAPPED, "warmer")
        for _ in range(4):
            assert supervisor.run(Job(files={"main.py": "import torch"}, entry="main.py")).status == "succeeded"
        assert set(zygotes()) - known == {zygote}


@pytest.mark.parametrize(
    "words", [("zygote", "999", "--calls", "998"), ("guest", "999", "--calls", "998"), ("keeper", "999")]
)
def test_what_a_process_beside_the_child_does_not_catch_is_one_line_of_the_log(words):
    name, *arguments = words
    command = [sys.executable, "-m", f"workers.sandbox.{name}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    (line,) = done.stderr.splitlines()
    told = json.loads(line)
    assert done.returncode == 1
    assert (told["logger"], told["level"], told["error"]) == (f"workers.sandbox.{name}", "critical", "OSError")
    assert "Bad file descriptor" in told["text"]
    assert any(f"{name}.py" in place for place in told["trace"])
