"""A step says which tensors it left as they were though they had a gradient."""

from __future__ import annotations

import pytest
import torch

from backprobe.capture.torch_access.tensor_memory import first_elements
from backprobe.rules import judge
from tests.backprobe.capture.in_process import recorded

PROGRAM = """\
import torch
class Descent(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {{"lr": lr}})
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                {update}
weight = torch.ones(2, 2, requires_grad=True)
bias = torch.ones(2, requires_grad=True)
optimizer = Descent([weight, bias], {rate})
for _ in range(3):
    optimizer.zero_grad()
    {loss}.backward()
    optimizer.step()
"""
LOSS = "(weight.sum() ** 2 + bias.sum() ** 2)"
LOST = "(p.clone() if p.dim() == 2 else p).sub_(group['lr'] * p.grad)"


def record_of(update: str, rate: float = 0.1, loss: str = LOSS):
    return recorded(PROGRAM.format(update=update, rate=rate, loss=loss))


def unchanged_names(record) -> list[tuple[str, ...] | None]:
    """The names of what each step left as it was."""
    names = {row.tensor: row.name for row in reversed(record.bindings)}
    steps = [row for row in record.optimizer_events if row.kind == "step"]
    return [None if row.unchanged is None else tuple(names[number] for number in row.unchanged) for row in steps]


def messages_of(record) -> list[str]:
    return [finding.message for finding in judge(record).findings if finding.evidence.get("breach") == "not-written"]


def test_an_update_that_goes_into_a_copy_is_told() -> None:
    record = record_of(LOST)
    assert unchanged_names(record) == [("weight",)] * 3
    (message,) = messages_of(record)
    assert message.startswith("Each step leaves `weight` exactly as it was")


@pytest.mark.parametrize(
    "update", ["p.sub_(group['lr'] * p.grad)", "p.data = p.data - group['lr'] * p.grad", "p.data.sub_(0.1 * p.grad)"]
)
def test_an_update_that_arrives_is_none(update: str) -> None:
    record = record_of(update)
    assert unchanged_names(record) == [()] * 3
    assert messages_of(record) == []


def test_a_gradient_of_zero_changes_nothing_and_is_not_told() -> None:
    record = record_of("p.sub_(group['lr'] * p.grad)", loss="(weight.sum() ** 2 + 0 * bias.sum())")
    assert unchanged_names(record) == [()] * 3


def test_a_learning_rate_of_zero_is_no_lost_update() -> None:
    record = record_of("p.sub_(group['lr'] * p.grad)", rate=0.0)
    assert unchanged_names(record) == [("weight", "bias")] * 3
    assert messages_of(record) == []


def test_a_clear_has_compared_nothing() -> None:
    record = record_of(LOST)
    assert {row.unchanged for row in record.optimizer_events if row.kind == "zero_grad"} == {None}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_an_update_below_the_precision_of_the_parameter_is_told(dtype: torch.dtype) -> None:
    small = torch.finfo(dtype).eps / 8
    record = recorded(
        f"import torch\nw = torch.ones(3, dtype={dtype}, requires_grad=True)\n"
        f"optimizer = torch.optim.SGD([w], lr={small})\nfor _ in range(3):\n    optimizer.zero_grad()\n"
        "    w.sum().backward()\n    optimizer.step()\n"
    )
    assert unchanged_names(record) == [("w",)] * 3


def test_first_elements_are_read_in_place_only() -> None:
    made = torch.arange(6.0).reshape(2, 3)
    assert first_elements(made, 2) == made.numpy().tobytes()[:8]
    assert first_elements(made, 100) == made.numpy().tobytes()
    for value in (
        made.t(),
        made.to_sparse(),
        torch.empty(0),
        torch.empty(2, device="meta"),
        torch.ones(2).as_subclass(Own),
    ):
        assert first_elements(value, 2) is None


class Own(torch.Tensor):
    """A user's tensor."""
