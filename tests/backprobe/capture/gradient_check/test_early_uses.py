"""Uses of a leaf that no graph shows: in a closure, under `no_grad`, through `.data`, before the first recorded one."""

from pathlib import Path

import pytest

from backprobe.record import GradientCheck, Record
from backprobe.rules.manual_programs import programs

pytestmark = pytest.mark.usefixtures("gradient_forks")

CLOSURE = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.{optimizer}
x, y = torch.randn(16, 4), torch.randn(16, 1)

def closure():
    {clear}
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    return loss

for _ in range(3):
    {before}
    optimizer.step(closure)
"""
CLEAR, NOTHING = "optimizer.zero_grad()", "pass"
LBFGS, SGD = "LBFGS(net.parameters(), lr=0.01, max_iter=3)", "SGD(net.parameters(), lr=0.1)"


def captured(source: str) -> Record:
    record = programs().captured(source, check=True)
    assert record.end is not None
    assert (record.end.exit_code, record.end.own_error) == (0, None)
    return record


def checked(source: str) -> tuple[GradientCheck, ...]:
    return captured(source).gradient_checks


@pytest.mark.parametrize("optimizer", [LBFGS, SGD])
def test_a_call_of_a_closure_is_compared_like_a_step(optimizer: str) -> None:
    rows = checked(CLOSURE.format(optimizer=optimizer, clear=CLEAR, before=NOTHING))
    assert [(row.step, row.verdict) for row in rows] == [(0, "agrees")] * 4 + [(2, "agrees")] * 4


@pytest.mark.parametrize(
    ("optimizer", "before"), [(LBFGS, NOTHING), (LBFGS, CLEAR), (SGD, NOTHING)], ids=["never", "between steps", "sgd"]
)
def test_a_closure_that_does_not_clear_is_seen_at_the_third_step(optimizer: str, before: str) -> None:
    rows = checked(CLOSURE.format(optimizer=optimizer, clear=NOTHING, before=before))
    assert {row.verdict for row in rows[:4]} == {"agrees"}
    assert {row.cause for row in rows[4:]} == {"not-cleared"}


def test_the_check_of_a_closure_changes_no_digit(tmp_path: Path) -> None:
    target = tmp_path / "left"
    source = "torch.manual_seed(3)\n".join(
        CLOSURE.format(optimizer=LBFGS, clear=CLEAR, before=NOTHING).split("net =", 1)
    )
    source = source.replace("torch.manual_seed(3)\n", "torch.manual_seed(3)\nnet =", 1)
    source += f"print([p.sum().item().hex() for p in net.parameters()], file=open({str(target)!r}, 'a'))\n"
    for check in (False, True):
        programs().captured(source, check=check)
    without, with_check = target.read_text().splitlines()
    assert with_check == without


ENCODER = """\
import torch
from torch import nn
encoder, head = nn.Linear(4, 3), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    with torch.no_grad():
        code = encoder(torch.randn(8, 4))
    loss = (head(code) - 1).square().mean()
    loss.backward()
    optimizer.step()
"""


def test_an_encoder_under_no_grad_is_seen_at_the_third_step() -> None:
    rows = checked(ENCODER)
    assert [row.verdict for row in rows] == ["not-checked"] * 2 + ["agrees"] * 2 + ["cut"] * 2 + ["agrees"] * 2
    assert {(row.cause, row.frozen) for row in rows[4:6]} == {("cut", 0.0)}
    assert all(abs(row.numeric or 0.0) > 1e-3 for row in rows[4:6])


READ = """\
import torch
from torch import nn
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    {read}
    loss = (net(torch.ones(5, 3)) - 1).square().mean() * (1 + scale)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("taken", ["net.weight.data", "net.weight.detach()"])
def test_a_value_that_was_taken_out_before_the_first_use_is_no_agreement(taken: str) -> None:
    first, _, third, bias = checked(READ.format(read=f"scale = {taken}.square().sum()"))
    assert (first.verdict, third.verdict, bias.verdict) == ("not-checked", "differs", "agrees")
    assert "taken out of it" in (first.why or "")
    assert "the program cuts the graph" in (third.explained_by or "")


def test_a_write_through_data_before_the_first_use_changes_no_verdict() -> None:
    rows = checked(READ.format(read="net.weight.data.mul_(0.9); scale = 0"))
    assert {row.verdict for row in rows} == {"agrees"}


MEAN = """\
import torch
w, mean = torch.ones(3, requires_grad=True), torch.zeros(3)
optimizer = torch.optim.SGD([w], lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    y = w * 2
    with torch.no_grad():
        {write}
    loss = (y * mean).sum() + y.square().sum()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("write", ["mean.lerp_(w, 0.1)", "mean[:] = 0.9 * mean + 0.1 * w", "mean.copy_(w)"])
def test_what_is_written_without_a_history_is_a_cut(write: str) -> None:
    row = checked(MEAN.format(write=write))[0]
    assert row.verdict == "differs"
    assert "the program cuts the graph" in (row.explained_by or ""), row


def test_torch_has_its_own_parameters_again() -> None:
    source = READ.format(read="scale = 0") + (
        "assert not {'data', 'detach'} & set(vars(nn.Parameter)), vars(nn.Parameter)\nassert net.weight.data.sum() != 0\n"
    )
    assert len(checked(source)) == 4
