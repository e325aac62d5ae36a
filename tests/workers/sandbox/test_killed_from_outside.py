"""A run that is killed below its own limits is lost and run again: its author is not to blame, whoever took the memory."""

import concurrent.futures
import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.isolation import confined, several_processes, warm
from tests.support.waiting import wait_until
from workers.sandbox.levels import cgroups
from workers.sandbox.levels.cgroups import Cgroups
from workers.sandbox.process.lockdown import OUT_OF_MEMORY_SCORE
from workers.sandbox.supervisor.job import Job

LEVELS = ("process", "namespace")
WAITS = "import time\ntime.sleep(600)"
HOLDS = "import time\nheld = bytearray({} << 20)\ntime.sleep({})\nprint('fine')"
FILLS = """
import os, time
fd = os.open('/tmp/filled', os.O_CREAT | os.O_WRONLY)
written = 0
for _ in range({}):
    written += os.write(fd, bytes(1 << 20))
time.sleep(2)
"""


@pytest.fixture(scope="module", params=LEVELS)
def supervisor(request):
    with warm(confined(request.param), ahead=False) as warm_supervisor:
        yield warm_supervisor


def programs():
    """Pids of the programs that run now: the kernel ends them before any process of Backprobe."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(OSError, psutil.Error):
            score = Path(f"/proc/{process.pid}/oom_score_adj").read_text("ascii")
            if int(score) == OUT_OF_MEMORY_SCORE and not process.children():
                found.append(process.pid)
    return found


@pytest.mark.usefixtures("sandbox")
def test_a_program_that_somebody_kills_is_lost_and_not_blamed(supervisor):
    began, of_others = threading.Event(), set(programs())  # other tests of this process keep warm processes too
    with concurrent.futures.ThreadPoolExecutor() as pool:
        job = Job(files={"main.py": f"x = 1\n{WAITS}"}, entry="main.py")
        running = pool.submit(supervisor.run, job, lambda *_: began.set())
        assert began.wait(60)
        (pid,) = set(programs()) - of_others
        os.kill(pid, signal.SIGKILL)
        outcome = running.result(60)
    assert (outcome.status, outcome.reason) == ("lost", "sandbox"), outcome.error
    assert outcome.error is not None
    assert outcome.error.whose == "ours"
    assert "killed from outside" in outcome.error.message


@pytest.mark.usefixtures("sandbox")
def test_a_program_cannot_make_it_look_so(supervisor):
    source = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
for kill in (lambda: os.kill(os.getpid(), 9), lambda: signal.raise_signal(9), lambda: os.killpg(0, 9),
             lambda: libc.syscall(62, os.getpid(), ctypes.c_ulong(9 | 1 << 32)),
             lambda: libc.syscall(234, os.getpid(), os.getpid(), ctypes.c_ulong(9 | 1 << 40))):
    try: kill()
    except OSError: pass
print("lives")
os.kill(os.getpid(), signal.SIGUSR1) if os.getpid() > 1 else os._exit(3)
"""
    outcome = supervisor.run(Job(files={"main.py": source}, entry="main.py"))
    assert outcome.facts.stdout == b"lives\n"
    assert outcome.status == "failed"


@pytest.mark.usefixtures("sandbox")
def test_where_memory_runs_out_programs_end_before_the_warm_process(supervisor):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(
            supervisor.run, Job(files={"main.py": WAITS}, entry="main.py", limits=Limits(wall_seconds=5))
        )
        wait_until(programs, "the program runs")
        scores = [
            int(Path(f"/proc/{process.pid}/oom_score_adj").read_text("ascii"))
            for process in psutil.Process().children(recursive=False)
        ]
        assert max(scores) < OUT_OF_MEMORY_SCORE
        running.result(60)


def group_limit(group_folder, limit):
    """Limit the memory of a group that has no limit yet; None: take the limit away."""
    file = next(path for name in ("memory.max", "memory.limit_in_bytes") if (path := group_folder / name).exists())
    file.write_text(str(limit) if limit is not None else ("max" if file.name == "memory.max" else "-1"))


@pytest.fixture
def crowded():
    """A supervisor at `namespace`, whose runs together have 700 MiB, as in a container that is too small for them."""
    chosen = confined("namespace")
    several_processes(chosen)
    with warm(chosen, ahead=False) as warm_supervisor:
        folder = warm_supervisor._watch._slots._cgroups.place.folders["memory"]
        group_limit(folder, 700 << 20)
        yield warm_supervisor
        group_limit(folder, None)


@pytest.mark.usefixtures("sandbox")
def test_a_neighbour_that_is_killed_for_anothers_files_is_not_blamed(crowded):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        neighbour = pool.submit(
            crowded.run,
            Job(files={"main.py": HOLDS.format(400, 15)}, entry="main.py", limits=Limits(memory_bytes=1 << 30)),
        )
        wait_until(
            lambda: any(psutil.Process(pid).memory_info().rss > 400 << 20 for pid in programs()), "it has its memory"
        )
        attacker = pool.submit(
            crowded.run, Job(files={"main.py": FILLS.format(500)}, entry="main.py", limits=Limits(disk_bytes=1 << 30))
        )
        outcomes = [future.result(120) for future in (neighbour, attacker)]
    assert "lost" in [outcome.status for outcome in outcomes], [outcome.facts for outcome in outcomes]
    for outcome in outcomes:
        assert (outcome.status, outcome.reason) in {("lost", "sandbox"), ("succeeded", "ended")}, outcome.error


def test_a_kill_below_the_groups_own_limit_is_counted_apart():
    if (lacks := cgroups.lacking()) is not None:
        pytest.skip(lacks)
    groups = Cgroups()
    group_limit(groups.place.folders["memory"], 100 << 20)
    for limit, counted in ((600 << 20, (0, 1)), (50 << 20, (1, 0))):
        group = groups.make(f"m{limit}", memory_bytes=limit, tasks=50, cores=1)
        pid = os.fork()
        if pid == 0:
            time.sleep(0.5)  # until it is in the group
            held = bytearray(200 << 20)
            os._exit(len(held) > 0)
        group.join(pid)
        assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
        used = group.read_usage()
        assert (used.oom_kills, used.foreign_kills) == counted
        groups.end(group)
    groups.close()
