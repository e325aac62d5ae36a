"""A zygote goes on warming up in its pauses; that is no wear. What it does not catch on its way is a line of the log."""

import json
import subprocess
import sys

import pytest

from backprobe.isolation import ISOLATION_LEVELS
from tests.support.addresses import own_uid
from workers.sandbox.levels.names import Confinement, as_arguments, from_arguments
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.start import supervisor_for
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

pytestmark = pytest.mark.usefixtures("sandbox")

DYNAMO_MAPPED = 60 << 20
"""Resident bytes that the first optimizer adds at least: torch imports its compiler then."""


def test_warming_up_in_a_pause_does_not_wear_a_zygote_out(zygotes, wait_until):
    known = set(zygotes())
    with Supervisor(exec_zygote) as supervisor:
        assert supervisor.wait_warm(60)
        [zygote] = set(zygotes()) - known
        at_first = zygote.memory_info().rss
        wait_until(lambda: zygote.memory_info().rss > at_first + DYNAMO_MAPPED, "warmer")
        for _ in range(4):
            assert supervisor.run(Job(files={"main.py": "import torch"}, entry="main.py")).status == "succeeded"
        assert set(zygotes()) - known == {zygote}


def test_a_worker_that_is_to_warm_no_further_has_its_zygote_ready_at_once_and_to_the_last():
    asked = WorkerSettings(isolation="none", trust_code=True, sandbox_uid=own_uid(), warm_further=False)
    with supervisor_for(asked, "cpu") as supervisor:
        assert supervisor.wait_warm(120), supervisor.failure
        assert not supervisor._watch.pool.current.ready.warms_on
        job = Job(files={"main.py": "import sys, torch\nprint('torch._dynamo' in sys.modules)"}, entry="main.py")
        assert supervisor.run(job).facts.stdout == b"False\n"


def test_a_zygote_of_any_level_is_told_whether_it_goes_on_warming_up():
    for level in ISOLATION_LEVELS:
        words = as_arguments(Confinement(level=level), 5, further=False)
        assert not from_arguments(["7", *words]).further
        assert from_arguments(["7", *as_arguments(Confinement(level=level), 5)]).further


@pytest.mark.parametrize(
    "words",
    [("process.zygote", "999", "--calls", "998"), ("gvisor.guest", "999", "--calls", "998"), ("gpu.keeper", "999")],
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
    assert any(f"{name.rpartition('.')[2]}.py" in place for place in told["trace"])
