"""Graphs that are deeper than a stack can free: the process lives, and the record says what was left out.

Each program runs in a separate process: what these tests would find is a crash.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from backprobe import stack
from backprobe.record import Record, loads

AT_ONCE = """\
import torch
x = torch.ones(1, requires_grad=True)
exec("y = x.clone()\\nfor _ in range(150_000):\\n    y = y + 1.0")
y.backward()
print(int(x.grad))
del y
"""

OVER_CALLS = """\
import torch
h = torch.ones(1, requires_grad=True)
for k in range(100):
    p = h
    exec("for _ in range(1500):\\n    h = h * 1.0")
    torch.autograd.grad(h.sum(), p, retain_graph=True)
del h, p
print("freed")
"""

IN_A_THREAD = """\
import threading, torch
threading.stack_size(2 << 20)
def work():
    x = torch.ones(1, requires_grad=True)
    space = {"y": x.clone()}
    exec("for _ in range(60_000):\\n    y = y + 1.0", space)
    space["y"].backward()
    space.clear()
    print("freed")
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""

RUN = """\
import sys
from pathlib import Path
from backprobe.capture import Options, run_path
from backprobe.record.encoding.codec import MAGIC
out = Path(sys.argv[2]).open("wb")
out.write(MAGIC)
run_path(Path(sys.argv[1]), [], Options(tier="grad"), out.write)
"""


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.parametrize(
    ("source", "said"), [(AT_ONCE, "1"), (OVER_CALLS, "freed"), (IN_A_THREAD, "freed")], ids=["once", "calls", "thread"]
)
def test_a_graph_too_deep_for_the_stack_is_freed_and_the_record_says_what_is_missing(
    tmp_path: Path, source: str, said: str
) -> None:
    script, kept = tmp_path / "script.py", tmp_path / "kept.bprec"
    script.write_text(source)
    command = [
        sys.executable,
        "-c",
        f"import resource\nresource.setrlimit(resource.RLIMIT_STACK, (8 << 20, -1))\n{RUN}",
    ]
    done = subprocess.run([*command, str(script), str(kept)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, [said]), done.stderr[-2000:]
    record = loads(kept.read_bytes())
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert any(row.what == "live nodes" and row.seen > row.kept for row in record.truncations)
    assert any(call.truncated for call in record.backward_calls)
    assert most_alive(record) <= (8 << 20) // 1600


def most_alive(record: Record) -> int:
    """The most nodes that were known to live at one moment."""
    changes = [(node.first_seen, 1) for node in record.nodes]
    changes += [(node.died, -1) for node in record.nodes if node.died is not None]
    alive = most = 0
    for _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def test_the_budget_follows_the_smallest_stack() -> None:
    mib = 1 << 20
    assert stack.node_budget(8 * mib, 8 * mib) == 5242
    assert stack.node_budget(8 * mib, 2 * mib) == 1310, "8 MiB, and a thread of 2"
    assert stack.node_budget(0, 2 * mib) == 1310, "no limit: glibc gives threads 2 MiB"
    assert stack.node_budget(512 * mib, 8 * mib) == 20971, "raised: threads keep a 2-fold margin"
    assert stack.node_budget(512 * mib, 512 * mib) == 200_000


@pytest.mark.usefixtures("fresh_python")
def test_the_command_starts_again_with_a_larger_stack_and_nothing_else_changes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """\
            import os, resource, sys, threading
            print(os.getppid(), resource.getrlimit(resource.RLIMIT_STACK)[0], "BACKPROBE_STACK_WAS" in os.environ)
            print(sys.argv[1:], sys.stdin.read())
            sys.exit(7)
            """
        )
    )
    limited = "import os, resource, sys\nresource.setrlimit(resource.RLIMIT_STACK, (8 << 20, -1))\n"
    limited += "print(os.getppid(), flush=True)\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    saved = tmp_path / "kept.bprec"
    command = ["-m", "backprobe", "run", "--save", str(saved), str(script), "a", "b"]
    done = subprocess.run(
        [sys.executable, "-c", limited, *command], input="typed", capture_output=True, text=True, check=False
    )
    parent, *rest = done.stdout.split("\n")
    assert rest[0] == f"{parent} {512 << 20} False", done.stderr
    assert rest[1] == "['a', 'b'] typed"
    assert done.returncode == 4, "the script did not end well"
    record = loads(saved.read_bytes())
    assert record.end is not None
    assert record.end.exit_code == 7
    assert record.header.environment.node_budget == 20971
    assert any("RLIMIT_STACK" in text for text in record.header.deviations)
