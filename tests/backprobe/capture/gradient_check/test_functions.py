"""Custom Functions made by chance: a slip in a backward is found and named, and a right one is left alone."""

import pytest

from backprobe.rules.manual_programs import programs
from tests.corpus.functions import made

pytestmark = pytest.mark.usefixtures("gradient_forks")


@pytest.mark.parametrize("seed", range(8))
def test_a_slip_is_named_and_a_right_one_agrees(seed: int) -> None:
    case = made(seed)
    rows = programs().captured(case.source, check=True).gradient_checks
    assert len(rows) == 2
    if case.is_wrong:
        named = [row for row in rows if row.cause == "backward"]
        assert named, [(row.verdict, row.numeric, row.used) for row in rows]
        assert {row.function for row in named} == {"Made"}
    else:
        assert {row.verdict for row in rows} == {"agrees"}


DIRECTLY = """\
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = Square.apply(w).sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("line", "verdict"), [("gradient * x", "differs"), ("2 * gradient * x", "agrees")])
def test_a_function_that_is_the_first_to_use_a_leaf_is_compared(line: str, verdict: str) -> None:
    rows = programs().captured(DIRECTLY.replace("gradient * x\n", f"{line}\n"), check=True).gradient_checks
    assert {row.verdict for row in rows} <= {verdict, "factor" if verdict == "differs" else verdict}, rows
    assert len(rows) == 2


BY_ONE = """\
import torch

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        return gradient * scale, None

w, scale = torch.rand(3, requires_grad=True), torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w, scale], lr=0.1)
Scaled.apply(w * 2, scale).square().sum().backward()
optimizer.step()
"""


def test_a_factor_that_is_one_by_chance_makes_no_function_one_that_hands_its_input_on() -> None:
    rows = programs().captured(BY_ONE, check=True).gradient_checks
    assert [(row.verdict, row.cause, row.function) for row in rows] == [
        ("agrees", None, None),
        ("cut", "backward", "Scaled"),
    ]


SPIKES = """\
import torch

class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, gradient):
        (v,) = ctx.saved_tensors
        return gradient / (1 + 10 * v.abs()) ** 2

w = torch.tensor([0.5, -0.5, 1.5], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
(Spike.apply(w * 2) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
optimizer.step()
"""


def test_a_step_function_that_computes_in_float32_is_an_estimator() -> None:
    (row,) = programs().captured(SPIKES, check=True).gradient_checks
    assert row.verdict == "differs"
    assert "on purpose" in (row.explained_by or ""), row


ADDER = """\
import torch

class Adder(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return -(x.unsqueeze(1) - w).abs().sum(2)

    @staticmethod
    def backward(ctx, gradient):
        x, w = ctx.saved_tensors
        away = x.unsqueeze(1) - w
        return {by_x}, {by_w}

w = torch.nn.Parameter(torch.randn(3, 4))
v = torch.nn.Parameter(torch.randn(5, 4))
optimizer = torch.optim.SGD([v, w], lr=0.1)
for _ in range(1):
    Adder.apply(v * 2, w).square().mean().backward()
    optimizer.step()
"""
SIGN_X, SIGN_W = "-(gradient.unsqueeze(2) * away.sign()).sum(1)", "(gradient.unsqueeze(2) * away.sign()).sum(0)"
SMOOTH_X = "-(gradient.unsqueeze(2) * away.clamp(-1, 1)).sum(1)"
SMOOTH_W = "(gradient.unsqueeze(2) * away).sum(0)"


@pytest.mark.parametrize(
    ("by_x", "by_w", "causes", "explained"),
    [
        (SIGN_X, SIGN_W, {None}, set[str]()),
        (SMOOTH_X, SMOOTH_W, {None}, {"on purpose"}),
        (SIGN_X, f"-{SIGN_W}", {"backward", None}, set[str]()),
        (f"2 * {SIGN_X}", SIGN_W, {"backward", None}, set[str]()),
    ],
)
def test_a_smooth_backward_of_a_function_with_corners_is_one_on_purpose(
    by_x: str, by_w: str, causes: set[str | None], explained: set[str]
) -> None:
    rows = programs().captured(ADDER.format(by_x=by_x, by_w=by_w), check=True).gradient_checks
    assert {row.cause for row in rows} == causes
    assert {"on purpose" for row in rows if "on purpose" in (row.explained_by or "")} == explained
