"""`with backprobe.watch(...)` in a job that runs already: what it sees, and that nothing of it is left."""

from __future__ import annotations

import ast
import inspect
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizers

import backprobe
from backprobe.capture import Options
from backprobe.capture.instrument.taps import Active
from backprobe.capture.program.block import Block
from backprobe.capture.program.notebook_cell import Cell, Notebook
from backprobe.record import FrameReader, check

SWAPPED = [
    torch.autograd.graph._engine_run_backward,
    torch.autograd.backward,
    torch.autograd.grad,
    nn.Module._wrapped_call_impl,
    torch.optim.Optimizer.zero_grad,
]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.spare = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x)).sum()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3))
        loss.backward()
        optimizer.step()


def state() -> Any:
    """What a capture changes in torch."""
    codes = [inspect.unwrap(function).__code__ for function in SWAPPED]
    hooks = len(optimizers._global_optimizer_pre_hooks), len(optimizers._global_optimizer_post_hooks)
    return codes, hooks, Active.recorder, weakref.getweakrefs, weakref.getweakrefcount


def test_a_watched_job_shows_parameters_calls_lines_graphs_gradients_and_steps(tmp_path: Path, capsys: Any) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with backprobe.watch(model, optimizer, save=tmp_path / "job.bprec") as watching:
        train(model, optimizer, 3)
    record = watching.record
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    fqns = {row.fqn for row in record.tensors if row.role == "parameter"}
    assert fqns == {"model.body.weight", "model.body.bias", "model.spare.weight", "model.spare.bias"}
    line = inspect.getsourcelines(train)[1] + 4
    assert {record.sites[call.site].line for call in record.backward_calls if call.site is not None} == {line}
    assert {record.sites[call.site].function for call in record.backward_calls if call.site is not None} == {"train"}
    assert all(call.nodes_run and call.held_bytes for call in record.backward_calls)
    assert [row.chain for row in record.module_calls[:2]] == ["model#0", "model#0.body#0"]
    assert [row.kind for row in record.optimizer_events] == ["zero_grad", "step"] * 3
    assert [row.sampled for row in record.steps] == [True] * 3
    assert {row.kind for row in record.leaf_grads} >= {"populate", "set-none"}
    assert record.edges
    assert record.saved
    assert "rules" in capsys.readouterr().err
    assert backprobe.load(tmp_path / "job.bprec") == record


def test_what_is_watched_has_its_name_where_a_call_of_the_result_begins_at_the_same_place() -> None:
    model = Net()
    watching = backprobe.watch(model).__enter__()
    model(torch.ones(2, 3)).backward()
    watching.__exit__(None, None, None)
    assert {row.fqn.partition(".")[0] for row in watching.record.tensors if row.role == "parameter"} == {"model"}


def test_a_module_may_be_converted_by_swapping_and_its_parameters_are_followed() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with backprobe.watch(model, optimizer, report=False) as watching:
            train(model, optimizer, 1)
            model.double().float()
            model.load_state_dict(Net().state_dict())
            train(model, optimizer, 1)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    record = watching.record
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    weights = {row.tensor for row in record.tensors if row.fqn == "model.body.weight"}
    assert len(weights) == 1, "swapping leaves the object as it is"
    kinds = [row.kind for row in record.leaf_grads if row.tensor in weights]
    assert kinds.count("populate") == 2


def test_afterwards_torch_is_as_it_was_also_after_an_exception() -> None:
    before = state()
    model = Net()
    kept = model(torch.ones(2, 3))
    watching = backprobe.watch(model, report=False)

    def fails() -> None:
        with watching:
            kept.backward(retain_graph=True)
            raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        fails()
    assert state() == before
    assert watching.record.raised[-1].type == "KeyError"
    assert not model._forward_hooks
    assert not any(node._backward_hooks for node in model.parameters())
    kept.backward()


WATCHING = """
import torch
import backprobe
from backprobe.integrations.attachment import Attachment

enc, head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)


def step():
    optimizer.zero_grad()
    head(torch.relu(enc(torch.ones(2, 3))).detach()).pow(2).mean().backward()
    optimizer.step()


def train(path):
    with backprobe.watch(enc, head, optimizer, save=path) as first:
        step()
    with backprobe.watch(enc, head, optimizer, save=path) as second:
        step()
    assert first.findings == second.findings == backprobe.check(step) == ()
    assert backprobe.load(path) == first.record
    assert (first.record.backward_calls, first.health(), first.lost) == ((), None, None)
    assert "nothing was recorded here: another capture" in first.summary()
    assert "another capture" in repr(first)
    attachment = Attachment({})
    attachment.begin([("head", head)])
    step()
    attachment.end()
    assert attachment.watching.findings == ()
"""


def _run(path: Path) -> Any:
    return backprobe.run(f"{WATCHING}\ntrain({str(path)!r})\n")


def _watch(path: Path, within: dict[str, Any]) -> Any:
    with backprobe.watch(within["enc"], within["head"], within["optimizer"], report=False) as watching:
        within["train"](path)
    return watching.record


def _block(path: Path, within: dict[str, Any]) -> Any:
    with Block([within["train"]], path.parent, Options()) as block:
        within["train"](path)
    return block.record


def _cell(path: Path, within: dict[str, Any]) -> Any:
    text = f"train({str(path)!r})"
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    cell = Cell(filename="<cell>", path="Cell [1]", text=text, tree=lambda: ast.parse(text))
    error = Notebook().run(cell, within, Options(entry="notebook"), reader.feed)
    assert error is None, error
    return reader.record()


@pytest.mark.parametrize("capture", [_run, _watch, _block, _cell])
def test_inside_another_capture_a_watch_leaves_the_recording_to_it_and_the_program_goes_on(
    tmp_path: Path, capsys: Any, capture: Any
) -> None:
    within: dict[str, Any] = {"__name__": "watching"}
    exec(WATCHING, within)
    record = capture(tmp_path / "own.bprec") if capture is _run else capture(tmp_path / "own.bprec", within)
    assert record.raised == ()
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert len(record.backward_calls) == 4
    assert capsys.readouterr().err.count("records nothing here") == 1


def test_a_watch_is_used_once_also_where_another_capture_records() -> None:
    model = Net()
    with backprobe.watch(model, report=False) as first:
        inner = backprobe.watch(model)
        with inner:
            model(torch.ones(1, 3)).backward()
        with pytest.raises(RuntimeError, match="used once"), inner:
            pass
    with pytest.raises(RuntimeError, match="used once"), first:
        pass


@pytest.mark.parametrize("thing", [None, [nn.Linear(1, 1)], "model"])
def test_what_cannot_be_watched_is_refused_before_anything_is_installed(thing: Any) -> None:
    with pytest.raises(TypeError, match=type(thing).__name__):
        backprobe.watch(thing)
    with pytest.raises(ValueError, match="1 or more"):
        backprobe.watch(every=0)


def test_the_numbers_are_those_of_an_unwatched_job() -> None:
    found = []
    for watched in (False, True):
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters())
        if watched:
            with backprobe.watch(model, optimizer, report=False):
                train(model, optimizer, 30)
        else:
            train(model, optimizer, 30)
        found.append([parameter.detach().clone() for parameter in model.parameters()])
    assert all(torch.equal(first, other) for first, other in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("program", "shown"), [("elsewhere", "loop.py"), ("jobs", "inner/loop.py"), ("", "jobs/inner/loop.py")]
)
def test_a_file_is_shown_from_the_programs_folder_on_and_never_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, shown: str
) -> None:
    for folder in ("elsewhere", "jobs/inner"):
        (tmp_path / folder).mkdir(parents=True)
    file = tmp_path / "jobs" / "inner" / "loop.py"
    file.write_text("def train(w):\n    loss = (w * w).sum()\n    loss.backward()\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "path", [str(tmp_path / program), *sys.path])
    inside: dict[str, Any] = {}
    exec(compile(file.read_text(), str(file), "exec"), inside)
    w = torch.ones(2, requires_grad=True)
    with backprobe.watch(w, report=False) as watching:
        inside["train"](w)
    paths = [source.path for source in watching.record.sources]
    assert shown in paths
    assert [path for path in paths if str(tmp_path) in path] == []
