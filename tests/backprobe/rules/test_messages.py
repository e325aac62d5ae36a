"""What findings say: names as the shown line has them, lines with their files, advice that fits the operation."""

from __future__ import annotations

import pytest

from backprobe.rules import judge

NONFINITE = """\
import torch
x = torch.ones(4, requires_grad=True)
scale = torch.zeros(4)
def value(x, scale):
    return {value}
value(x, scale).backward()
print(x.grad)
"""


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("((x - 1) / scale).mean()", "Keep the divisor away from zero"),
        ("(x - 2).log().mean()", "log_softmax"),
        ("(x * 1000).exp().mean()", "Keep the exponent small"),
        ("(x * 1e38 * 1e38).mean()", "Keep its input away from the edge"),
    ],
)
def test_a_first_bad_value_without_a_name_is_called_by_its_expression_and_the_advice_fits(value, advice, captured):
    (finding,) = judge(captured(NONFINITE.format(value=value))).findings
    first, _reached, what_to_do = finding.message.split("\n")
    assert finding.rule.code == "BP501"
    assert first.startswith(f"`{value}` is the first value with ")
    assert "are finite" in first or "is finite" in first
    assert advice in what_to_do
    assert ("log_softmax" in what_to_do) == (advice == "log_softmax")


def test_a_changed_tensor_has_the_name_that_the_line_shows(captured) -> None:
    source = """\
import torch
w = torch.ones(3, requires_grad=True)
def change(coeffs):
    coeffs[0] = 0
prediction = w.exp()
loss = prediction.sum()
change(prediction)
loss.backward()
"""
    (finding,) = judge(captured(source)).findings
    assert finding.message.startswith("This store changes `coeffs` in place")
    assert finding.related[0].message == "`ExpBackward0` saved `prediction` here"


def test_a_graph_carried_within_one_iteration_is_not_said_to_come_from_another_one(captured) -> None:
    source = """\
import torch
w = torch.ones(3, requires_grad=True)
for n in range(2):
    state = (w * 2).exp()
    state.sum().backward()
    state = state * w
    state.sum().backward()
"""
    findings = judge(captured(source)).findings
    assert findings
    for finding in findings:
        assert "turn" not in finding.message
        assert [other.message for other in finding.related if "turn" in other.message] == []


def test_a_line_of_another_file_is_said_with_the_file(captured) -> None:
    source = """\
import torch
from torch import nn
from steps import fit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        return self.b(self.a(x).detach())


net = Net()
fit(net, torch.optim.SGD(net.parameters(), lr=0.1))
"""
    steps = """\
import torch


def fit(net, optimizer):
    for x in torch.randn(3, 4, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
"""
    (finding,) = judge(captured(source, files={"steps.py": steps})).findings
    assert finding.rule.code == "BP601"
    assert "The backward call at line 7 of `steps.py` does not reach them" in finding.message
