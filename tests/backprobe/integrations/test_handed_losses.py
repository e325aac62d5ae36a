"""A loss that a function returns to a training loop of a library is as much a root as one that the program walks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import backprobe
from backprobe.rules import Finding

LOOP = """
def fit(model, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad()
        made = model.training_step(batch)
        loss = made["loss"] if isinstance(made, dict) else made[0] if isinstance(made, tuple) else made
        (loss / 1).backward()
        optimizer.step()


def fit_by_forward(model, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad()
        model(batch)["loss"].backward()
        optimizer.step()
"""

HEAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head = nn.Linear(3, 4), nn.Linear(4, 1)
"""

FORMS = {
    "a value": ("fit", "def training_step(self, x):\n        h = self.enc(x)\n        h = {cut}\n        return self.head(h).pow(2).mean()"),
    "a dict": ("fit", "def training_step(self, x):\n        h = self.enc(x)\n        h = {cut}\n        out = self.head(h)\n        return {{'out': out, 'loss': out.pow(2).mean()}}"),
    "a tuple": ("fit", "def training_step(self, x):\n        h = self.enc(x)\n        h = {cut}\n        out = self.head(h)\n        return out.pow(2).mean(), out"),
    "a helper": ("fit", "def training_step(self, x):\n        return self.loss(x)\n\n    def loss(self, x):\n        h = self.enc(x)\n        h = {cut}\n        return self.head(h).pow(2).mean()"),
    "forward": ("fit_by_forward", "def forward(self, x):\n        h = self.enc(x)\n        h = {cut}\n        return {{'loss': self.head(h).pow(2).mean()}}"),
    "forward in the step": ("fit", "def forward(self, x):\n        h = self.enc(x)\n        h = {cut}\n        return self.head(h)\n\n    def training_step(self, x):\n        return self(x).pow(2).mean()"),
}  # fmt: skip

CUTS = {"h.relu().detach()": "BP601", "h.data": "BP601", "torch.tensor(h.tolist())": "BP603", "h.relu()": None}


@pytest.fixture
def trained(tmp_path: Path) -> Any:
    """Train a model by the loop of a library under `watch`: what is found at warning or above, with the text there."""
    library = tmp_path / "site-packages" / "loop.py"
    library.parent.mkdir()
    library.write_text(LOOP)
    within: dict[str, Any] = {}
    exec(compile(LOOP, str(library), "exec"), within)

    def train(loop: str, method: str) -> list[Finding]:
        program = tmp_path / "program.py"
        program.write_text(
            f"{HEAD}\n    {method}\n\n\ndef main(fit, model, optimizer, batches):\n    fit(model, optimizer, batches)\n"
        )
        names: dict[str, Any] = {"__name__": "program"}
        exec(compile(program.read_text(), str(program), "exec"), names)
        model = names["Net"]()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with backprobe.watch(model, optimizer, report=False) as watching:
            names["main"](within[loop], model, optimizer, torch.randn(4, 8, 3))
        return [finding for finding in watching.findings if finding.level != "note"]

    return train


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("form", FORMS)
def test_a_cut_before_a_loss_that_a_library_walks_is_found_where_it_is(form, cut, trained) -> None:
    loop, method = FORMS[form]
    findings = trained(loop, method.format(cut=cut))
    assert [finding.rule.code for finding in findings] == ([] if CUTS[cut] is None else [CUTS[cut]])
    for finding in findings:
        assert finding.location.path.endswith("program.py")
        assert cut in finding.location.text
