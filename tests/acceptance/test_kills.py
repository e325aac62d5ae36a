"""Kill -9 of any part during a run: the run ends in a right terminal state, once."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.acceptance.conftest import STACKS, environment_of
from tests.support.served import SMALL, Served

pytestmark = pytest.mark.usefixtures("full_tier")


@pytest.fixture(scope="module", params=STACKS)
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running Backprobe of these tests' own: its processes are killed."""
    with environment_of(request.param, request) as environment:
        running = Served(tmp_path_factory.mktemp("home"), {**environment, **SMALL})
        yield running
        running.close()


SLOW = """import time, torch
x = torch.ones(3, requires_grad=True)
y = (x * x).sum()
time.sleep(4)
y.backward()
"""


def _running(stack: Served) -> str:
    """A slow run that has been claimed and is in its child."""
    answer = stack.client.post("/v1/runs", json={"source": SLOW, "limits": {"wall_seconds": 20}})
    assert answer.status_code == 202
    run: str = answer.json()["id"]
    stack.wait_until(lambda: stack.get(f"/v1/runs/{run}")["status"] == "running", "claimed")
    return run


def _ended_once(stack: Served, run: str, status: str) -> dict[str, Any]:
    ended = stack.wait_for_end(run, 90)
    assert ended["status"] == status, ended
    tensors = stack.items(f"/v1/runs/{run}/tensors")
    names = [tensor["name"] for tensor in tensors]
    assert names.count("x") <= 1
    assert names.count("y") <= 1
    return ended


def _complete(stack: Served, run: str) -> None:
    names = [tensor["name"] for tensor in stack.items(f"/v1/runs/{run}/tensors") if tensor["name"] is not None]
    assert sorted(names) == ["x", "y"]
    assert len(stack.items(f"/v1/runs/{run}/backward-calls")) == 1


def test_a_killed_worker_costs_time_not_the_run(stack: Served) -> None:
    run = _running(stack)
    stack.process_named("backprobe", "worker").kill()
    ended = _ended_once(stack, run, "succeeded")
    assert ended["attempt"] == 2
    _complete(stack, run)


def test_a_killed_child_costs_an_attempt_not_the_run(stack: Served) -> None:
    run = _running(stack)
    child = stack.wait_until(lambda: _child_of_zygote(stack), "a child runs")
    os.kill(child, signal.SIGKILL)
    ended = stack.wait_for_end(run, 90)
    if ended["isolation"]["level"] == "none":  # there a program can do that to itself
        assert (ended["status"], ended["error"]["code"]) == ("failed", "signal")
        return
    assert (ended["status"], ended["attempt"]) == ("succeeded", 2)
    _complete(stack, run)


def test_a_killed_zygote_costs_no_run(stack: Served) -> None:
    run = _running(stack)
    stack.wait_until(lambda: _child_of_zygote(stack), "a child runs")
    _zygotes(stack)[0].kill()
    _ended_once(stack, run, "succeeded")
    _complete(stack, run)


def test_a_killed_reaper_comes_back(stack: Served) -> None:
    run = _running(stack)
    stack.process_named("backprobe", "reaper").kill()
    _ended_once(stack, run, "succeeded")
    stack.wait_until(lambda: stack.process_named("backprobe", "reaper"), "a new reaper")


def test_a_killed_serve_leaves_nothing_and_goes_on_when_started_again(stack: Served) -> None:
    run = _running(stack)
    children = stack.processes()
    stack.process.kill()
    stack.process.wait(10)
    stack.wait_until(lambda: not any(p.is_running() and p.status() != "zombie" for p in children), "all are gone")
    stack.start()
    ended = _ended_once(stack, run, "succeeded")
    assert ended["attempt"] == 2
    _complete(stack, run)


def _zygotes(stack: Served) -> list[Any]:
    return [p for p in stack.processes() if _is_warm(p) and not _is_child(p)]


def _is_warm(process: Any) -> bool:
    """A warm process or a fork of one; bubblewrap, which may have started it, carries the same words."""
    with contextlib.suppress(psutil.Error):
        return process.name() != "bwrap" and any("zygote" in word for word in process.cmdline())
    return False


def _is_child(process: Any) -> bool:
    with contextlib.suppress(psutil.Error):
        return _is_warm(process.parent())
    return True


def _child_of_zygote(stack: Served) -> int | None:
    """A child in which the program runs: it has closed the descriptor on which it waited for its `go`."""
    for zygote in _zygotes(stack):
        with contextlib.suppress(psutil.Error, OSError):
            for child in zygote.children(recursive=True):
                held = os.listdir(f"/proc/{child.pid}/fd")
                if os.getsid(child.pid) == child.pid and held and "4" not in held:
                    return int(child.pid)
    return None


@pytest.fixture(autouse=True)
def _serve_is_well(stack: Served) -> None:
    stack.wait_until(lambda: stack.get("/readyz"), "ready")
