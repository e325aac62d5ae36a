"""Threads have timelines of their own; forked children drop the instrument; pickled functions need no taps."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import backprobe
from backprobe.capture import run_source
from backprobe.record import check
from tests.backprobe.capture.in_process import recorded
from tests.support.forks import run


def ran(tmp_path: Path, source: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A script under `backprobe run`; its output is the plain one's."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(source))
    (plain,) = run([("plain", script, [])])
    done = subprocess.run(
        [sys.executable, "-m", "backprobe", "run", "--save", "r.bprec", "--exit-zero", *more, script.name],
        check=False, cwd=tmp_path, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == sorted(plain["out"].splitlines()), done.stderr
    assert done.stderr.count("backward calls\n") == 1, "one report, the parent's"
    return done


FORKS = """\
import os, sys, torch
from torch.utils.data import DataLoader, Dataset
w = torch.ones(2, requires_grad=True)
loss = (w * 2).sum()
class Data(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        t = torch.ones(2) * i
        import builtins
        from backprobe.capture.instrument.taps import Active
        assert Active.recorder is None
        return t
if __name__ == "__main__":
    for batch in DataLoader(Data(), num_workers=2, batch_size=2, multiprocessing_context="fork"):
        (w * batch).sum().backward()
    pid = os.fork()
    loss.backward()
    if pid:
        print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), w.grad.tolist(), flush=True)
    else:
        sys.stdout.flush()
        sys.exit(7)
"""


@pytest.mark.usefixtures("fresh_python")
def test_a_forked_child_drops_the_instrument_and_ends_as_it_would_plain(tmp_path: Path) -> None:
    ran(
        tmp_path,
        FORKS.replace(
            "from backprobe.capture.instrument.taps import Active\n        assert Active.recorder is None", "pass"
        ),
    )
    done = ran(tmp_path, FORKS)
    assert "Traceback" not in done.stderr
    record = backprobe.load(tmp_path / "r.bprec")
    check(record)
    assert record.end is not None
    assert len(record.backward_calls) == 3
    assert record.end.own_errors == 0
    assert [(row.what, row.seen) for row in record.truncations] == [("child processes", 1)]
    assert ", 1 child process not looked at\n" in done.stderr


@pytest.mark.usefixtures("fresh_python")
def test_children_started_by_spawn_run_and_are_said_not_to_be_seen(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        """\
        import torch, torch.multiprocessing as mp
        def work(i, q):
            t = torch.ones(2, requires_grad=True)
            (t * i).sum().backward()
            q.put(t.grad.tolist())
        if __name__ == "__main__":
            context = mp.get_context("spawn")
            q = context.Queue()
            child = context.Process(target=work, args=(3, q))
            child.start()
            print(q.get(), flush=True)
            child.join()
            print(child.exitcode)
        """,
    )
    assert backprobe.load(tmp_path / "r.bprec").backward_calls == ()
    assert ", 1 child process not looked at\n" in done.stderr


@pytest.mark.parametrize(
    ("start", "count"),
    [
        ("multiprocessing.get_context('fork').Process(target=len, args=((),))", 1),
        ("torch.multiprocessing.get_context('fork').Pool(2)", 2),
        ("multiprocessing.get_context('fork').Manager()", 0),
        ("subprocess.Popen([sys.executable, '-c', '1'])", 1),
        ("subprocess.Popen(sys.executable + ' -c 1', shell=True)", 1),
        ("subprocess.Popen('true')", 0),
        ("subprocess.Popen('true # it is no closing quotation: \\'', shell=True)", 0),
        ("list(torch.utils.data.DataLoader(torch.ones(2), num_workers=1, multiprocessing_context='fork'))", 0),
    ],
)
def test_processes_that_may_compute_gradients_are_counted(start: str, count: int) -> None:
    record = recorded(
        f"""\
        import multiprocessing, subprocess, sys, torch
        started = {start}
        if hasattr(started, "start") and hasattr(started, "join"):
            started.start()
            started.join()
        for end in ("terminate", "shutdown", "wait", "join"):
            if hasattr(started, end):
                getattr(started, end)()
        """
    )
    assert sum(row.seen for row in record.truncations if row.what == "child processes") == count
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error


def test_threads_have_timelines_of_their_own() -> None:
    record = run_source(
        textwrap.dedent("""\
        import threading, torch
        def work(n):
            v = torch.ones(2, requires_grad=True)
            loss = (v * n).sum()
            loss.backward()
        threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(3)]
        for t in threads: t.start()
        for t in threads: t.join()
        """)
    )
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0
    assert {row.name for row in record.threads} == {"MainThread", "worker 0", "worker 1", "worker 2"}
    calls = {record.threads[call.thread].name for call in record.backward_calls}
    assert calls == {"worker 0", "worker 1", "worker 2"}
    bound = {record.threads[record.moments[row.moment].thread].name for row in record.bindings if row.name == "loss"}
    assert bound == calls


@pytest.mark.usefixtures("fresh_python")
def test_a_function_pickled_by_value_runs_in_a_process_without_taps(tmp_path: Path) -> None:
    done = ran(
        tmp_path,
        """\
        import pickle, subprocess, sys, cloudpickle, torch
        scale = 3
        def outer(k):
            def double(t, *, more=1):
                "doc"
                out = t * 2 * k * scale + more
                return out
            return double
        class Net(torch.nn.Module):
            def forward(self, x):
                h = x * scale
                return h
        data = cloudpickle.dumps((outer(5), Net(), lambda t: t + 1))
        code = "import sys, pickle, torch; f, n, g = pickle.loads(bytes.fromhex(sys.argv[1])); print(g(n(f(torch.ones(1)))))"
        print(subprocess.run([sys.executable, "-c", code, data.hex()], capture_output=True, text=True).stdout)
        print(outer(5)(torch.ones(1)), pickle.loads(data)[0](torch.ones(1)))
        """,
    )
    assert "tensor([94.])" in done.stdout
    import cloudpickle

    assert cloudpickle.Pickler._dispatch_table[type(ran.__code__)].__name__ == "_code_reduce"
