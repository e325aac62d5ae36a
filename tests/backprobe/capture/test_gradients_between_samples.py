"""What is read of the gradients in a step that is not taken in full: by the core, by the twin, and in a job."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import backprobe
from backprobe.capture.tracking import gradients
from backprobe.capture.tracking.gradients import STRIPES, gradients_in, without_gradient

LONG = (300, 300)
"""More elements than are read as a whole in each step."""


@pytest.fixture(params=["core", pytest.param("twin", marks=pytest.mark.full)])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, require: Any) -> str:
    if request.param == "core":
        require("core")
    else:
        monkeypatch.setattr(gradients, "native", None)
    return request.param


def with_gradient(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = nn.Parameter(torch.ones(shape, dtype=dtype))
    made.grad = torch.randn(shape, dtype=torch.float64).to(dtype)
    return made


def test_each_tensor_counts_once_and_has_a_byte(way: str) -> None:
    torch.manual_seed(0)
    gradient, half, none = with_gradient(5, 7), with_gradient(9, dtype=torch.float16), nn.Parameter(torch.ones(2))
    norm, present, is_odd, is_whole = gradients_in([[gradient, none], (half, gradient)])
    whole = torch.cat([tensor.grad.double().flatten() for tensor in (gradient, half) if tensor.grad is not None])
    assert norm == pytest.approx(float(whole.norm()), rel=1e-6)
    assert (present, is_odd, is_whole) == (b"\x01\x00\x01", False, True)
    assert without_gradient([[gradient, none], [none]]) == 2
    assert gradients_in([[none]]) == (None, b"\x00", False, True)
    assert gradients_in([[gradient, half, gradient]])[:2] == (
        pytest.approx(norm),
        b"\x01\x01",
    )  # one group may list it twice
    assert gradients_in([]) == (None, b"", False, True)


def test_a_tensor_that_is_no_leaf_is_not_asked_for_its_gradient(way: str) -> None:
    result = nn.Parameter(torch.ones(3)) * 2
    kept = nn.Parameter(torch.ones(3)) * 2
    kept.retain_grad()
    kept.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        norm, present, *_ = gradients_in([[result, kept]])
    assert norm == pytest.approx(3**0.5)
    assert present == b"\x00\x01"
    assert without_gradient([[result]]) == 0


def test_what_the_core_cannot_read_is_left_out_as_by_the_twin(way: str) -> None:
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    norm, present, is_odd, _ = gradients_in([[table.weight, with_gradient(1)]])
    assert (norm is not None, present, is_odd) == (True, b"\x01\x01", False)
    abstract = nn.Parameter(torch.ones(2, device="meta"))
    abstract.grad = torch.ones(2, device="meta")
    assert gradients_in([[abstract]])[:3] == (None, b"\x01", False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_stripes_together_are_the_whole(require: Any, dtype: torch.dtype) -> None:
    require("core")
    long = with_gradient(*LONG, dtype=dtype)
    parts = [gradients_in([[long]], first, STRIPES) for first in range(STRIPES)]
    assert not any(is_whole for *_, is_whole in parts)
    assert math.hypot(*[norm or 0.0 for norm, *_ in parts]) == pytest.approx(gradients_in([[long]])[0], rel=1e-6)
    assert gradients_in([[with_gradient(9, 9)]], 3, STRIPES)[3], "a short one is read as a whole"
    turned = with_gradient(*LONG, dtype=dtype)
    assert turned.grad is not None
    turned.grad = turned.grad.t()
    assert gradients_in([[turned]], 3, STRIPES)[3], "so is one whose elements do not lie in order"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_some_stripe_an_element_that_is_not_finite_is_found(require: Any, dtype: torch.dtype) -> None:
    require("core")
    for at, odd in ((0, math.nan), (77_777, math.inf), (89_999, -math.inf)):
        long = with_gradient(*LONG, dtype=dtype)
        assert long.grad is not None
        long.grad.view(-1)[at] = odd
        found = [gradients_in([[long]], first, STRIPES) for first in range(STRIPES)]
        assert [is_odd for *_, is_odd, _ in found].count(True) == 1
        norm = next(norm for norm, _, is_odd, _ in found if is_odd)
        assert norm is not None
        assert math.isnan(norm) if math.isnan(odd) else norm == math.inf


class Job:
    """A watched training of one weight; `spoil(gradient)` writes into its gradient in step 31."""

    def __init__(self, spoil: Callable[[torch.Tensor], object] = lambda _: None, *, width: int = LONG[0]) -> None:
        torch.manual_seed(0)
        model = nn.Linear(width, width)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        with backprobe.watch(model, optimizer, url="", report=False) as watching:
            for step in range(49):
                optimizer.zero_grad()
                loss = model(torch.randn(4, width)).pow(2).mean()
                handle = model.weight.register_hook(spoil) if step == 31 else None
                loss.backward()
                if handle is not None:
                    handle.remove()
                optimizer.step()
        assert watching.record is not None
        self.rows = {row.step: row for row in watching.record.steps}

    @property
    def first_odd(self) -> tuple[int, str | None, float | None]:
        row = next(row for row in self.rows.values() if row.anomaly is not None)
        return row.step, row.anomaly, row.grad_norm


def spoiled(*places: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def hook(gradient: torch.Tensor) -> torch.Tensor:
        copy = gradient.clone()
        copy.view(-1)[list(places)] = math.nan
        return copy

    return hook


def test_long_gradients_have_their_norm_at_every_tenth_step_and_short_ones_at_each(require: Any) -> None:
    require("core")
    rows = {step: row for step, row in Job().rows.items() if not row.sampled}
    assert {step for step, row in rows.items() if row.grad_norm is not None} == {30, 40}
    assert all(row.loss is not None for row in rows.values() if row.backward_calls)
    assert all(row.grad_norm is not None for row in Job(width=20).rows.values() if row.backward_calls)


def test_a_long_gradient_that_is_nan_is_noticed_in_its_step() -> None:
    step, anomaly, norm = Job(spoiled(*range(300 * 300))).first_odd
    assert (step, anomaly) == (31, "non-finite")
    assert norm is not None
    assert math.isnan(norm)


def test_so_is_one_element_of_a_short_gradient() -> None:
    assert Job(spoiled(77), width=20).first_odd[:2] == (31, "non-finite")


def test_one_element_of_a_long_gradient_is_noticed_in_its_step_or_by_the_next_loss(require: Any) -> None:
    require("core")
    in_the_stripe_of_step_31, in_another = 31 * 1024 + 476, 5000
    assert Job(spoiled(in_the_stripe_of_step_31)).first_odd[:2] == (31, "non-finite")
    assert Job(spoiled(in_another)).first_odd[:2] == (32, "non-finite")
