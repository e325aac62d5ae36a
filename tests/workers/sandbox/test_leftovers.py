"""What is left after many runs, kind ones and others: no descriptor, no process, no folder."""

import contextlib
import math
import random
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.isolation import confined
from workers.sandbox.process.scratch import PREFIX
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

RUNS = 200
KILLS = 10
UNKIND = (
    "import os\nos._exit(1)",
    "import ctypes\nctypes.string_at(0)",
    "import os\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(3600)",
    "import subprocess\nsubprocess.Popen(['sleep', '3600'], start_new_session=True)",
    "import os\nos.makedirs('a/b/c')\nopen('a/b/c/file', 'w').close()\nos.symlink('/etc', 'a/link')\nos.chmod('a/b', 0)",
    "import os\nos.write(3, b'x' * 100)",
)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def folders(zygote: psutil.Process) -> list[Path]:
    """Private folders of a zygote's runs that are there now."""
    return list(root_of(zygote).iterdir())


def root_of(zygote: psutil.Process) -> Path:
    """The folder of a zygote in which each run has its own."""
    [root] = {link for fd in Path(f"/proc/{zygote.pid}/fd").iterdir() if PREFIX in str(link := fd.readlink())}
    return root


def test_nothing_is_left_after_two_hundred_runs(supervisor, run, good, zygotes, wait_until):
    good()
    [zygote] = zygotes(level="none")
    before, inside = descriptors(), zygote.num_fds()

    def work(first: int) -> None:
        for n in range(first, RUNS, 4):
            source = UNKIND[n % len(UNKIND)] if n % 2 else "x = 1"
            supervisor.run(Job(files={"main.py": source}, entry="main.py", limits=Limits(wall_seconds=20)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(250)
    good()
    wait_until(lambda: zygotes(level="none") == [zygote], "one zygote")
    wait_until(lambda: zygote.children(recursive=True) == [], "no child of the zygote")
    wait_until(lambda: folders(zygote) == [], "no folder")
    assert zygote.num_fds() == inside
    assert descriptors() == before
    assert not [row for row in psutil.process_iter(["cmdline"]) if row.info["cmdline"] == ["sleep", "3600"]]


def waits_for(path: Path) -> Job:
    """A program that ends once this file is there."""
    source = f"import os, time, torch\nwhile not os.path.exists({str(path)!r}):\n    time.sleep(0.01)\nprint('done')"
    return Job(files={"main.py": source}, entry="main.py", limits=Limits(wall_seconds=300))


def test_a_zygote_is_replaced_when_it_is_worn_and_its_runs_go_on(
    supervisor, good, zygotes, wait_until, monkeypatch, open_folder
):
    monkeypatch.setattr("workers.sandbox.supervisor.pool.MAX_FORKS", 1)
    monkeypatch.setattr(supervisor._watch.pool, "_not_before", math.inf)  # no new one yet
    [old] = zygotes(level="none")
    ends = []
    waiter = threading.Thread(target=lambda: ends.append(supervisor.run(waits_for(open_folder / "go"))))
    waiter.start()
    asks = Job(files={"main.py": "import os\nprint(os.getppid())"}, entry="main.py")
    for _ in range(2):  # with the end of the first it is worn
        assert supervisor.run(asks).facts.stdout == f"{old.pid}\n".encode()
    assert supervisor._watch.pool.current.worn
    monkeypatch.undo()
    good()  # the pool looks for what is to be done whenever something happens
    wait_until(lambda: [zygote for zygote in zygotes(level="none") if zygote != old], "a new zygote")
    (open_folder / "go").touch()
    waiter.join(120)
    assert ends[0].facts.stdout == b"done\n"
    assert ends[0].facts.tries == 1
    good()
    wait_until(lambda: old not in zygotes(level="none"), "the old one is gone")


def test_a_killed_zygotes_run_is_started_once_more(supervisor, good, zygotes, wait_until, open_folder):
    ends, marker = [], threading.Event()
    job = waits_for(open_folder / "go")
    waiter = threading.Thread(target=lambda: ends.append(supervisor.run(job, lambda *_: marker.set())))
    waiter.start()
    assert marker.wait(120)
    [zygote] = zygotes(level="none")
    zygote.kill()
    wait_until(lambda: not Path(f"/proc/{zygote.pid}").exists(), "the old one is gone")
    (open_folder / "go").touch()
    waiter.join(120)
    assert (ends[0].status, ends[0].facts.stdout, ends[0].facts.tries) == ("succeeded", b"done\n", 2)
    assert ends[0].record is not None
    assert [source.path for source in ends[0].record.sources] == ["main.py"]
    good()


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("level", ["none", "namespace"])
def test_a_zygote_killed_at_any_moment_costs_no_run(level, zygotes, wait_until):
    chosen = confined(level)
    job = Job(files={"main.py": "import torch\nprint(torch.ones(2).sum().item())"}, entry="main.py")
    moments = random.Random(7)
    known = zygotes(level=level)
    with (
        Supervisor(lambda: exec_zygote("", chosen, further=False), confinement=chosen, ahead=False) as ours,
        ThreadPoolExecutor(3) as threads,
    ):
        for _kill in range(KILLS):
            assert ours.wait_warm(60), ours.failure
            assert ours.run(job).status == "succeeded"  # on a warm process that is not the one just killed
            ends = [threads.submit(ours.run, job) for _run in range(3)]
            time.sleep(moments.uniform(0, 0.12))  # a moment of the lockdown, of the program, of its end
            # not their children, whose end would be the program's own
            for zygote in set(zygotes(level=level)) - set(known):
                with contextlib.suppress(psutil.NoSuchProcess):
                    zygote.kill()
            outcomes = [end.result(60) for end in ends]
            assert {(outcome.status, outcome.facts.stdout) for outcome in outcomes} == {("succeeded", b"2.0\n")}, [
                (outcome.facts.broken, outcome.facts.tries) for outcome in outcomes
            ]
            assert max(outcome.facts.tries for outcome in outcomes) <= 2


def test_what_a_killed_zygotes_run_had_forked_is_killed_too(supervisor, zygotes, wait_until):
    source = "import os, time\nprint(os.getpid(), flush=True)\nos.fork()\ntime.sleep(3600)"
    cancel = threading.Event()
    waiter = threading.Thread(
        target=lambda: supervisor.run(Job(files={"main.py": source}, entry="main.py"), None, cancel)
    )
    waiter.start()
    [zygote] = wait_until(lambda: zygotes(level="none"), "a zygote")
    family = wait_until(lambda: len(below := zygote.children(recursive=True)) == 2 and below, "a child and its child")
    zygote.kill()
    wait_until(
        lambda: not any(process.is_running() and process.status() != "zombie" for process in family), "both are gone"
    )
    cancel.set()
    waiter.join(30)


def test_a_program_that_kills_the_warm_process_twice_is_lost_and_the_next_is_well(run, good):
    outcome = run("import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(60)")
    assert (outcome.status, outcome.reason) == ("lost", "sandbox")
    assert outcome.error is not None
    assert outcome.error.whose == "ours"
    good()


def test_a_stopped_zygote_is_given_up(supervisor, good, zygotes, monkeypatch):
    monkeypatch.setattr("workers.sandbox.supervisor.selector.KILL_SECONDS", 1.0)
    good()
    [zygote] = zygotes(level="none")
    job = Job(files={"main.py": "while True: pass"}, entry="main.py", limits=Limits(wall_seconds=1))
    timer = threading.Timer(0.5, zygote.suspend)
    timer.start()
    outcome = supervisor.run(job)
    assert (outcome.status, outcome.reason) == ("exceeded", "wall")
    good()


def test_the_folders_of_a_killed_zygote_are_removed_by_the_next(supervisor, run, good, zygotes, wait_until):
    good()
    [zygote] = zygotes(level="none")
    root = root_of(zygote)
    assert root.parent == Path(tempfile.gettempdir())
    zygote.kill()
    wait_until(lambda: zygotes(level="none") and zygotes(level="none") != [zygote], "the next zygote")
    good()
    wait_until(lambda: not root.exists(), "its root folder is gone")
