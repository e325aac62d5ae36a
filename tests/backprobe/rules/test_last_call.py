"""What a program does after its training decides nothing about the training: it evaluates, and it freezes."""

from pathlib import Path

import pytest

from backprobe.rules import judge

REAL = Path(__file__).parents[2] / "real_programs"


@pytest.mark.parametrize("argv", ["", "x"], ids=["trains", "trains and evaluates"])
def test_parameters_left_out_of_the_optimizer_are_found_in_a_script_that_evaluates_too(argv, captured) -> None:
    source = (REAL / "opt701.py").read_text().replace("__import__('sys').argv[1:]", repr(argv))
    assert [finding.rule.code for finding in judge(captured(source)).findings] == ["BP701"]


def test_the_eval_that_is_named_stands_before_the_training(captured) -> None:
    source = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.eval()
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 6)).pow(2).mean().backward()
    optimizer.step()
net.eval()
net(torch.randn(8, 6))
"""
    (finding,) = judge(captured(source)).findings
    assert finding.rule.code == "BP611"
    assert 6 in [row.location.region.start_line for row in finding.related]
