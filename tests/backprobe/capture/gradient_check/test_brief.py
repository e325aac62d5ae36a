"""The check of gradients that a run gets unasked: all parameters together, suspects alone, within its time."""

from pathlib import Path

import pytest

from backprobe.capture.gradient_check import measuring
from backprobe.capture.gradient_check.measuring import Budget
from backprobe.record import GradientCheck, loads
from backprobe.show.check_table import summary
from tests.support import forks

WRONG = """\
import torch

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x**2

weight = torch.nn.Parameter(torch.tensor([0.5, 0.8, 1.2]))
bias = torch.nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([weight, bias], lr=0.001)
x, y = torch.randn(10, 3), torch.randn(10)
for _ in range(3):
    loss = (Cube.apply(x @ weight) + bias - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
RIGHT = WRONG.replace("grad * 2", "grad * 3")


def test_a_group_that_differs_is_moved_one_by_one_at_the_next_checked_step(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(WRONG)
    done = forks.backprobe("run", "--seed", "0", "--save", "kept.bprec", "train.py", cwd=tmp_path)
    first, *later = loads((tmp_path / "kept.bprec").read_bytes()).gradient_checks
    assert (first.step, len(first.tensors), first.verdict) == (0, 2, "differs")
    assert {(row.step, row.tensors, row.verdict) for row in later} == {(2, (), "differs"), (2, (), "agrees")}
    assert "gradients at steps 0, 2: 1 of 2 parameters agree with the derivative of the loss; 1 does not" in done.stderr
    assert "BP910" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [(["run"], 2), (["run", "--no-check-gradients"], 0), (["watch"], 0), (["run", "--check-gradients"], 4)],
)
def test_run_checks_briefly_and_watch_only_when_asked(arguments: list[str], rows: int, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RIGHT)
    done = forks.backprobe(*arguments, "--seed", "0", "--save", "kept.bprec", "train.py", cwd=tmp_path)
    checked = loads((tmp_path / "kept.bprec").read_bytes()).gradient_checks
    assert [row.verdict for row in checked] == ["agrees"] * rows
    assert ("gradients at steps 0, 2: 2 of 2 parameters agree" in done.stderr) == (arguments == ["run"])


def test_a_step_that_takes_too_long_for_the_budget_is_not_checked_and_says_so(tmp_path: Path) -> None:
    slow = RIGHT.replace(
        "    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    __import__('time').sleep(0.6)\n"
    )
    (tmp_path / "train.py").write_text(slow)
    done = forks.backprobe("run", "--seed", "0", "--save", "kept.bprec", "train.py", cwd=tmp_path)
    checked = loads((tmp_path / "kept.bprec").read_bytes()).gradient_checks
    assert {row.verdict for row in checked} == {"not-checked"}
    assert "gradients: not checked (a copy of the step takes" in done.stderr


def test_the_budget_is_two_seconds_or_a_tenth_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 1.5, 2.0, 3.0))
    monkeypatch.setattr(measuring.time, "monotonic", lambda: next(clock))
    budget = Budget(lambda: 0, is_brief=True)
    with budget.spend():
        pass
    assert budget.seconds_left() == pytest.approx(0.5)
    with budget.spend():
        pass
    assert budget.why_spent() == "the check has used its time, 2.5 s of this run"
    assert Budget(lambda: 100 * 10**9, is_brief=True).seconds_left() == pytest.approx(10.0)


def test_the_summary_counts_each_parameter_once_by_its_own_row() -> None:
    together = GradientCheck(n=0, tensor=0, tensors=(0, 1, 2), verdict="differs")
    alone = GradientCheck(n=1, tensor=0, verdict="agrees", step=2)
    refused = GradientCheck(n=2, tensor=3, why="it was changed")
    clipped = GradientCheck(n=3, tensor=4, verdict="differs", explained_by="it was clipped")
    assert summary([together, alone, refused, clipped]) == (
        "gradients at steps 0, 2: 1 of 5 parameters agree with the derivative of the loss; "
        "1 differs for a known reason (it was clipped); 2 do not; 1 not checked (it was changed)"
    )
    assert summary([refused]) == "gradients: not checked (it was changed)"
