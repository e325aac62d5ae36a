"""What programs do and how their runs end: in real children, each followed by a good run that is unaffected."""

import ctypes
import json
import threading

import pytest

from store.runs.limits import Limits
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.outcome import Outcome

GRANDCHILD = """\
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(3600)
    os._exit(0)
os.wait()
"""

RECURSION = "import sys\nsys.setrecursionlimit(1 << 30)\nimport ctypes\ndef f(x): return ctypes.py_object(f), sorted([x], key=f)\nf(1)\n"

PROGRAMS = {
    # name: (source, limits, status, reason, exit code, signal)
    "sys.exit(3)": ("import sys\nsys.exit(3)", {}, "failed", "exception", 3, None),
    "sys.exit()": ("import sys\nsys.exit()", {}, "succeeded", "ended", 0, None),
    "sys.exit(text)": ("import sys\nsys.exit('no')", {}, "failed", "exception", 1, None),
    "raise": ("raise ValueError('no')", {}, "failed", "exception", 1, None),
    "odd unicode": ("raise ValueError('\\ud800 \\U0010ffff \\0 ' + 'x' * 100000)", {}, "failed", "exception", 1, None),
    "unprintable": (
        "class E(Exception):\n    def __str__(self): raise SystemError\nraise E",
        {},
        "failed",
        "exception",
        1,
        None,
    ),
    "os._exit(0)": ("import os\nos._exit(0)", {}, "failed", "record", 0, None),
    "os._exit(97)": ("import os\nos._exit(97)", {}, "failed", "record", 97, None),
    "os._exit replaced": ("import os\nos._exit = None", {}, "succeeded", "ended", 0, None),
    "segfault": ("import ctypes\nctypes.string_at(0)", {}, "failed", "signal", None, 11),
    "abort": ("import os\nos.abort()", {}, "failed", "signal", None, 6),
    "kill -9 itself": ("import os\nos.kill(os.getpid(), 9)", {}, "failed", "signal", None, 9),
    "endless loop, wall": ("import time\nwhile True: time.sleep(1)", {"wall_seconds": 1}, "exceeded", "wall", None, 9),
    "endless loop, cpu": ("while True: pass", {"cpu_seconds": 1}, "exceeded", "cpu", None, 24),
    "ignores every signal": (
        "import signal\nfor n in range(1, 32):\n    if n not in (9, 19): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        {"cpu_seconds": 1},
        "exceeded",
        "cpu",
        None,
        9,
    ),
    "recursion": ("def f(): f()\nf()", {}, "failed", "exception", 1, None),
    "recursion in C": (RECURSION, {"cpu_seconds": 20}, "failed", "signal", None, 11),
    "1 GB of output": (
        "import sys\nfor _ in range(1 << 14): sys.stdout.write('x' * (1 << 16))",
        {},
        "exceeded",
        "output",
        None,
        9,
    ),
    "1 GB of stderr": (
        "import os\nfor _ in range(1 << 14): os.write(2, b'x' * (1 << 16))",
        {},
        "exceeded",
        "output",
        None,
        9,
    ),
    "memory, python": ("x = bytearray(1 << 40)", {}, "exceeded", "memory", 1, None),
    "memory, torch": ("import torch\nx = torch.zeros(1 << 38)", {}, "exceeded", "memory", 1, None),
    "memory, slowly": (
        "x = []\nwhile True: x.append(bytearray(1 << 20))",
        {"memory_bytes": 64 << 20},
        "exceeded",
        "memory",
        1,
        None,
    ),
    "garbage as a record": ("import os\nos.write(3, b'\\xff' * 4096)", {}, "failed", "record", None, None),
    "closes the record": ("import os\nos.close(3)", {}, "failed", "record", 0, None),
    "closes everything": ("import os\nos.closerange(0, 64)", {}, "failed", "record", 0, None),
    "floods the record": (
        "import os\nwhile True: os.write(3, b'\\0' * 65536)",
        {"record_bytes": 1 << 20},
        "failed",
        "record",
        None,
        None,
    ),
    "its own daemon": (GRANDCHILD, {}, "succeeded", "ended", 0, None),
    "an exit hook that fails": ("import atexit\natexit.register(lambda: 1 / 0)", {}, "succeeded", "ended", 0, None),
    "a thread that ends later": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.2), print('late'))).start()",
        {},
        "succeeded",
        "ended",
        0,
        None,
    ),
    "syntax error": ("x = (", {}, "failed", "exception", 1, None),
    "not utf-8 to print": ("print('\\udcff')", {}, "failed", "exception", 1, None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_as_documented_and_the_next_one_is_unaffected(name, run, good):
    source, limits, status, reason, code, signal = PROGRAMS[name]
    outcome: Outcome = run(source, **limits)
    assert (outcome.status, outcome.reason) == (status, reason), (outcome.error, outcome.facts)
    if code is not None:
        assert outcome.facts.exit_code == code
    if signal is not None:
        assert outcome.facts.signal == signal
    good()


def test_a_killed_program_leaves_the_record_up_to_there(run):
    outcome = run("import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 2\nwhile True: pass", cpu_seconds=1)
    assert outcome.status == "exceeded"
    assert outcome.record is not None
    assert outcome.record.end is None
    assert {binding.name for binding in outcome.record.bindings} >= {"x", "y"}
    assert outcome.error is not None
    assert (outcome.error.path, outcome.error.line) == ("main.py", 3)


def test_an_exception_is_told_with_its_place(run):
    outcome = run("import torch\n\ntorch.ones(1).backward()\n")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.path, outcome.error.line) == ("RuntimeError", "main.py", 3)
    assert "does not require grad" in outcome.error.message


def test_arguments_and_standard_input_reach_the_program(run):
    outcome = run("import sys\nprint(sys.argv, sys.stdin.read())", arguments=("--steps", "3"), stdin=b"hello")
    assert outcome.facts.stdout == b"['main.py', '--steps', '3'] hello\n"


def test_without_standard_input_there_is_nothing_to_read(run):
    assert run("import sys\nprint(repr(sys.stdin.read()))").facts.stdout == b"''\n"


def test_nothing_of_the_service_is_inherited(run, monkeypatch):
    monkeypatch.setenv("BACKPROBE_DATABASE_URL", "postgresql://secret")
    source = "import os, json\nprint(json.dumps([dict(os.environ), os.listdir('.'), os.getcwd(), open('/proc/self/environ').read()]))"
    environment, listing, folder, at_exec = json.loads(run(source).facts.stdout)
    assert set(environment) == {"PATH", "LANG", "LOGNAME", "HOME", "TMPDIR", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"}
    assert environment["CUDA_VISIBLE_DEVICES"] == ""
    assert "secret" not in at_exec
    assert listing == ["main.py"]
    assert environment["HOME"] == folder


def test_a_program_has_four_descriptors_and_a_session_of_its_own(run):
    source = "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1], os.getsid(0) == os.getpid())"
    assert run(source).facts.stdout == b"[0, 1, 2, 3] True\n"


def test_a_run_cannot_raise_its_own_limits(run):
    source = (
        "import resource as r\n"
        "names = ['AS', 'FSIZE', 'NOFILE', 'CORE']\n"
        "for name in names:\n"
        "    soft, hard = r.getrlimit(getattr(r, 'RLIMIT_' + name))\n"
        "    assert soft == hard, name\n"
        "print(*[r.getrlimit(getattr(r, 'RLIMIT_' + name))[1] for name in ('CPU', 'FSIZE', 'NOFILE', 'CORE')])\n"
    )
    outcome = run(source, cpu_seconds=7, disk_bytes=12345)
    assert outcome.facts.stdout == b"8 12345 64 1\n", outcome.facts.stderr


def test_a_program_that_takes_its_streams_away_has_ended_all_the_same(run):
    source = "import sys, threading\nprint('before', end='')\nsys.stdout = sys.stderr = None\ndel threading._shutdown"
    outcome = run(source)
    assert (outcome.status, outcome.facts.exit_code, outcome.facts.stdout) == ("succeeded", 0, b"before"), outcome.error


def test_threads_are_one_unless_more_are_asked_for(run):
    assert run("import torch\nprint(torch.get_num_threads())").facts.stdout == b"1\n"
    assert run("import torch\nprint(torch.get_num_threads())", threads=2).facts.stdout == b"2\n"


def test_several_files_import_each_other(supervisor):
    files = {"main.py": "from net import f\nprint(f())", "net.py": "def f(): return 7"}
    outcome = supervisor.run(Job(files=files, entry="main.py"))
    assert outcome.facts.stdout == b"7\n", outcome.facts.stderr


def test_output_is_counted_and_its_end_is_kept(run):
    outcome = run("for n in range(20000): print(f'{n:05d}')\nprint('the end')")
    assert outcome.facts.stdout_bytes == 20000 * 6 + len("the end\n")
    assert len(outcome.facts.stdout) == 64 << 10
    assert outcome.facts.stdout.endswith(b"19999\nthe end\n")


def test_a_large_record_arrives_whole(run):
    source = "import torch\nx = torch.ones(3, requires_grad=True)\nfor n in range(300):\n    y = (x * n).sum(); y.backward()\n"
    outcome = run(source)
    assert outcome.status == "succeeded", outcome.error
    assert outcome.record is not None
    assert len(outcome.record.backward_calls) >= 20
    assert outcome.facts.record_bytes > 64 << 10


def test_rows_that_capture_did_not_write_stop_a_run_when_they_are_too_many(run):
    source = (
        "import os\nfrom backprobe.record import Thread, batch_frames\n"
        "frames = b''.join(batch_frames('threads', [Thread(thread=0, name='t', main=True)] * 100))\nwhile True: os.write(3, frames)\n"
    )
    outcome = run(source, record_rows=1000)
    assert (outcome.status, outcome.limit_hit) == ("exceeded", "record_rows")


def test_a_cancel_is_heard_and_keeps_the_partial_record(supervisor, wait_until):
    cancel, ends = threading.Event(), []
    job = Job(files={"main.py": "import torch\nx = torch.ones(2)\nwhile True: pass"}, entry="main.py")
    seen = threading.Event()
    waiter = threading.Thread(target=lambda: ends.append(supervisor.run(job, lambda *_: seen.set(), cancel)))
    waiter.start()
    assert seen.wait(30)
    cancel.set()
    waiter.join(30)
    assert ends[0].status == "canceled"
    assert ends[0].record is not None


def test_four_runs_at_once_get_their_own_answers(supervisor):
    def job(n):
        source = f"import torch\nx = torch.full((3,), {n}.0, requires_grad=True)\n(x * x).sum().backward()\nprint(x.grad[0].item())"
        return Job(files={"main.py": source}, entry="main.py", limits=Limits())

    answers: dict[int, bytes] = {}

    def work(first):
        for n in range(first, 24, 4):
            answers[n] = supervisor.run(job(n)).facts.stdout

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {n: f"{2.0 * n}\n".encode() for n in range(24)}


def test_isolation_says_what_it_is_and_no_more(run):
    outcome = run("pass", cpu_seconds=9)
    assert outcome.isolation["level"] == "none"
    assert outcome.isolation["attested"] is False
    assert outcome.isolation["rlimits"]["cpu_seconds"] == 9


def test_this_process_is_closed_to_others_of_its_uid(supervisor):
    assert supervisor is not None
    get_dumpable = 3
    assert ctypes.CDLL(None).prctl(get_dumpable, 0, 0, 0, 0) == 0
