"""Every limit: it holds, its outcome says what to raise or change, and the record up to there is kept."""

import pytest

TRACED = "import torch\nx = torch.ones(3, requires_grad=True)\ny = (x * 2).sum()\ny.backward()\n"
"""What each program does before it goes too far: the record must have it."""

THREADS = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
FORKED = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        time.sleep(60)\ntime.sleep(60)"
FLOOD = (
    "import os\nfrom backprobe.record import Warned, batch_frames\n"
    "row = Warned(n=0, category='c', message='m' * 400, path='p', line=1)\n"
    "frames = b''.join(batch_frames('warned', [row] * 20))\nwhile True: os.write(3, frames)"
)
"""Rows that capture itself, which keeps below its caps, would not write."""

HEAVY = (
    "import os\nfrom backprobe.record import BackwardCall, batch_frames\n"
    "row = BackwardCall(call=9, entry='autograd.grad', thread=0, moment_before=0, returned_grads=(None,) * 4000)\n"
    "frames = b''.join(batch_frames('backward_calls', [row])).replace(b'\\xc0' * 4000, b'\\x90' * 4000)\n"
    "for _ in range(60): os.write(3, frames)\n"
)
"""One byte on the wire for each hundred in memory."""

FORK_AND_EAT = "import os\nif os.fork():\n    os.wait()\nheld = bytearray(1300 << 20)\nif os.getpid() != 1: os.abort()"

LIMITS = {
    # name: (what it does after that, limits, status, reason, limit, words of its text)
    "cpu": ("while True: pass", {"cpu_seconds": 1}, "exceeded", "cpu", "cpu_seconds", "used 1 s of CPU time"),
    "cpu of several": (
        "import os\nos.fork()\nwhile True: pass",
        {"cpu_seconds": 1, "processes": 2},
        "exceeded",
        "cpu",
        "cpu_seconds",
        "used 1 s of CPU time",
    ),
    "wall": ("import time\ntime.sleep(600)", {"wall_seconds": 2}, "exceeded", "wall", "wall_seconds", "ran for 2 s"),
    "memory": (
        "held = []\nwhile True: held.append(bytearray(1 << 24))",
        {"memory_bytes": 128 << 20},
        "exceeded",
        "memory",
        "memory_bytes",
        "more memory than its limit of 134217728 bytes",
    ),
    "threads": (THREADS, {}, "failed", "exception", "threads", "more threads than torch's 1 and 32 more"),
    "output": (
        "while True: print('x' * 1000)",
        {"output_bytes": 1 << 16},
        "exceeded",
        "output",
        "output_bytes",
        "more than 65536 bytes to stdout and stderr",
    ),
    "record bytes": (
        FLOOD,
        {"record_bytes": 1 << 17},
        "exceeded",
        "record",
        "record_bytes",
        "beyond 131072 bytes",
    ),
    "record rows": (
        FLOOD,
        {"record_rows": 1000},
        "exceeded",
        "record",
        "record_rows",
        "beyond 1000 rows",
    ),
    "record memory": (
        HEAVY + "while True: pass",
        {"record_bytes": 1 << 20},
        "exceeded",
        "record",
        "record_bytes",
        "take more than 7340032 bytes of memory, the most for one of 1048576 bytes",
    ),
    "record memory, of one that has ended": (
        HEAVY + "os._exit(0)",
        {"record_bytes": 1 << 20},
        "exceeded",
        "record",
        "record_bytes",
        "take more than 7340032 bytes of memory, the most for one of 1048576 bytes",
    ),
    "disk": (
        "open('/tmp/file', 'wb').write(b'x' * (3 << 20))",
        {"disk_bytes": 1 << 20},
        "failed",
        "exception",
        "disk_bytes",
        "more than 1048576 bytes into its private folders",
    ),
    "disk, many files": (
        "for n in range(100): open(f'/tmp/{n}', 'wb').write(b'x' * (1 << 16))",
        {"disk_bytes": 1 << 20},
        "failed",
        "exception",
        "disk_bytes",
        "`limits.disk_bytes` asks for more",
    ),
    "disk, by torch": (
        "torch.save(torch.zeros(1 << 20), '/tmp/file')",
        {"disk_bytes": 1 << 20},
        "failed",
        "exception",
        "disk_bytes",
        "`limits.disk_bytes` asks for more",
    ),
    "processes": (
        FORKED,
        {"processes": 3},
        "exceeded",
        "processes",
        "processes",
        "more processes at one time than 3",
    ),
    "one process": (
        "from torch.utils.data import DataLoader\nlist(DataLoader([1, 2], num_workers=1))",
        {},
        "failed",
        "exception",
        "processes",
        "DataLoader(num_workers=0)",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_holds_and_its_outcome_says_what_to_change(name, grouped, start):
    source, limits, status, reason, limit, words = LIMITS[name]
    outcome = start(grouped, TRACED + source, **limits)
    assert (outcome.status, outcome.reason, outcome.limit_hit) == (status, reason, limit), (
        outcome.error,
        outcome.facts,
    )
    assert words in outcome.error.message
    assert limit is None or f"`limits.{limit}` asks for more" in outcome.error.message
    assert outcome.record is not None
    assert {binding.name for binding in outcome.record.bindings} >= {"x", "y"}
    assert len(outcome.record.backward_calls) >= 1


@pytest.mark.parametrize("limits", [{"record_bytes": 64 << 10}, {"record_rows": 1000}])
def test_a_record_that_is_full_does_not_end_the_run(limits, grouped, start):
    outcome = start(grouped, TRACED + "for _ in range(400): (x * 2).sum().backward()\nprint('the end')", **limits)
    assert (outcome.status, outcome.reason, outcome.facts.stdout) == ("succeeded", "ended", b"the end\n"), outcome.error
    assert {row.what for row in outcome.record.truncations} & {"record bytes", "rows"}
    assert outcome.facts.record_bytes <= limits.get("record_bytes", outcome.facts.record_bytes)


def test_memory_of_several_processes_is_limited_together(grouped, start):
    source = (
        "import os, time\n"
        "for _ in range(7):\n    if os.fork() == 0:\n        held = bytearray(200 << 20)\n        time.sleep(600)\n"
        "os.wait()\n"
    )
    outcome = start(grouped, source, processes=8, memory_bytes=256 << 20, disk_bytes=0)
    assert (outcome.status, outcome.reason) == ("exceeded", "memory"), (outcome.error, outcome.facts)
    assert outcome.told_by == "supervisor"
    assert outcome.facts.oom_kills >= 1


def test_threads_of_native_code_are_limited_too(grouped, start):
    source = TRACED + (
        "import ctypes\nlibc = ctypes.CDLL(None)\nattr, name = ctypes.create_string_buffer(64), ctypes.c_ulong()\n"
        "start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: libc.pause())\nmade = 0\n"
        "while libc.pthread_create(ctypes.byref(name), None, start, None) == 0: made += 1\nprint(made)\nraise SystemExit(5)"
    )
    outcome = start(grouped, source)
    assert int(outcome.facts.stdout) <= 32
    assert outcome.facts.refused_tasks >= 1
    assert (outcome.status, outcome.limit_hit) == ("failed", "threads")


@pytest.mark.parametrize("program", ["open('/tmp/new', 'w')", "import tempfile\ntempfile.TemporaryFile()"])
def test_a_program_that_wants_a_folder_at_process_is_told_where_there_is_one(program, locked, start):
    outcome = start(locked, program)
    assert outcome.status == "failed"
    assert "isolation `namespace`" in outcome.error.message


def test_nothing_can_be_written_where_disk_bytes_is_nothing(grouped, start):
    outcome = start(grouped, "open('/tmp/new', 'w')", disk_bytes=0)
    assert outcome.status == "failed"
    assert "`limits.disk_bytes`" in outcome.error.message
