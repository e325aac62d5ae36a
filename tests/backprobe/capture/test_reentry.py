"""User code that runs in the middle of Backprobe's: signal handlers and trace functions."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest

from tests.support.forks import run


def both(tmp_path: Path, source: str, core: str | None = None) -> tuple[str, float, str]:
    """A program's output plain, the seconds it took captured, and its output then with our count of errors."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(source))
    (plain,) = run([("plain", path, [])], core)
    start = time.monotonic()
    (captured,) = run([("captured", path, [])], core)
    assert (plain["code"], captured["code"]) == (0, 0), (plain["err"], captured["err"])
    return (
        plain["out"],
        time.monotonic() - start,
        f"{captured['out']}{captured['own_errors']} {captured['own_error'] or ''}\n",
    )


def test_a_signal_handler_that_makes_tensors_never_waits_for_us(tmp_path: Path) -> None:
    plain, seconds, captured = both(
        tmp_path,
        """\
        import signal
        import torch

        def tick(number, frame):
            beat = torch.ones(2)
            beat = beat * 2

        signal.signal(signal.SIGALRM, tick)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        w = torch.ones(2, requires_grad=True)
        for step in range(3000):
            loss = (w * 2).sum()
            loss.backward()
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("done", w.grad.tolist())
        """,
    )
    assert captured == f"{plain}0 \n"
    assert seconds < 60


def test_a_trace_function_of_the_user_never_waits_for_us(tmp_path: Path) -> None:
    plain, seconds, captured = both(
        tmp_path,
        """\
        import sys
        import torch

        seen = 0

        def tr(frame, event, argument):
            global seen
            seen = seen + 1
            return tr

        def work(x):
            h = x * 2
            h = h + 1
            return h.sum()

        x = torch.ones(2, requires_grad=True)
        sys.settrace(tr)
        loss = work(x)
        sys.settrace(None)
        loss.backward()
        print(x.grad.tolist(), seen > 3)
        """,
    )
    assert captured == f"{plain}0 \n"
    assert seconds < 30


def test_a_handler_that_raises_leaves_the_lock_open_for_other_threads(tmp_path: Path) -> None:
    plain, seconds, captured = both(
        tmp_path,
        """\
        import signal
        import threading
        import torch

        def tick(number, frame):
            raise TimeoutError("tick")

        signal.signal(signal.SIGALRM, tick)
        w = torch.ones(2, requires_grad=True)
        for attempt in range(40):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                while True:
                    h = w * 2
            except TimeoutError:
                pass

        def other():
            for step in range(20):
                k = w * 3
            k.sum().backward()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        print(w.grad.tolist())
        """,
    )
    assert captured == f"{plain}0 \n"
    assert seconds < 30


def test_a_handler_that_raises_while_a_tensor_dies_is_met_by_the_program(tmp_path: Path) -> None:
    plain, _, captured = both(
        tmp_path,
        """\
        import signal
        from collections import deque
        from functools import partial
        from operator import call

        import torch

        def tick(number, frame):
            raise TimeoutError("tick")

        signal.signal(signal.SIGALRM, tick)
        w = torch.ones(2, requires_grad=True)
        met = 0
        for attempt in range(20):
            kept = [[w * 2, w + 1], [w * 3]]
            late = partial(signal.setitimer, signal.ITIMER_REAL, 1e-4), partial(sum, range(1_000_000)), kept.clear
            try:
                deque(map(call, late), 0)  # the tensors die after the signal came, and before any frame could handle it
            except TimeoutError:
                met += 1
        print(met, w.requires_grad)
        """,
    )
    assert captured == f"{plain}0 \n"


@pytest.mark.parametrize("core", ["c", pytest.param("python", marks=pytest.mark.full)])
def test_what_a_handler_raises_between_two_statements_is_met_by_the_program(core: str, tmp_path: Path, require) -> None:
    if core == "c":
        require("core")
    plain, _, captured = both(
        tmp_path,
        """\
        import random
        import signal

        import torch

        raised = 0

        def tick(number, frame):
            global raised
            raised += 1
            raise TimeoutError("tick")

        signal.signal(signal.SIGALRM, tick)
        random.seed(1)
        w = torch.ones(2, requires_grad=True)
        met = 0
        while raised < 400:
            try:
                before = raised
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 1e-3))
                while raised == before:
                    kept = w.requires_grad
            except TimeoutError:
                met += 1
        print(raised - met)
        """,
        core,
    )
    assert captured == f"{plain}0 \n" == "0\n0 \n"


def test_a_timer_ends_with_the_program_that_set_it_and_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "captures.py"
    path.write_text(
        "import signal\n"
        "from backprobe.capture.program.launch import run_source\n"
        "signal.setitimer(signal.ITIMER_VIRTUAL, 1000)\n"
        "run_source('import signal; signal.alarm(1000); signal.setitimer(signal.ITIMER_PROF, 1000)')\n"
        "print(*(signal.getitimer(timer)[0] > 0 for timer in (0, 1, 2)))\n"
    )
    (ran,) = run([("plain", path, [])])
    assert (ran["out"], ran["code"]) == ("False True False\n", 0), ran["err"]


def test_a_run_that_another_thread_closes_while_the_dead_are_buried_ends_nothing(tmp_path: Path, require) -> None:
    require("core")
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(
            """\
            import gc
            import torch
            from backprobe.capture import _core
            from backprobe.capture.rewriting.sites import Sites

            tensors = next(found for found in gc.get_objects() if type(found) is _core.Tensors)
            at_instruction = Sites.at_instruction
            waiting = []

            def close_first(self, *where):  # as a thread does to which the interpreter switches there
                if waiting:
                    waiting.clear()
                    tensors.close()
                return at_instruction(self, *where)

            Sites.at_instruction = close_first
            for _ in range(3):
                x = torch.ones(2, requires_grad=True)
                y = (x * 2).sum()
            waiting.append(1)
            x = y = None
            def later():
                z = torch.ones(1)
                return z
            later()
            print("went on", waiting)
            """
        )
    )
    (captured,) = run([("captured", path, [])], "c")
    assert (captured["code"], captured["out"]) == (0, "went on []\n")
