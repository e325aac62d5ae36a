"""The line that a broken invariant is shown at: the statement that breaks it, and never one that only uses a value."""

import pytest

from backprobe.rules import judge

REPLACED = """\
import torch
from torch import nn

heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
optimizer = torch.optim.SGD(heads.parameters(), lr=0.1)
shown = []
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    for head in heads:
        loss = head(x).pow(2).mean()
        shown.append(loss.item() / 2)
        {inside}
    {behind}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("inside", "behind", "lines"),
    [
        ("pass", "loss.backward()", [10]),
        ("loss.backward()", "pass", []),
        ("best = loss", "best.backward()", []),
        ("chosen = loss if loss.item() >= 0 else None", "chosen.backward()", []),
        ("if loss.item() < -1: break", "loss.backward()", []),
    ],
)
def test_the_statement_that_replaces_a_loss_is_named(inside, behind, lines, captured) -> None:
    findings = judge(captured(REPLACED.format(inside=inside, behind=behind))).findings
    found = [(finding.rule.code, finding.location.region.start_line) for finding in findings]
    assert found == [("BP953", line) for line in lines]
    assert all(
        "`loss` is assigned 3 times in a step, and only its last value reaches the loss" in finding.message
        for finding in findings
    )


REPLAY = """\
import torch
from torch import nn


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x):
        return self.net(x)


class Replay:
    def __init__(self):
        self.data = []

    def push(self, *parts):
        self.data.append(dict(zip(("state", "action", "value"), parts)))


def act(net, state):
    values = net(state)
    return int(values.argmax()), values.max(){cut}


def learn(net, optimizer, batch):
    values = net(batch)
    loss = nn.functional.smooth_l1_loss(values, torch.ones_like(values))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    net, replay = Values(), Replay()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        state = torch.randn(2)
        action, value = act(net, state)
        replay.push(state, action, value)
        learn(net, optimizer, torch.stack([part["state"] for part in replay.data]))


main()
"""


@pytest.mark.parametrize(("cut", "lines"), [("", [24]), (".detach()", [])])
def test_the_statement_that_made_the_kept_value_is_named(cut, lines, captured) -> None:
    findings = judge(captured(REPLAY.format(cut=cut))).findings
    assert [(finding.rule.code, finding.location.region.start_line) for finding in findings] == [
        ("BP951", line) for line in lines
    ]


ZEROED = """\
import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(6, 4)
{before}
optimizer = torch.optim.{optimizer}
for _ in range(4):
    optimizer.zero_grad()
    (table(torch.arange(6)) - 1).pow(2).mean().backward()
    {write}
    optimizer.step()
    {behind}
"""
WRITE = "table.weight.grad[:5] = 0"
DECAYING = "AdamW([table.weight], lr=0.1)"
NO_DECAY = "for group in optimizer.param_groups:\n        group['weight_decay'] = 0.0"
SMALL = "table.weight.grad.view(-1)[table.weight.grad.abs().flatten().argsort()[:20]] = 0"


@pytest.mark.parametrize(
    ("before", "optimizer", "write", "behind"),
    [
        ("kept = table.weight.detach()[:5].clone()", DECAYING, WRITE, "table.weight.data[:5] = kept"),
        ("pass", "AdamW([table.weight], 0.1, (0.9, 0.999), 1e-8, 0.0)", WRITE, "pass"),
        ("pass", DECAYING, f"{NO_DECAY}\n    {WRITE}", "pass"),
        ("pass", DECAYING, SMALL, "pass"),
    ],
)
def test_of_elements_with_a_gradient_of_zero_no_decay_is_assumed(before, optimizer, write, behind, captured) -> None:
    source = ZEROED.format(before=before, optimizer=optimizer, write=write, behind=behind)
    assert [finding for finding in judge(captured(source)).findings if finding.rule.code == "BP953"] == []


STANDS_STILL = """\
import torch
from torch import nn

torch.manual_seed(0)
layer, other = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
for step in range(8):
    x = torch.randn(8, 4)
    optimizer.param_groups[0]["lr"] = 0.1 if step < 5 else 0.0
    optimizer.zero_grad()
    second.zero_grad()
    (layer(x) + other(x) - 1).pow(2).mean().backward()
    optimizer.step()
    second.step()
"""


def test_only_the_steps_that_left_a_parameter_unchanged_are_counted(captured) -> None:
    (finding,) = judge(captured(STANDS_STILL)).findings
    assert finding.evidence["breach"] == "not-changed"
    assert finding.message.startswith("3 steps leave `layer.weight`")
    assert finding.location.region.start_line == 6
    assert (finding.occurrences.count, finding.occurrences.first_step) == (3, 5)


LOST_STEPS = """\
import torch
from torch import nn


class Careless(torch.optim.SGD):
    def step(self):
        held = self.param_groups[0]["params"]
        self.updated = [parameter.detach() - 0.1 * parameter.grad for parameter in held]


layer = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
optimizer = {optimizer}
for x in torch.randn(6, 8, 4):
    optimizer.zero_grad()
    (layer(x) - 1).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("optimizer", "kinds"),
    [
        ("torch.optim.SGD(layer.parameters(), lr=0.1)", []),
        ("torch.optim.SGD(layer.parameters(), lr=1e-12)", []),
        ("Careless(layer.parameters(), lr=0.1)", ["not-written"]),
    ],
)
def test_an_update_below_rounding_is_not_said_to_be_written_elsewhere(optimizer, kinds, captured) -> None:
    found = judge(captured(LOST_STEPS.format(optimizer=optimizer))).findings
    kept = [finding for finding in found if finding.evidence.get("breach") in ("not-written", "not-changed")]
    assert [finding.evidence["breach"] for finding in kept] == kinds
    assert all("Either the updates are smaller than the parameter's rounding" in finding.message for finding in kept)


STOPPED = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))


def stop({given}):
    return {returned}


optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for _ in range(4):
    optimizer.zero_grad()
    hidden = model[1](model[0](torch.randn(8, 4)))
    {inside}
    model[2](hidden).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "returned", "before", "inside", "line"),
    [
        ("g", "torch.zeros_like(g)", "", "hidden.register_hook(stop)", 17),
        ("g", "g / 2", "", "hidden.register_hook(stop)", None),
        ("g", "None", "", "(hidden * 1).register_hook(stop)", None),
        ("m, inputs, outputs", "(0 * inputs[0],)", "model[1].register_full_backward_hook(stop)", "", 13),
        ("m, inputs, outputs", "(None,)", "model[1].register_full_backward_hook(stop)", "", 13),
        ("m, inputs, outputs", "(2 * inputs[0],)", "model[1].register_full_backward_hook(stop)", "", None),
    ],
)
def test_the_hook_that_stops_a_gradient_is_named(given, returned, before, inside, line, captured) -> None:
    source = STOPPED.format(given=given, returned=returned, before=before, inside=inside or "pass")
    found = [finding for finding in judge(captured(source)).findings if finding.rule.code == "BP953"]
    assert [finding.location.region.start_line for finding in found] == ([] if line is None else [line])


def test_a_hook_that_only_looks_at_a_dead_gradient_is_not_named(captured) -> None:
    source = STOPPED.format(given="g", returned="None", before="", inside="hidden = 0 * hidden")
    source = source.replace("    hidden = 0 *", "    hidden.register_hook(stop)\n    hidden = 0 *")
    record = captured(source)
    assert len(record.hooks) == 4
    (finding,) = [finding for finding in judge(record).findings if finding.rule.code == "BP953"]
    assert finding.evidence["breach"] == "zero-gradient"


@pytest.mark.parametrize(
    ("inside", "kinds"),
    [
        ("hidden.register_hook(lambda g: g.clamp(-1, 1)); hidden = 0 * hidden + hidden.detach()", []),
        ("hidden.register_hook(log); hidden = 0 * hidden + hidden.detach()", ["zero-gradient"]),
        ("hidden.register_hook(lambda g: g + 0); hidden.register_hook(stop)", ["zeroed-by-hook"]),
        ("hidden.register_hook(log); hidden.register_hook(stop)", ["zeroed-by-hook"]),
    ],
)
def test_a_hook_that_gets_zeros_or_returns_others_is_not_named(inside, kinds, captured) -> None:
    log = "def log(g):\n    return g.clamp(-1, 1)\n"
    source = STOPPED.format(given="g", returned="torch.zeros_like(g)", before=log, inside=inside)
    found = [finding for finding in judge(captured(source)).findings if finding.rule.code == "BP953"]
    assert [finding.evidence["breach"] for finding in found] == kinds
    assert all("register_hook(stop)" in finding.location.text for finding in found if kinds == ["zeroed-by-hook"])


MIXED_READS = """\
import torch
from torch import nn


def total_norm(tensors):
    return sum(tensor.grad.norm().item() for tensor in tensors if tensor.grad is not None)


layer = nn.Linear(4, 4)
for x in torch.randn(4, 8, 4):
    hidden = layer(x).tanh()
    layer.zero_grad()
    hidden.pow(2).mean().backward()
    shown = total_norm([hidden]) + total_norm(list(layer.parameters()))
"""


def test_a_line_that_reads_leaves_too_is_not_said_to_read_none_always(captured) -> None:
    found = judge(captured(MIXED_READS)).findings
    assert [finding.rule.code for finding in found] == ["BP958"]
    assert found[0].message.startswith("`.grad` of `hidden` is read here and is None: `hidden` is not a leaf")
    assert "always" not in found[0].message
