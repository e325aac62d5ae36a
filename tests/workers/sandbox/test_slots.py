"""Each run in flight has a separate uid; two hostile ones at once reach nothing of each other."""

import select
import threading

import pytest

from store.runs.limits import Limits
from workers.sandbox.levels.names import Confinement
from workers.sandbox.process.messages import Fork
from workers.sandbox.supervisor import slots
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.slots import Slot, Slots

ATTACK = """
import ctypes, os, signal, socket, time
print("uid", os.getuid(), flush=True)
open("/tmp/mine", "w").write("CANARY")
libc = ctypes.CDLL(None, use_errno=True)
deadline = time.monotonic() + {seconds}
while time.monotonic() < deadline:
    for pid in range(1, 300):
        if pid == os.getpid():
            continue
        for sign in (0, signal.SIGKILL):
            try:
                os.kill(pid, sign)
                print("reached", pid, flush=True)
            except OSError:
                pass
        for name in ("environ", "mem", "maps", "root/tmp/mine", "cwd/mine"):
            try:
                open(f"/proc/{{pid}}/{{name}}", "rb").read(1)
                print("read", pid, name, flush=True)
            except OSError:
                pass
        if libc.ptrace(16, pid, 0, 0) == 0:
            print("traced", pid, flush=True)
    if libc.shmget(0x42, 4096, 0o666) >= 0:
        print("shared memory", flush=True)
    if sorted(os.listdir("/tmp")) != ["main.py", "mine"] or os.listdir("/dev/shm"):
        print("another's file", os.listdir("/tmp"), flush=True)
    time.sleep(0.01)
print("done", flush=True)
"""


@pytest.fixture
def shared(apart):
    if apart.confinement.uids == 0:
        pytest.skip("only root gives each run a separate uid")
    return apart


def test_two_live_hostile_runs_reach_nothing_of_each_other_and_have_uids_of_their_own(shared):
    ends: list = [None] * 3
    job = Job(files={"main.py": ATTACK.format(seconds=3)}, entry="main.py", limits=Limits(wall_seconds=60))

    def work(n):
        ends[n] = shared.run(job)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for end in ends:
        assert end.status == "succeeded", (end.error, end.facts.stderr)
        first, *rest = end.facts.stdout.decode().splitlines()
        assert first == f"uid {end.isolation['uid']}"
        assert rest == ["done"]
    uids = {end.isolation["uid"] for end in ends}
    assert len(uids) == 3
    assert all(shared.confinement.uid < uid <= shared.confinement.uid + shared.confinement.uids for uid in uids)


def test_a_run_cannot_become_another_uid_of_the_pool(shared, start):
    source = (
        "import os\nfor call in (os.setuid, os.setgid):\n    try:\n        call(os.getuid() + 1)\n        print('became')\n"
        "    except OSError: pass\nprint(len(open('/proc/self/uid_map').readlines()))"
    )
    assert start(shared, source).facts.stdout == b"1\n"


def test_a_child_that_did_not_get_its_uid_does_not_run(shared, start, monkeypatch):
    take = Slots.take

    def another(self, order, **asked):
        slot = take(self, order, **asked)
        return Slot(uid=slot.uid + 5000, cgroup=slot.cgroup)

    def put(slot, proc, pidfd):
        slots.put(Slot(uid=slot.uid - 1, cgroup=slot.cgroup), proc, pidfd)

    monkeypatch.setattr(Slots, "take", another)
    monkeypatch.setattr("workers.sandbox.supervisor.streams.put", put)
    outcome = start(shared, "print('ran')")
    assert (outcome.status, outcome.facts.stdout) == ("lost", b"")


def test_a_child_whose_warm_process_was_killed_before_it_had_its_place_costs_no_run(apart, start, zygotes, monkeypatch):
    met = []

    def put(slot, proc, pidfd):
        if not met:
            pid = slots._pid(pidfd)
            [its] = [zygote for zygote in zygotes() if pid in {child.pid for child in zygote.children(recursive=True)}]
            its.kill()
            ended = select.poll()
            ended.register(pidfd, select.POLLIN)
            assert ended.poll(30_000), "it did not go with its warm process"
            met.append(pid)
        slots.put(slot, proc, pidfd)

    monkeypatch.setattr("workers.sandbox.supervisor.streams.put", put)
    outcome = start(apart, "print('ran')")
    assert (outcome.status, outcome.facts.stdout, outcome.facts.tries) == ("succeeded", b"ran\n", 2), outcome.error


def test_uids_are_given_out_once_each_and_the_last_one_given_back_comes_last():
    some = Slots(Confinement(level="namespace", uid=1000, uids=3))
    order = Fork(serial=1, cpu_seconds=1, memory_bytes=1, file_bytes=0, threads=1)
    taken = [some.take(order, limits=Limits()) for _ in range(3)]
    assert [slot.uid for slot in taken] == [1001, 1002, 1003]
    with pytest.raises(OSError, match="in use"):
        some.take(order, limits=Limits())
    some.free(taken[1])
    some.free(taken[0])
    assert some.take(order, limits=Limits()).uid == 1002


def test_where_the_worker_is_no_root_all_runs_are_who_it_is():
    slots = Slots(Confinement(level="namespace", uid=None))
    assert slots.take(Fork(serial=1, cpu_seconds=1, memory_bytes=1, file_bytes=0, threads=1), limits=Limits()).uid == 0
    assert not slots.places
