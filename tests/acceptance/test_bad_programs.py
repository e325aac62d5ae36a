"""A program that misbehaves ends in the documented way, and the next good one is not touched by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytestmark = pytest.mark.usefixtures("full_tier")

if TYPE_CHECKING:
    from tests.support.served import Served

GOOD = """import torch
torch.manual_seed(0)
x = torch.randn(8, 4)
w = torch.randn(4, 3, requires_grad=True)
torch.tanh(x @ w).sum().backward()
print(repr(float(w.grad.norm())))
"""


class Bad(NamedTuple):
    """A program, the limits it runs under, how it must end, and what its error must say."""

    source: str
    status: str
    whose: str | None = "program"
    code: str | None = None
    type: str | None = None
    says: str = ""
    exit_code: int | None = None
    limits: dict[str, Any] = {}


PROGRAMS: dict[str, Bad] = {
    "an infinite loop, by the clock": Bad(
        "x = 1\nwhile True: pass\n", "exceeded", "limit", "wall-seconds", limits={"wall_seconds": 2, "cpu_seconds": 60}
    ),
    "an infinite loop, by its CPU time": Bad(
        "while True: pass\n", "exceeded", "limit", "cpu-seconds", limits={"cpu_seconds": 1, "wall_seconds": 60}
    ),
    "asleep for ever": Bad(
        "import time\ntime.sleep(1e6)\n", "exceeded", "limit", "wall-seconds", limits={"wall_seconds": 2}
    ),
    "a thread that never ends": Bad(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\n",
        "exceeded",
        "limit",
        "wall-seconds",
        limits={"wall_seconds": 2},
    ),
    "one gigabyte of output": Bad(
        "import sys\nline = 'a' * 65536\nfor n in range(16384): sys.stdout.write(line)\n",
        "exceeded",
        "limit",
        "output-bytes",
    ),
    "one gigabyte on stderr": Bad(
        "import os\nfor n in range(16384): os.write(2, b'e' * 65536)\n", "exceeded", "limit", "output-bytes"
    ),
    "more memory than allowed": Bad(
        "held = []\nwhile True: held.append(bytearray(1 << 24))\n",
        "exceeded",
        "limit",
        "memory-bytes",
        limits={"memory_bytes": 256 << 20},
    ),
    "a tensor larger than allowed": Bad(
        "import torch\nx = torch.ones(1 << 30)\n",
        "exceeded",
        "limit",
        "memory-bytes",
        limits={"memory_bytes": 256 << 20},
    ),
    "os._exit": Bad("import os\nos._exit(7)\n", "failed", code="no-end", exit_code=7),
    "os._exit(0) hides nothing": Bad("import os\nos._exit(0)\n", "failed", code="no-end", exit_code=0),
    "a segfault": Bad("import ctypes\nctypes.string_at(0)\n", "failed", code="signal", says="SIGSEGV"),
    "an abort": Bad("import os\nos.abort()\n", "failed", code="signal", says="SIGABRT"),
    "it kills itself": Bad("import os\nos.kill(os.getpid(), 9)\n", "failed", code="signal", says="SIGKILL"),
    "it kills its group": Bad("import os\nos.killpg(0, 9)\n", "failed", code="signal", says="SIGKILL"),
    "endless recursion": Bad(
        "def f(n):\n    return f(n + 1)\nf(0)\n",
        "failed",
        code="raised",
        type="RecursionError",
        says="maximum recursion depth",
    ),
    "sys.exit(3)": Bad("import sys\nsys.exit(3)\n", "failed", code="exited", exit_code=3),
    "sys.exit with a text": Bad("import sys\nsys.exit('no data')\n", "failed", code="exited", exit_code=1),
    "an exception of odd characters": Bad(
        "raise ValueError('\\ud800 \\u202e\\x1b[31m <b>\\x00 \\U0001d70e')\n",
        "failed",
        code="raised",
        type="ValueError",
        says="<b>",
    ),
    "an exception of 200 kB": Bad("raise ValueError('v' * 200_000)\n", "failed", code="raised", type="ValueError"),
    "an exception whose text raises": Bad(
        "class E(Exception):\n    def __str__(self):\n        raise RuntimeError('no')\nraise E\n",
        "failed",
        code="raised",
        type="E",
    ),
    "KeyboardInterrupt": Bad("raise KeyboardInterrupt\n", "failed", code="raised", type="KeyboardInterrupt"),
    "a missing module": Bad(
        "import no_such_module\n", "failed", code="raised", type="ModuleNotFoundError", says="no_such_module"
    ),
    "it reads what nobody typed": Bad("input()\n", "failed", code="raised", type="EOFError"),
    "a record of garbage": Bad(
        "import os\nos.write(3, b'\\xff' * 4096)\nwhile True: pass\n",
        "failed",
        code="bad-record",
        limits={"wall_seconds": 5},
    ),
    "a record that never ends": Bad(
        "import os\nwhile True: os.write(3, b'\\x00\\x00\\x08\\x00' + bytes(1 << 19))\n",
        "failed",
        code="bad-record",
        limits={"wall_seconds": 5},
    ),
    "it closes the record": Bad("import os\nos.close(3)\nx = 1\n", "failed", code="no-end"),
    "it leaves a child behind": Bad(
        "import os, time\nif os.fork() == 0:\n    time.sleep(1e6)\n", "succeeded", None, exit_code=0
    ),
}


_REFUSED = {"code": "raised", "type": "PermissionError", "whose": "program", "status": "failed", "exit_code": 1}
CONFINED: dict[str, dict[str, Any]] = {
    "it kills itself": _REFUSED,
    "it kills its group": _REFUSED,
    "it leaves a child behind": _REFUSED,
}
"""What ends otherwise where no process may be started, no other signaled, and SIGKILL only comes from outside."""

FIRST_OF_ITS_NAMESPACE: dict[str, dict[str, Any]] = CONFINED | {
    "an abort": {"says": "SIGSEGV"},
}
"""Besides, for pid 1 of a pid namespace: the kernel lets no signal with its default action reach it from inside."""


@pytest.fixture(scope="module")
def good_output(stack: Served) -> str:
    """What the good program prints, before any bad one ran."""
    return _good(stack)


def _good(stack: Served) -> str:
    run = stack.run(GOOD)
    assert run["status"] == "succeeded", run
    printed: str = stack.get(f"/v1/runs/{run['id']}/output")["stdout"]["tail"]
    assert float(printed) > 0
    return printed


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_bad_program_ends_as_documented(stack: Served, good_output: str, what: str) -> None:
    bad = PROGRAMS[what]
    run = stack.run(bad.source, limits=bad.limits)
    other = {"process": CONFINED, "namespace": FIRST_OF_ITS_NAMESPACE}.get(run["isolation"]["level"], {})
    bad = bad._replace(**({"says": ""} | other[what] if what in other else {}))
    assert run["status"] == bad.status, run
    error = run["error"]
    if bad.whose is None:
        assert error is None
    else:
        assert error["whose"] == bad.whose, error
        assert bad.code in (None, error["code"]), error
        assert bad.type in (None, error["type"]), error
        assert bad.says in error["message"], error
    if bad.exit_code is not None:
        assert run["outcome"]["exit_code"] == bad.exit_code
    assert _good(stack) == good_output


def test_what_was_recorded_before_a_limit_is_kept(stack: Served) -> None:
    source = "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\nwhile True: pass\n"
    run = stack.run(source, limits={"wall_seconds": 2})
    assert run["status"] == "exceeded"
    assert run["record"]["state"] == "partial"
    tensors = stack.items(f"/v1/runs/{run['id']}/tensors")
    assert [(tensor["name"], tensor["state"]["grad"]) for tensor in tensors if tensor["name"] == "x"] == [
        ("x", "present")
    ]
    assert len(stack.items(f"/v1/runs/{run['id']}/backward-calls")) == 1


def test_no_process_of_a_snippet_outlives_it(stack: Served) -> None:
    import psutil

    mark = str(900_000 + stack.port)  # of this stack alone
    source = f"import os, sys\nif os.fork() == 0:\n    os.setsid()\n    os.execvp('sleep', ['sleep', '{mark}'])\n"
    stack.run(source)

    def has_ended() -> bool:
        return not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] and mark in p.info["cmdline"]]

    stack.wait_until(has_ended, "the grandchild is gone")
