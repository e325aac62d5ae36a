"""Worker and reaper as real processes on real servers: killed, drained, canceled, woken too often or not at all."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from store.admin import workers
from store.runs import lifecycle
from tests.support.machine_level import machine_level
from tests.support.processes import inherited
from tests.support.waiting import wait_until
from workers.sandbox.levels import capabilities

pytestmark = pytest.mark.usefixtures("sandbox")

SLOW = "import torch, time\nx = torch.ones(2, requires_grad=True)\ntime.sleep({seconds})\n(x * x).sum().backward()\n"
LEASE = {"BACKPROBE_LEASE_SECONDS": "4"}


def family(process: psutil.Popen) -> list[psutil.Process]:
    return process.children(recursive=True)


def offered(stack) -> workers.Offer:
    with stack.database.read() as transaction:
        return workers.combine_offers(transaction, "cpu")


def holds(process: psutil.Process, name: str) -> bool:
    """Whether a process, whatever it sees of the file system, has a file of that name open."""
    try:
        return any(os.readlink(link).endswith(f"/{name}") for link in Path(f"/proc/{process.pid}/fd").iterdir())
    except OSError:
        return False  # it, or one of its descriptors, is gone


def has_ended(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def test_a_run_goes_from_submit_to_findings(served):
    source = "import torch\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny.sum().backward()\nprint(y.grad)\n"
    row = served.wait_for_end(served.submit(source))
    assert (row.status, row.attempt, row.error) == ("succeeded", 1, None)
    assert row.isolation is not None
    assert row.isolation["level"] == machine_level()
    assert row.isolation["attested"] == (machine_level() != "none")
    assert row.record.state == "whole"
    assert row.record.tensors >= 2
    assert row.findings.error + row.findings.warning + row.findings.note >= 1
    assert row.outcome.exit_code == 0


def test_a_worker_killed_in_a_run_costs_time_and_not_the_run(stack):
    first = stack.start("worker", **LEASE)
    stack.start("reaper")
    public_id = stack.submit(SLOW.format(seconds=3))
    stack.running(public_id)
    stack.wait(lambda: len(family(first)) >= 2, "the child is there")
    below = family(first)
    first.kill()
    stack.wait(lambda: has_ended(below), "nothing of the killed worker is left")
    stack.start("worker", **LEASE)
    row = stack.wait_for_end(public_id)
    assert (row.status, row.attempt) == ("succeeded", 2)
    assert row.record.attempt == 2


def test_a_killed_child_costs_an_attempt_and_not_the_run(served):
    worker = served.processes.started[0]
    public_id = served.submit("import string, time\nmark = open(string.__file__)\ntime.sleep(4)")
    child = served.wait(
        lambda: [process for process in family(worker) if holds(process, "string.py")], "a program that runs"
    )
    child[0].kill()
    row = served.wait_for_end(public_id)
    assert row.isolation is not None
    if row.isolation["level"] == "none":  # there a program can do that to itself
        assert (row.status, row.outcome.signal, row.attempt) == ("failed", signal.SIGKILL, 1)
    else:
        assert (row.status, row.attempt) == ("succeeded", 2)


def test_a_killed_zygote_costs_no_attempt(served):
    worker = served.processes.started[0]
    public_id = served.submit(SLOW.format(seconds=2))
    served.running(public_id)
    zygote = served.wait(lambda: [child for child in worker.children() if child.children()], "a zygote with a child")
    zygote[0].kill()
    row = served.wait_for_end(public_id)
    assert (row.status, row.attempt) == ("succeeded", 1)


def test_a_cancel_is_heard_within_seconds_and_keeps_the_record(served):
    public_id = served.submit("import torch\nx = torch.ones(2, requires_grad=True)\nwhile True: pass")
    served.running(public_id)
    with served.database.begin() as transaction:
        lifecycle.request_cancel(transaction, public_id)
    row = served.wait_for_end(public_id)
    assert row.status == "canceled"
    assert row.error is not None
    assert row.error.whose == "asked"


def test_a_drained_worker_finishes_what_it_has_in_hand(stack):
    worker = stack.start("worker")
    public_id = stack.submit(SLOW.format(seconds=2))
    waiting = stack.running(public_id)
    worker.terminate()
    assert worker.wait(30) == 0
    row = stack.run(public_id)
    assert (row.status, row.attempt, row.max_attempts) == ("succeeded", 1, waiting.max_attempts)


def test_a_drained_worker_hands_back_what_takes_too_long(stack):
    worker = stack.start("worker", BACKPROBE_DRAIN_SECONDS="1")
    public_id = stack.submit("import time\ntime.sleep(60)")
    before = stack.running(public_id)
    worker.terminate()
    assert worker.wait(30) == 0
    row = stack.run(public_id)
    assert (row.status, row.attempt, row.max_attempts) == ("queued", 1, before.max_attempts + 1)
    with stack.database.read() as transaction:
        assert workers.live(transaction) == ()


def test_a_doubled_wakeup_runs_once_and_a_lost_one_is_sent_again(served):
    doubled = served.submit("print(1)")
    for _ in range(5):
        served.publish("cpu")
    lost = served.submit("print(2)", wake=False)
    for public_id in (doubled, lost):
        row = served.wait_for_end(public_id)
        assert (row.status, row.attempt) == ("succeeded", 1)


def test_a_burst_is_run_whole_by_two_workers(served):
    second = served.start("worker", "--concurrency", "2")
    served.wait(lambda: offered(served).idle_slots >= 4, "both workers offer their slots")
    ids = [served.submit(f"print({n})") for n in range(20)]
    rows = [served.wait_for_end(public_id, 90) for public_id in ids]
    assert {(row.status, row.attempt) for row in rows} == {("succeeded", 1)}
    second.terminate()
    assert second.wait(30) == 0


def test_two_reapers_do_no_harm(served):
    served.start("reaper")
    public_id = served.submit("print(1)", wake=False)
    assert served.wait_for_end(public_id).attempt == 1


def test_a_run_whose_sandbox_breaks_every_time_is_lost(embedded):
    embedded.start("worker", BACKPROBE_ISOLATION="none", BACKPROBE_TRUST_CODE="1")  # where a program can do that
    embedded.start("reaper")
    public_id = embedded.submit("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(60)", max_attempts=2)
    row = embedded.wait_for_end(public_id, 120)
    assert (row.status, row.attempt) == ("lost", 2)
    assert row.error is not None
    assert row.error.whose == "ours"
    assert embedded.wait_for_end(embedded.submit("print(1)")).status == "succeeded"


def test_a_worker_goes_when_its_serve_has_gone(embedded):
    code = (
        "import os, subprocess, sys, time\n"
        "env = dict(os.environ, BACKPROBE_PARENT_PID=str(os.getpid()))\n"
        "one = subprocess.Popen([sys.executable, '-m', 'backprobe', 'worker'], env=env)\n"
        "print('worker', one.pid, flush=True)\n"
        "time.sleep(3600)\n"
    )
    serve = embedded.processes.start([sys.executable, "-c", code], inherited() | embedded.environment, name="serve")
    said = embedded.wait(lambda: re.search(r"^worker (\d+)\n", embedded.log(), re.MULTILINE), "the worker's pid")
    worker = psutil.Process(int(said[1]))
    public_id = embedded.submit("import time\ntime.sleep(60)")
    embedded.running(public_id)
    below = [worker, *worker.children(recursive=True)]
    serve.kill()
    embedded.wait(lambda: has_ended(below), "the worker and all below it have gone")
    assert embedded.run(public_id).status == "queued"  # no reaper is there: the worker handed it back before it left


@pytest.mark.parametrize("most", [30.0, 0.5], ids=["in time", "never done"])
def test_a_worker_without_a_parent_is_not_cut_off_while_it_hands_runs_back(most, tmp_path):
    code = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from workers import process\n"
        f"process.LEAVE_SECONDS, process.HAND_BACK_SECONDS = 0.1, {most}\n"
        "folder, in_hand = Path(sys.argv[1]), ['a run']\n"
        "def leave():\n"
        f"    time.sleep({2 if most > 2 else 3600})\n"
        "    (folder / 'handed back').touch()\n"
        "    in_hand.clear()\n"
        "    time.sleep(3600)\n"
        "process.watch_parent(os.getppid(), leave, lambda: len(in_hand))\n"
        "(folder / 'watches').touch()\n"
        "time.sleep(3600)\n"
    )
    parent = "import subprocess, sys\nprint(subprocess.Popen([sys.executable, *sys.argv[1:]]).pid, flush=True)\ninput()"
    command = [sys.executable, "-c", parent, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = psutil.Process(int(process.stdout.readline()))
        wait_until((tmp_path / "watches").exists, "it watches")
        process.kill()
    wait_until(lambda: has_ended([worker]), "it has left, by force")
    assert (tmp_path / "handed back").exists() == (most > 2)


def test_no_line_of_a_log_holds_a_strangers_text(stack):
    worker = stack.start("worker", BACKPROBE_DRAIN_SECONDS="0")
    stack.start("reaper")
    source = "import torch\nsecret_name = 'MARKED'\nprint('MARKED')\nraise ValueError('MARKED')"
    trace_id, parent_id = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    judged = stack.submit(source, traceparent=f"00-{trace_id}-{parent_id}-01")
    assert stack.wait_for_end(judged).status == "failed"
    stack.running(stack.submit("import time  # MARKED\ntime.sleep(60)"))
    worker.terminate()
    worker.wait(90)
    assert "MARKED" not in stack.log()
    lines = [json.loads(line) for line in stack.log().splitlines() if line.startswith("{")]  # Celery says good-bye
    begins, ended = (line for line in lines if line.get("run") == judged)
    for line in (begins, ended):
        told = (line["attempt"], line["tenant"], line["trace_id"], line["parent_id"])
        assert told == (1, 1, trace_id, parent_id)
    assert (begins["event"], ended["event"], ended["status"]) == (
        "an attempt begins",
        "an attempt has ended",
        "failed",
    )
    assert ended["ms"] > 0


def test_a_worker_works_through_an_executor(embedded):
    socket = str(embedded.folder / "executor.sock")
    embedded.start("worker", BACKPROBE_EXECUTOR=socket)
    public_id = embedded.submit("print(1)")
    embedded.start("executor", "--socket", socket)  # it comes late, as containers do
    row = embedded.wait_for_end(public_id)
    assert row.status == "succeeded"
    assert row.isolation is not None
    assert row.isolation["executor"] is True


def test_the_worker_says_what_it_offers_and_its_check_sees_it(stack):
    check = [sys.executable, "-m", "backprobe", "worker", "--check"]
    environment = {"PATH": os.environ["PATH"], **stack.environment}
    nobody = subprocess.run(check, env=environment, check=False, capture_output=True, text=True)
    assert nobody.returncode == 3
    assert len(nobody.stderr.splitlines()) == 1
    stack.start("worker", "--concurrency", "3")

    found = stack.wait(lambda: (found := offered(stack)).levels and found, "a worker offers something")
    given = tuple(level for level, lacks in capabilities.table() if not lacks and level != "gvisor")
    assert given[0] == "none"
    assert (found.levels, found.devices, found.idle_slots) == (given, ("cpu",), 3)
    assert subprocess.run(check, env=environment, check=False).returncode == 0


def test_the_reapers_check_sees_its_last_round(embedded):
    check = [sys.executable, "-m", "backprobe", "reaper", "--check"]
    environment = {"PATH": os.environ["PATH"], **embedded.environment}
    assert subprocess.run(check, env=environment, check=False, stderr=subprocess.DEVNULL).returncode == 3
    embedded.start("reaper")
    embedded.wait((embedded.settings.home / "reaper.beat").exists, "the first round")
    assert subprocess.run(check, env=environment, check=False).returncode == 0


@pytest.mark.parametrize("command", ["worker", "reaper"])
def test_a_database_without_our_schema_is_one_clear_line(command, tmp_path):
    environment = {"PATH": os.environ["PATH"], "BACKPROBE_HOME": str(tmp_path), "BACKPROBE_TRUST_CODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "backprobe", command], env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert "backprobe migrate" in line


def test_a_broker_that_is_away_is_one_clear_line(embedded):
    environment = {
        "PATH": os.environ["PATH"],
        **embedded.environment,
        "BACKPROBE_BROKER_URL": "redis://:hush@127.0.0.1:1/0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "backprobe", "worker"], env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 3
    assert "hush" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("backprobe worker: the broker redis://")
