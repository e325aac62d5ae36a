"""Two runs of one uid at the same time: the hostile one reaches nothing of the other, nor keeps it from its number."""

import contextlib
import threading

import psutil
import pytest

from store.runs.limits import Limits
from tests.hostile.field import UID
from tests.support.isolation import confined, warm
from workers.sandbox.levels.names import SLOT_UIDS
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome

LIMITS = Limits(cpu_seconds=20, wall_seconds=60, memory_bytes=600 << 20, disk_bytes=0)

QUIET = """\
import time, torch
held = "CANARY_" + "OF_A_NEIGHBOUR"
print("here", flush=True)
x = torch.arange(3.0, requires_grad=True)
time.sleep(4)
(x * x).sum().backward()
print(x.grad.tolist())
"""

ATTACK = """\
import ctypes, os, signal
l = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(64)
for pid in set(PIDS) - {os.getpid()}:
    for call in (lambda: os.kill(pid, signal.SIGKILL), lambda: os.kill(-pid, signal.SIGKILL),
                 lambda: os.pidfd_open(pid), lambda: os.sched_setaffinity(pid, {0}),
                 lambda: os.setpriority(os.PRIO_PROCESS, pid, 19), lambda: open(f"/proc/{pid}/mem", "r+b"),
                 lambda: open(f"/proc/{pid}/environ").read(), lambda: open(f"/proc/{pid}/maps").read(),
                 lambda: os.listdir(f"/proc/{pid}/fd"), lambda: os.listdir(os.path.join("/proc", str(pid), "root", "tmp"))):
        try: print("CANARY", pid, call())
        except OSError: pass
    for number in (101, 310, 311, 434):  # ptrace, process_vm_readv and writev, pidfd_open
        if l.syscall(number, 16 if number == 101 else pid, pid, buffer, 1, buffer, 1) >= 0: print("CANARY", number)
while True: pass
"""


@pytest.mark.parametrize("level", ["process", "namespace"])
def test_two_live_runs_of_one_uid_reach_nothing_of_each_other(level) -> None:
    with warm(confined(level, UID), ahead=False) as supervisor:
        outcomes: dict[str, Outcome] = {}

        def start(name: str, source: str, cancel: threading.Event | None = None) -> threading.Thread:
            def go() -> None:
                outcomes[name] = supervisor.run(
                    Job(files={"main.py": source}, entry="main.py", limits=LIMITS), cancel=cancel
                )

            thread = threading.Thread(target=go)
            thread.start()
            return thread

        enough = threading.Event()
        quiet = start("quiet", QUIET)
        pids = wait_for_pids(quiet)
        hostile = start("hostile", ATTACK.replace("PIDS", str(pids)), enough)
        quiet.join()
        good = supervisor.run(Job(files={"main.py": QUIET}, entry="main.py", limits=LIMITS))
        enough.set()
        hostile.join()
    answer = b"here\n[0.0, 2.0, 4.0]\n"
    for one in (outcomes["quiet"], good):
        assert (one.status, one.facts.stdout) == ("succeeded", answer), one.facts
    assert b"CANARY" not in outcomes["hostile"].facts.stdout
    assert outcomes["hostile"].status in ("canceled", "exceeded"), outcomes["hostile"].facts.stderr
    assert (good.facts.cpu_seconds or 0) < LIMITS.cpu_seconds / 4  # it paid for itself only


def wait_for_pids(run: threading.Thread) -> list[int]:
    """Every process of the uid that is not in the root namespace's sight of us, as the host numbers them; and pid 1."""
    found: list[int] = []
    while run.is_alive() and len(found) < 2:
        found = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if UID <= process.uids().real <= UID + SLOT_UIDS:
                    found.append(process.pid)
    return [1, *found]
