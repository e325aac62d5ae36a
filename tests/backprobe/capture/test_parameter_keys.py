"""What a parameter is called: after the outermost module, and never as another one is."""

from pathlib import Path

import pytest

from backprobe.rules import judge
from backprobe.show.formats import terminal_report
from backprobe.show.tensor_table import tensor_rows
from tests.backprobe.capture.in_process import recorded

REAL = Path(__file__).parents[2] / "real_programs"
HEAD = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2, bias=False)
        part = self.inner
        self.of = lambda x: part(x)
    def forward(self, x):
        return self.of(x)
"""
NAMED = {
    "def build():\n    return nn.Sequential(Block())\nmodel = build()": ["model.0.inner.weight"],
    "model = nn.Sequential(Block(), Block())": ["model.0.inner.weight", "model.1.inner.weight"],
    "model = Block()\nagain = model.inner": ["model.inner.weight"],
    "inner = Block()\nmodel = nn.Sequential(inner)": ["inner.inner.weight"],
    "parts = []\nfor _ in range(2):\n    block = Block()\n    parts.append(block)\nmodel = nn.Sequential(*parts)": [
        "model.0.inner.weight",
        "model.1.inner.weight",
    ],
    "def build():\n    body = Block()\n    return nn.Sequential(body, Block())\nmodel = build()": [
        "model.0.inner.weight",
        "model.1.inner.weight",
    ],
    "def main():\n    net = Block()\n    wrapped = nn.Sequential(net)\n    return wrapped\nmodel = main()": [
        "net.inner.weight"
    ],
    "def main():\n    net = Block()\n    wrapped = nn.Sequential(net)\n    wrapped(torch.ones(2))\nmain()\nmodel = nn.ReLU()": [
        "net.inner.weight"
    ],
    "class App:\n    def __init__(self):\n        self.net = nn.Sequential(Block(), Block())\nmodel = App().net": [
        "model.0.inner.weight",
        "model.1.inner.weight",
    ],
}


@pytest.mark.parametrize("program", NAMED)
def test_a_parameter_is_called_after_the_outermost_module(program: str) -> None:
    record = recorded(f"{HEAD}{program}\nmodel(torch.ones(2)).sum()\n")
    assert [row.fqn for row in record.tensors if row.role == "parameter"] == NAMED[program]


def test_layers_of_a_model_whose_blocks_name_them_have_a_row_each() -> None:
    record = recorded((REAL / "naming.py").read_text())
    rows = [row for row in tensor_rows(record) if "weight" in row.name]
    assert [row.times for row in rows] == [1] * 9
    assert [row.name for row in rows if "c_fc" in row.name] == [f"model.h.{at}.mlp.c_fc.weight" for at in range(3)]


def test_parameters_that_live_side_by_side_are_not_counted_as_one() -> None:
    record = recorded(f"{HEAD}kept = []\nfor _ in range(3):\n    part = nn.Linear(2, 1)\n    kept.append(part)\n")
    rows = [row for row in tensor_rows(record) if row.name == "part.weight"]
    assert [row.times for row in rows] == [1, 1, 1]
    assert "\u00d73" not in terminal_report.render(record, judge(record))


def test_parameters_of_a_module_that_is_built_again_and_again_stand_in_one_row() -> None:
    record = recorded(
        f"{HEAD}for _ in range(3):\n    part = nn.Linear(2, 1)\n    part(torch.ones(2)).sum().backward()\n"
    )
    rows = [row for row in tensor_rows(record) if row.name == "part.weight"]
    assert [row.times for row in rows] == [3]
