"""What holds for `no_grad` holds for `inference_mode`, but that its tensors cannot be used where gradients are recorded."""

from __future__ import annotations

import re

import pytest

from backprobe.rules import RULES, judge
from backprobe.rules.testing import pages
from tests.backprobe.rules.programs import PROGRAMS

MANUALS = {
    f"{rule.RULE.name}: {section.title} {section.about}": section.text
    for rule in RULES
    for section in pages(rule).sections
    if section.is_code
}
WITH_NO_GRAD = {name: text for name, text in (PROGRAMS | MANUALS).items() if "no_grad" in text}
UNTRACKED = re.compile("inference tensor", re.IGNORECASE)
"""What torch says of a tensor from `inference_mode` where gradients are recorded; `no_grad` has no such error."""

FORCES = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def sample():
    x = torch.randn(6, 3).requires_grad_()
    energy = x.pow(2).sum(1, keepdim=True).sin()
    return x.detach(), energy.detach(), -torch.autograd.grad(energy.sum(), x)[0]


def losses(x, energy, force):
    x = x.clone().requires_grad_(True)
    e = net(x)
    f = -torch.autograd.grad(e.sum(), x, create_graph=net.training)[0]
    return (e - energy).pow(2).mean() + (f - force).pow(2).mean()


for batch in [sample() for _ in range(3)]:
    loss = losses(*batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
test = sample()
net.eval()
with torch.no_grad():
    print(losses(*test))
"""

ENABLED_INSIDE = """\
import torch

w = torch.ones(3, requires_grad=True)
with torch.inference_mode(), torch.enable_grad():
    y = (w * 2).sum()
"""


def compare(source: str, captured) -> None:
    """Judge a program with `no_grad`, and the same with `inference_mode`."""
    other = re.sub(r"\bno_grad\b", "inference_mode", source)
    records = captured(source), captured(other)
    found = [
        sorted(
            (row.rule.code, row.location.region.start_line, row.level, row.confidence, len(row.fixes))
            for row in judge(record).findings
        )
        for record in records
    ]
    raised = [row.message for row in records[1].raised if UNTRACKED.search(row.message)]
    if raised and not any(UNTRACKED.search(row.message) for row in records[0].raised):
        assert "BP609" in {code for code, *_ in found[1]}, other
        assert "BP901" not in {code for code, *_ in found[1]}, other
    else:
        assert found[0] == found[1], other


def test_forces_under_no_grad_and_under_inference_mode_are_one_mistake(captured) -> None:
    compare(FORCES, captured)
    (finding,) = judge(captured(FORCES.replace("no_grad", "inference_mode"))).findings
    assert (finding.rule.code, finding.location.text) == ("BP322", "with torch.inference_mode():")
    assert "use `torch.no_grad()` here" in finding.message


def test_nothing_is_recorded_under_inference_mode_whatever_is_enabled_inside(captured) -> None:
    record = captured(ENABLED_INSIDE)
    (bound,) = (row for row in record.bindings if row.name == "y")
    (moment,) = (row for row in record.moments if row.moment == bound.moment)
    assert (moment.grad_mode, moment.inference_mode) == (False, True)
    tensor = next(row for row in record.snapshots if row.tensor == bound.tensor)
    assert not tensor.requires_grad


def test_a_value_without_a_name_is_found_by_the_mode_that_it_was_made_under(captured) -> None:
    source = PROGRAMS["graph-break-no-grad: a decorator without a call"].replace("no_grad", "inference_mode")
    (finding,) = judge(captured(source)).findings
    assert (finding.rule.code, finding.location.text.split()[0]) == ("BP609", "@torch.inference_mode")
    assert finding.message.startswith(
        "A value without a name is made under `inference_mode` here, and is used at line 14"
    )


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize("name", WITH_NO_GRAD)
def test_a_program_has_the_findings_under_inference_mode_that_it_has_under_no_grad(name, captured) -> None:
    compare(WITH_NO_GRAD[name], captured)
