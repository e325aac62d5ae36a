"""A run on the queue gpu, end to end, on SQLite and the embedded broker: claim, process for one run, record, page.

On CUDA `backprobe worker --queue gpu` itself serves it. On the stand-in the same worker runs with one part replaced:
what asks the driver for devices (`stand_in_worker.py`).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.gpu.place import Place, Row, expect, rows
from tests.support.processes import BACKPROBE
from tests.support.stack import Stack

START_SECONDS: Final = 60.0
RUN_SECONDS: Final = 30.0
PROGRAM: Final = """
import torch
w = torch.ones(512, device=DEVICE, requires_grad=True)
b = w * 2
loss = b.exp().sum()
loss.backward(retain_graph=True)
print("device", w.device.type, round(w.grad.mean().item(), 3))
"""
BROKEN: Final = """
import torch
w = torch.ones(3, device=DEVICE, requires_grad=True)
loss = w.sum()
loss.backward()
loss = (w * w).sum()
loss.backward()
loss.backward()
"""


def prove(place: Place) -> Iterator[Row]:
    """Rows for a run that succeeds, one whose program is wrong, and the page of each."""
    with tempfile.TemporaryDirectory(prefix="backprobe-gpu-") as folder:
        stack = Stack(environment={"BACKPROBE_HOME": str(Path(folder) / "home")}, folder=Path(folder))
        try:
            yield from rows(place, _checks(place, stack))
        finally:
            stack.close()


def _checks(place: Place, stack: Stack) -> Iterator[tuple[str, Callable[[], str]]]:
    ran: dict[str, str] = {}
    yield "a worker of the queue beats", partial(_beats, place, stack)
    yield "a run is claimed, runs by itself, and succeeds", partial(_succeeds, place, stack, ran)
    yield "its record is stored, with findings", partial(_check_stored, place, stack, ran)
    yield "its page is served", partial(_page, place, stack, ran)
    yield "a program that is wrong fails, and the rule says why", partial(_fails, place, stack)
    yield "the worker ends when it is asked to", partial(_ends, stack)


def _beats(place: Place, stack: Stack) -> str:
    from store.admin import workers

    command = [*BACKPROBE, "worker", "--queue", "gpu"]
    if not place.is_cuda:
        command = [sys.executable, "-m", "tests.gpu.stand_in_worker"]
    environment = os.environ | stack.environment | {"BACKPROBE_SANDBOX_UID": ""}
    stack.processes.start(command, environment, name="worker", cwd=Path(__file__).parents[2])

    def beaten() -> Any:
        expect(stack.processes.started[0].poll() is None, f"the worker has ended: {stack.log()[-2000:]}")
        with stack.database.read() as transaction:
            return next((row for row in workers.live(transaction) if row.devices), None)

    node = stack.wait(beaten, "a worker with devices beats", START_SECONDS)
    return f"devices {', '.join(node.devices)}"


def _ran(place: Place, stack: Stack, program: str) -> Any:
    expect(stack.processes.started[0].poll() is None, "there is no worker")
    public_id = stack.submit(program.replace("DEVICE", repr(place.device)), queue="gpu", min_isolation="none")
    return stack.wait_for_end(public_id, RUN_SECONDS)


def _succeeds(place: Place, stack: Stack, ran: dict[str, str]) -> str:
    run = _ran(place, stack, PROGRAM)
    expect(run.status == "succeeded", f"{run.status}: {run.error}\n{stack.log()[-2000:]}")
    ran["good"] = run.id
    return f"{run.isolation.get('gpu')}"


def _good(ran: dict[str, str]) -> str:
    expect("good" in ran, "no run has succeeded")
    return ran["good"]


def _check_stored(place: Place, stack: Stack, ran: dict[str, str]) -> str:
    from store.records.reader import load_record

    run = stack.run(_good(ran))
    expect(run.key is not None, "there is no record")
    with stack.database.read() as transaction:
        record = None if run.key is None else load_record(transaction, run.key)
    if record is None:
        raise AssertionError("its record cannot be read")
    expect(any(row.device.startswith(place.device) for row in record.tensors), "no tensor of it lay on the device")
    expect(len(record.backward_calls) == 1, f"{len(record.backward_calls)} backward calls")
    return f"{len(record.tensors)} tensors, {len(record.snapshots)} snapshots"


def _page(place: Place, stack: Stack, ran: dict[str, str]) -> str:
    text = _check_page(stack, _good(ran), "needless-retain-graph")
    expect(f"device {place.device}" in text, "the page does not show what the program printed")
    return f"{len(text)} characters, with what it printed and the finding needless-retain-graph"


def _check_page(stack: Stack, public_id: str, finding: str) -> str:
    """The page of a run, which must name a finding."""
    from service.app import create_app
    from service.settings import Settings

    application = create_app(Settings.from_environment(stack.environment, Path(stack.environment["BACKPROBE_HOME"])))
    answer = application.test_client().get(f"/runs/{public_id}")
    expect(answer.status_code == 200, f"the page answers {answer.status_code}")
    expect(finding in answer.text, f"the page does not show the finding {finding}")
    return answer.text


def _fails(place: Place, stack: Stack) -> str:
    run = _ran(place, stack, BROKEN)
    expect(run.status == "failed", f"{run.status}: {run.error}")
    _check_page(stack, run.id, "second-backward-freed-graph")
    return "second-backward-freed-graph"


def _ends(stack: Stack) -> str:
    (worker,) = stack.processes.started
    worker.terminate()
    expect(worker.wait(60) == 0, f"it ended with {worker.returncode}")
    return ""
