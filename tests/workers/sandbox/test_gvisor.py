"""Level `gvisor`: warm under a separate kernel, attested by its sentry, one run at a time, nothing left on the host."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from store.runs.limits import Limits
from tests.support.isolation import confined
from tests.support.waiting import wait_until
from workers.sandbox.gvisor import runsc, sentry
from workers.sandbox.levels.attestation import Differs
from workers.sandbox.levels.capabilities import confinement, lacking
from workers.sandbox.levels.names import Confinement
from workers.sandbox.levels.probe import prove
from workers.sandbox.process import lockdown, private_root
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.start import executor_confinement
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

pytestmark = pytest.mark.usefixtures("sandbox")


def test_every_canary_is_contained(guest):
    assert prove(guest).breaches == ()


def test_a_run_says_which_sentry_it_ran_under_and_that_the_run_itself_was_not_looked_at(guest, start):
    outcome = start(guest, "import os\nprint(os.uname().release, os.getpid(), os.getuid())")
    assert outcome.status == "succeeded", outcome.error
    told = outcome.isolation
    assert (told["level"], told["attested"]) == ("gvisor", True)
    assert told["attested_is"] == "the sentry of the warm process, not the run"
    assert told["sentry"]["executable"] == runsc.program()
    assert (told["sentry"]["seccomp"], told["sentry"]["no_new_privs"]) == (2, True)
    assert {"user", "net", "mnt"} <= set(told["sentry"]["namespaces"])
    assert "landlock" in told["not_within"]
    release, pid, uid = outcome.facts.stdout.decode().split()
    assert release != os.uname().release, "it was the host's kernel that answered"
    assert pid == "1"
    assert int(uid) > 0


def test_the_files_of_a_run_lie_in_its_working_directory(guest, of_several_files, of_a_module):
    of_several_files(guest)
    of_a_module(guest)


def test_it_has_a_private_tmp_of_its_size_and_nothing_of_the_run_before(guest, start):
    write = (
        "import os\nfor place in ('/tmp', '/dev/shm', '.'):\n    assert os.listdir(place) in ([], ['main.py']), place\n"
    )
    write += "open('/tmp/a', 'w').write('x'); open('/dev/shm/b', 'w').write('y'); print(os.getcwd())"
    for _ in range(2):
        outcome = start(guest, write, disk_bytes=1 << 20)
        assert (outcome.status, outcome.facts.stdout) == ("succeeded", b"/tmp\n"), outcome.error
    full = start(guest, "open('big', 'wb').write(bytes(2 << 20))", disk_bytes=1 << 20)
    assert (full.status, full.limit_hit) == ("failed", "disk_bytes"), full.error
    none = start(guest, "open('/tmp/a', 'w')", disk_bytes=0)
    assert none.status == "failed"


def test_what_it_sees_of_the_file_system_is_what_python_needs(guest, start):
    source = """
import os
print(sorted(os.listdir("/")))
for place in ("/usr/bin", "/root", "/home", "/etc/passwd", "/proc/1/root/usr/bin", "/proc/2"):
    print(place, os.path.exists(place) and os.access(place, os.R_OK))
print([n for n in os.listdir("/proc") if n.isdigit()])
"""
    lines = start(guest, source).facts.stdout.decode().splitlines()
    assert {"'bin'", "'home'"}.isdisjoint(lines[0].strip("[]").split(", "))
    assert [line for line in lines[1:-1] if line.endswith("True") and not line.startswith("/root")] == []
    assert lines[-1] == "['1']"


@pytest.mark.parametrize(
    ("source", "limits", "ended"),
    [
        ("while True: pass", {"cpu_seconds": 1}, ("exceeded", "cpu")),
        ("import time; time.sleep(60)", {"wall_seconds": 2}, ("exceeded", "wall")),
        ("x = bytearray(1 << 30)", {"memory_bytes": 256 << 20}, ("exceeded", "memory")),
        ("while True: print('x' * 1000)", {"output_bytes": 8192}, ("exceeded", "output")),
        ("import ctypes; ctypes.string_at(0)", {}, ("failed", "signal")),
        ("import sys; sys.exit(3)", {}, ("failed", "exception")),
    ],
)
def test_each_limit_ends_a_run_and_its_sandbox_goes_on(guest, start, source, limits, ended):
    outcome = start(guest, source, **limits)
    assert (outcome.status, outcome.reason) == ended, (outcome.error, outcome.facts.stderr)
    after = start(guest, "print(1)")
    assert (after.status, after.facts.tries) == ("succeeded", 1)


def test_threads_are_bounded_within(guest, start):
    source = "import threading, time\nfor n in range(200):\n    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
    outcome = start(guest, source, threads=1)
    assert (outcome.status, outcome.limit_hit) == ("failed", "threads"), outcome.error


def test_what_a_run_makes_the_sentry_take_for_itself_ends_it(guest, start, monkeypatch):
    from workers.sandbox.supervisor import attempt

    monkeypatch.setattr(attempt, "SENTRY_BYTES", 8 << 20)
    endless = "import os\nn = 0\nwhile True:\n    os.close(os.open(f'/tmp/{n}', os.O_CREAT | os.O_WRONLY)); n += 1"
    outcome = start(guest, endless, disk_bytes=1 << 20, cpu_seconds=60)
    assert (outcome.status, outcome.reason) == ("exceeded", "memory"), outcome.error


def test_no_two_runs_are_under_one_sentry_at_one_time(guest):
    source = "import time; print(time.time()); time.sleep(0.5); print(time.time())"
    spans = []

    def run_guest():
        outcome = guest.run(Job(files={"m.py": source}, entry="m.py"))
        spans.append([float(line) for line in outcome.facts.stdout.split()])

    threads = [threading.Thread(target=run_guest) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans.sort()
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans)), spans


def test_a_run_is_canceled(guest):
    cancel = threading.Event()
    threading.Timer(1.0, cancel.set).start()
    outcome = guest.run(Job(files={"m.py": "while True: pass"}, entry="m.py"), cancel=cancel)
    assert outcome.status == "canceled"


def test_a_lost_sandbox_costs_no_run_and_leaves_nothing(require):
    require("runsc")
    chosen = confined("gvisor")
    with Supervisor(lambda: exec_zygote("", chosen, further=False), confinement=chosen) as supervisor:
        assert supervisor.wait_warm(60), supervisor.failure
        current = supervisor._watch.pool.current
        assert current is not None
        link = current.link
        assert link.guest is not None
        assert link.process is not None
        folder = link.guest.scratch.path
        processes = [psutil.Process(link.process.pid), *psutil.Process(link.process.pid).children(recursive=True)]
        outcomes = []
        job = Job(files={"m.py": "import time; print('here', flush=True); time.sleep(1)"}, entry="m.py")
        thread = threading.Thread(target=lambda: outcomes.append(supervisor.run(job)))
        thread.start()
        wait_until(lambda: supervisor._watch._flying, "the run is at work")
        psutil.Process(sentry_pid(folder)).send_signal(signal.SIGKILL)
        thread.join(90)
        assert [(outcome.status, outcome.facts.tries) for outcome in outcomes] == [("succeeded", 2)], outcomes[0].error
    assert not folder.exists()
    assert psutil.wait_procs(processes, timeout=10)[1] == []


def test_ctypes_finds_a_library_in_each_root_by_the_way_that_starts_no_compiler(require):
    require("runsc")
    require("bubblewrap")
    ask = [sys.executable, "-c", "import ctypes.util\nprint(ctypes.util._findSoname_ldconfig('c'))"]
    behind_bubblewrap = subprocess.run(private_root.wrap_command(ask), capture_output=True, text=True, check=True)
    assert behind_bubblewrap.stdout == "libc.so.6\n"
    ours, theirs = socket.socketpair()
    reads, writes = os.pipe()
    with ours, theirs, open(reads) as told:
        guest = runsc.start(theirs, ask, {}, writes, 8 << 20)
        os.close(writes)
        assert told.read() == "libc.so.6\n"
        assert guest.process.wait(30) == 0
        guest.sweep()


def sentry_pid(folder: Path) -> int:
    return int((folder / "sentry.pid").read_text())


def test_under_a_sentry_that_is_not_as_prescribed_no_user_code_runs(require, monkeypatch):
    require("runsc")
    chosen = confined("gvisor")
    monkeypatch.setattr(sentry, "_OWN_NAMESPACES", frozenset({*sentry._OWN_NAMESPACES, "cgroup"}))
    with Supervisor(lambda: exec_zygote("", chosen, further=False), confinement=chosen) as supervisor:
        assert supervisor.wait_warm(60), supervisor.failure
        outcome = supervisor.run(Job(files={"m.py": "print('it ran')"}, entry="m.py"))
    assert (outcome.status, outcome.facts.stdout) == ("lost", b"")
    assert "the sentry's own namespaces are" in (outcome.facts.broken or "")


def test_a_process_that_is_no_sentry_is_refused(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (tmp_path / "pid").write_text(str(other.pid))
        with pytest.raises(OSError, match="not started by runsc"):
            sentry.folder_of(tmp_path / "pid", runsc=other.pid)
        folder = sentry.folder_of(tmp_path / "pid", runsc=os.getpid())
        try:
            with pytest.raises(Differs, match="the sentry's NoNewPrivs is 0, not 1"):
                sentry.attest(folder, sys.executable)
        finally:
            os.close(folder)
        other.communicate(b"\n")


def test_a_uid_is_needed_and_an_executor_cannot_give_the_level():
    assert lockdown.STEPS["gvisor"][1] is lockdown.own_uid
    with pytest.raises(OSError, match="cannot be given by an executor"):
        executor_confinement(WorkerSettings(isolation="gvisor"), "cpu")


def test_without_runsc_the_level_is_lacking_with_where_to_get_it(monkeypatch):
    monkeypatch.setattr(runsc.shutil, "which", lambda _: None)
    assert any("runsc is not installed (gvisor.dev" in reason for reason in lacking("gvisor"))
    with pytest.raises(OSError, match="isolation gvisor cannot be given here"):
        confinement("gvisor")


def test_the_limits_that_it_has_are_stored(guest, start):
    assert Confinement(level="gvisor").cgroups is False
    outcome = start(guest, "print(1)", memory_bytes=Limits().memory_bytes)
    assert outcome.isolation["rlimits"]["memory_bytes"] == Limits().memory_bytes
    assert outcome.facts.cpu_seconds is not None
