"""Control groups of the real kernel: what they hold a run to, what they count, and that none is left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from workers.sandbox.levels import cgroup_mounts, cgroups
from workers.sandbox.levels.cgroup_mounts import NoCgroup
from workers.sandbox.levels.cgroups import Cgroups
from workers.sandbox.levels.names import Confinement
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor import slots, streams
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("sandbox")

FORKS = "import os, time\nfor _ in range({}):\n    if os.fork() == 0:\n        time.sleep(600)\ntime.sleep(600)"


@pytest.fixture
def groups():
    if (lacks := cgroups.lacking()) is not None:
        pytest.skip(lacks)
    made = Cgroups()
    yield made
    made.close()


@contextlib.contextmanager
def run_inside(group, source):
    """A process in the group that runs this program once it is there."""
    command = [sys.executable, "-c", f"import sys\nsys.stdin.read(1)\n{source}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        group.join(process.pid)
        assert process.stdin is not None
        process.stdin.write(b"x")
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()


def folders(supervisor_pid):
    """What groups of this process there are now, in any hierarchy."""
    place = cgroup_mounts.find()
    return {path for folder in set(place.folders.values()) for path in folder.glob(f"backprobe-{supervisor_pid}-*/*/")}


def test_a_group_holds_its_processes_to_its_memory(groups):
    group = groups.make("memory", memory_bytes=64 << 20, tasks=50, cores=1)
    assert group.bounds() == group.asked
    with run_inside(group, "x = bytearray(200 << 20)\nprint('had it')") as process:
        assert process.stdout.read() == b""
        assert process.wait(60) == -signal.SIGKILL
    assert group.read_usage().oom_kills == 1
    groups.end(group)
    assert groups.settle()


def test_a_group_refuses_more_tasks_than_it_may_have_and_counts_that(groups, wait_until):
    group = groups.make("many", memory_bytes=256 << 20, tasks=5, cores=1)
    program = (
        "import os, time\nmade = 0\ntry:\n    for _ in range(9):\n        if os.fork() == 0:\n            time.sleep(600)\n"
        "        made += 1\nexcept BlockingIOError:\n    print(made, flush=True)\ntime.sleep(600)"
    )
    with run_inside(group, program) as process:
        assert process.stdout.readline() == b"4\n"
        assert group.processes() == 5
        assert group.read_usage().refused_tasks == 1
        group.kill()
        assert process.wait(60) == -signal.SIGKILL
    groups.end(group)
    wait_until(groups.settle, "the group is empty")


def test_a_group_counts_the_cpu_of_all_its_processes_and_limits_it(groups, wait_until):
    group = groups.make("cpu", memory_bytes=256 << 20, tasks=20, cores=1)
    with run_inside(group, "import os\nos.fork()\nos.fork()\nwhile True: pass") as process:
        wait_until(lambda: (group.cpu_seconds() or 0) > 1.5, "the four have used some")
        own = psutil.Process(process.pid).cpu_times()
        assert own.user + own.system < (group.cpu_seconds() or 0)
        group.kill()
        process.wait(60)
    groups.end(group)
    wait_until(groups.settle, "the group is empty")


def test_a_kill_ends_what_forks_all_the_time(groups, wait_until):
    group = groups.make("forks", memory_bytes=512 << 20, tasks=60, cores=2)
    program = "import os\nwhile True:\n    try:\n        os.fork()\n        os.setsid()\n    except OSError: pass"
    with run_inside(group, program) as process:
        wait_until(lambda: group.processes() > 20, "many")
        groups.end(group)
        process.wait(60)
    wait_until(groups.settle, "nobody is left")


def test_groups_of_a_worker_that_is_gone_are_taken_away(groups, wait_until):
    code = "from workers.sandbox.levels.cgroups import Cgroups\nimport os\ng = Cgroups()\n"
    code += "g.make('run', memory_bytes=1 << 26, tasks=9, cores=1)\nprint(os.getpid(), flush=True)\nos._exit(0)"
    pid = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert folders(pid)
    Cgroups().close()
    assert not folders(pid)


def test_where_no_group_can_be_made_it_is_said_why_and_what_would_change_it(monkeypatch, tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("30 1 0:1 / /proc rw - proc proc rw\n")
    monkeypatch.setattr(cgroup_mounts, "_MOUNTS", mounts)
    said = cgroups.lacking()
    assert said is not None
    assert "memory and pids" in said
    assert "Delegate=yes" in said


def test_a_hierarchy_that_cannot_be_written_is_no_place(monkeypatch):
    if os.geteuid() == 0:
        monkeypatch.setattr(cgroup_mounts.os, "access", lambda *_: False)
    with pytest.raises(NoCgroup, match="cannot be written"):
        cgroup_mounts.find()


def test_a_run_is_attested_in_its_cgroup(grouped, start):
    outcome = start(grouped, "pass", memory_bytes=256 << 20, disk_bytes=0, threads=2)
    told = outcome.isolation["cgroup"]
    assert told["version"] in (1, 2)
    assert told["memory"] > 256 << 20
    assert told["pids"] == 2 + 32 + 1
    assert outcome.isolation["no_cgroup"] is None


def test_a_child_that_was_not_put_into_its_cgroup_does_not_run(grouped, start, monkeypatch):
    def without_cgroup(slot, proc, pidfd):
        slots.put(slots.Slot(uid=slot.uid), proc, pidfd)

    monkeypatch.setattr(streams, "put", without_cgroup)
    outcome = start(grouped, "print('ran')")
    assert (outcome.status, outcome.facts.stdout) == ("lost", b"")
    assert "not in its cgroup" in outcome.error.message


def test_a_cgroup_that_holds_less_tightly_than_asked_keeps_the_child_from_running(grouped, start, monkeypatch):
    make = Cgroups.make
    monkeypatch.setattr(Cgroups, "make", lambda self, name, **asked: loosened(make(self, name, **asked)))
    outcome = start(grouped, "print('ran')")
    assert (outcome.status, outcome.facts.stdout) == ("lost", b"")
    assert "its cgroup holds it to" in outcome.error.message


def loosened(group):
    group._write("pids", "pids.max", 4000)
    return group


def test_no_group_is_left_after_runs_of_every_kind(grouped, start, wait_until):
    for source in ("pass", "import os\nos._exit(3)", "import ctypes\nctypes.string_at(0)", FORKS.format(3)):
        start(grouped, source, processes=4, wall_seconds=2)
    wait_until(lambda: folders(os.getpid()) == set(), "no group of a run")


def test_what_a_killed_zygotes_run_had_forked_goes_with_its_cgroup(grouped, wait_until):
    ends = []
    job = Job(files={"main.py": FORKS.format(3)}, entry="main.py", limits=Limits(processes=4, wall_seconds=60))
    cancel, known = threading.Event(), set(psutil.Process().children(recursive=True))
    waiter = threading.Thread(target=lambda: ends.append(grouped.run(job, None, cancel)))
    waiter.start()
    sleepers = wait_until(lambda: in_groups() if len(in_groups()) == 5 else None, "four and their relay")
    for process in {psutil.Process(pid).parent() for pid in sleepers} & known:
        process.kill()  # the zygote
    wait_until(lambda: not set(sleepers) & set(in_groups()), "all of them are gone")
    cancel.set()
    waiter.join(60)
    assert ends[0].status == "canceled"


def in_groups():
    """Pids in the groups of this process's runs."""
    found = set()
    for folder in folders(os.getpid()):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in (folder / "cgroup.procs").read_text().split()}
    return found


def test_where_no_cgroup_can_be_made_several_processes_are_refused_in_words():
    without = Confinement(level="namespace", no_cgroups="/sys/fs/cgroup cannot be written (run it as root)")
    with Supervisor(lambda: exec_zygote(further=False), confinement=without) as supervisor:
        job = Job(files={"main.py": "print('ran')"}, entry="main.py", limits=Limits(processes=2))
        outcome = supervisor.run(job)
    assert (outcome.status, outcome.reason, outcome.limit_hit) == ("failed", "processes", "processes")
    assert "/sys/fs/cgroup cannot be written" in outcome.error.message
    assert outcome.isolation["no_cgroup"] == without.no_cgroups


def test_the_own_group_is_found_inside_a_container(tmp_path):
    # a container that shows its own part of the tree: root of the mount and own path are the same
    assert cgroup_mounts._find_group_folder(("/docker/1", str(tmp_path)), "/docker/1") == (Path(tmp_path), "/docker/1")
    (tmp_path / "below").mkdir()
    assert cgroup_mounts._find_group_folder(("/docker/1", str(tmp_path)), "/docker/1/below") == (
        tmp_path / "below",
        "/docker/1/below",
    )
    assert cgroup_mounts._find_group_folder(("/docker/1", str(tmp_path)), "/docker/10") is None
    assert cgroup_mounts._find_group_folder(("/", str(tmp_path)), "/") == (Path(tmp_path), "")
