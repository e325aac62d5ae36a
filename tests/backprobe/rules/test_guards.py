"""A fact that the text of a program makes doubtful becomes a note: a guard changes its level and hides nothing."""

import pytest

from backprobe.rules import judge
from backprobe.rules.testing import example
from backprobe.rules.training import divergence_rewarded

LOOP = """\
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
"""

START = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
"""

GROUPS = """\
optimizer = torch.optim.SGD([
    {"params": model[0].parameters(), "lr": 0.01}, {"params": model[1].parameters(), "lr": 0.1},
])
"""

THAWED_IN_A_BRANCH = (
    START
    + "model[0].requires_grad_(False)\n"
    + GROUPS
    + LOOP
    + """\
    if x.sum() > 1e9:
        model[0].requires_grad_(True)
"""
)

THAWED_BY_A_VALUE = (
    START
    + "model[0].requires_grad_(False)\nepoch = 0\n"
    + GROUPS
    + LOOP
    + """\
    epoch += 1
    model[0].requires_grad_(epoch > 9)
"""
)

FLAGGED_BY_A_STAGE = """\
import torch
from torch import nn

stage = 1
model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
{freeze}
""" + GROUPS + LOOP  # fmt: skip

FLAGGED_IN_A_CALL = FLAGGED_BY_A_STAGE.replace("{freeze}", "model[0].requires_grad_(stage >= 2)")
FLAGGED_BY_NAME = FLAGGED_BY_A_STAGE.replace(
    "{freeze}", "for weight in model[0].parameters(): setattr(weight, 'requires_grad', stage >= 2)"
)
FLAGGED_IN_A_FUNCTION = FLAGGED_BY_A_STAGE.replace(
    "{freeze}",
    """\
def flag(module, value):
    for weight in module.parameters():
        setattr(weight, "requires_grad", value)

flag(model[0], stage >= 2)""",
)

FROZEN_UNDER_A_CONDITION = FLAGGED_BY_A_STAGE.replace("{freeze}", "if stage < 2: model[0].requires_grad_(False)")
FROZEN_BY_A_CALL_UNDER_A_CONDITION = FLAGGED_BY_A_STAGE.replace(
    "{freeze}",
    """\
def freeze(module):
    for weight in module.parameters():
        weight.requires_grad = False

if stage < 2:
    freeze(model[0])""",
)

FLAG_GIVEN = """\
import torch

scale, shift = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=False)
optimizer = torch.optim.SGD([scale, shift], lr=0.1)
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    (x * scale + shift).pow(2).mean().backward()
    optimizer.step()
"""

STEPPED_IN_A_BRANCH = (
    START
    + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    + "schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)\n"
    + LOOP
    + "    if x.sum() > 1e9:\n        schedule.step()\n"
)

STEPS_BY_ITSELF = """\
import torch
from torch import nn

class Halving(torch.optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer, every):
        self.every = every
        super().__init__(optimizer)

    def get_lr(self):
        return [rate * 0.5 ** (self.last_epoch // self.every) for rate in self.base_lrs]

    def step(self, epoch=None):
        self.last_epoch += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_lr()):
            group["lr"] = rate

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = Halving(optimizer, {every})
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()
    schedule.step()
"""

LIMITS_IN_ITS_STEP = """\
import torch

class NonNegative(torch.optim.Adagrad):
    @torch.no_grad()
    def step(self, closure=None):
        loss = super().step(closure)
        for group in self.param_groups:
            for weight in group["params"]:
                weight.clamp_(min=0)
        return loss

def limit(weight):
    weight.data.clamp_(min=0)

torch.manual_seed(0)
weights = torch.rand(4, requires_grad=True)
optimizer = NonNegative([weights], lr=0.1)
for x in torch.randn(8, 32, 4):
    optimizer.zero_grad()
    (x @ weights - x @ torch.tensor([1.0, 0.5, -1.0, 0.0])).pow(2).mean().backward()
    optimizer.step()
"""

SHARED_GROUPS = """\
import torch
from torch import nn

model = nn.Linear(3, 1)
inner, outer = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
outer.param_groups = inner.param_groups
schedule = torch.optim.lr_scheduler.StepLR(outer, {every})
for x in torch.randn(4, 8, 3):
    inner.zero_grad()
    model(x).pow(2).mean().backward()
    inner.step()
    schedule.step()
"""

RATE_OF_A_PHASE = """\
import torch
from torch import nn

maker, critic = nn.Linear(3, 2), nn.Linear(2, 1)
first = torch.optim.SGD(maker.parameters(), lr=0.01)
second = torch.optim.SGD(critic.parameters(), lr=0.01)
for step, x in enumerate(torch.randn(4, 8, 3)):
    {rate}
    fake = maker(x)
    second.zero_grad()
    (critic(fake.detach()).mean() - critic(torch.randn(8, 2)).mean()).backward()
    second.step()
    first.zero_grad()
    (-critic(fake).mean()).backward()
    first.step()
"""

RATE_RESTS_BY_AN_EXPRESSION = RATE_OF_A_PHASE.replace(
    "{rate}", "for group in first.param_groups: group['lr'] = 0.0 if step < 20 else 0.01"
)
RATE_RESTS_BY_A_BRANCH = RATE_OF_A_PHASE.replace("lr=0.01)\nsecond", "lr=0.0)\nsecond").replace(
    "{rate}", "if step == 20: first.param_groups[0]['lr'] = 0.01"
)
RATE_RESTS_BY_UPDATE = RATE_OF_A_PHASE.replace(
    "{rate}", "for group in first.param_groups: group.update(lr=0.01 * (step > 20))"
)

BIAS_BEFORE_A_NORM = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
head = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 16))
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
for x in torch.randn(6, 32, 8):
    first, second = model(x + 0.1 * torch.randn_like(x)), model(x + 0.1 * torch.randn_like(x))
    optimizer.zero_grad()
    (-F.cosine_similarity(head(first), second.detach()) - F.cosine_similarity(head(second), first.detach())).mean().backward()
    optimizer.step()
"""

RATE_IS_SHOWN = (
    START
    + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    + LOOP
    + "    optimizer.lr = 0.01\n    print(optimizer.lr)\n"
)

RATE_IS_HANDED_ON = RATE_IS_SHOWN.replace("print(optimizer.lr)", 'optimizer.param_groups[0]["lr"] *= optimizer.lr')

EMPTIED_LATER = (
    START
    + "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nlosses = []\n"
    + "for step, x in enumerate(torch.randn(8, 8, 3)):\n"
    + "    optimizer.zero_grad()\n    loss = model(x).pow(2).mean()\n    loss.backward()\n    optimizer.step()\n"
    + "    losses.append(loss)\n    if len(losses) > 100:\n        losses.pop(0)\n"
)

EMPTIED = EMPTIED_LATER.replace("> 100", "> 2")

ATTACK = """\
import torch
from torch import nn

model = nn.Linear(3, 2)
for x in torch.randn(4, 8, 3):
    moved = x.clone()
    model(moved).pow(2).mean().backward()
    if moved.grad is not None:
        moved = moved + 0.1 * moved.grad.sign()
"""

CLEARED = ATTACK.replace("moved = moved + 0.1 * moved.grad.sign()", "moved.grad.zero_()")

KEPT_FOR_DEBUGGING = """\
import torch
from torch import nn

debug, seen = False, []
model, head = nn.Linear(3, 3), nn.Linear(3, 1)
for x in torch.randn(4, 8, 3):
    hidden = model(x).tanh()
    {keep}
    head(hidden).pow(2).mean().backward()
    if hidden.grad is not None:
        seen.append(hidden.grad.norm().item())
"""

KEPT_IN_A_BRANCH = KEPT_FOR_DEBUGGING.format(keep="if debug: hidden.retain_grad()")
KEPT_BY_AN_EXPRESSION = KEPT_FOR_DEBUGGING.format(keep="debug and hidden.retain_grad()")
KEPT_IN_A_LOOP = KEPT_FOR_DEBUGGING.format(keep="for tensor in [hidden] * debug: torch.Tensor.retain_grad(tensor)")

BACKWARD_MAY_RUN = """\
import torch
from torch import nn

class Twice(nn.Module):
    def forward(self, x):
        return 2 * x

    def backward(self, gradient):
        return 3 * gradient

weight, twice = torch.ones(3, requires_grad=True), Twice()
twice(weight).sum().backward()
if weight.grad.sum() > 1e9:
    twice.backward(weight.grad)
"""

BACKWARD_RAN = BACKWARD_MAY_RUN.replace("> 1e9", "< 1e9")


@pytest.mark.parametrize(
    ("program", "code", "line"),
    [
        (THAWED_IN_A_BRANCH, "BP759", 6),
        (THAWED_BY_A_VALUE, "BP759", 7),
        (FLAGGED_IN_A_CALL, "BP759", 6),
        (FLAGGED_BY_NAME, "BP759", 6),
        (FLAGGED_IN_A_FUNCTION, "BP759", 8),
        (FROZEN_UNDER_A_CONDITION, "BP759", 7),
        (FROZEN_BY_A_CALL_UNDER_A_CONDITION, "BP759", 12),
        (FLAG_GIVEN, "BP759", 3),
        (STEPPED_IN_A_BRANCH, "BP711", 6),
        (RATE_IS_SHOWN, "BP758", 10),
        (BACKWARD_MAY_RUN, "BP244", 8),
        (EMPTIED_LATER, "BP305", 12),
        (ATTACK, "BP104", 8),
        (RATE_RESTS_BY_AN_EXPRESSION, "BP712", 15),
        (RATE_RESTS_BY_A_BRANCH, "BP712", 15),
        (RATE_RESTS_BY_UPDATE, "BP712", 15),
        (KEPT_IN_A_BRANCH, "BP101", 10),
        (KEPT_BY_AN_EXPRESSION, "BP101", 10),
        (KEPT_IN_A_LOOP, "BP101", 10),
    ],
)
def test_a_doubtful_fact_is_a_note(program, code, line, captured) -> None:
    (finding,) = judge(captured(program)).findings
    assert finding.rule.code == code
    assert (finding.level, finding.location.region.start_line) == ("note", line)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (RATE_IS_HANDED_ON, "BP758"),
        (BACKWARD_RAN, "BP244"),
        (EMPTIED, "BP305"),
        (CLEARED, "BP104"),
        (STEPS_BY_ITSELF.replace("{every}", "1"), "BP711"),
        (STEPS_BY_ITSELF.replace("{every}", "100"), "BP711"),
        (BIAS_BEFORE_A_NORM, "BP953"),
        (SHARED_GROUPS.replace("{every}", "1"), "BP953"),
        (SHARED_GROUPS.replace("{every}", "100"), "BP953"),
    ],
)
def test_a_counter_fact_of_the_record_refutes_it(program, code, captured) -> None:
    assert code not in {finding.rule.code for finding in judge(captured(program)).findings}


@pytest.mark.parametrize("first", ["", "torch.optim.Adagrad([torch.ones(1)], lr=0.1)\n"])
@pytest.mark.parametrize("write", ["weight.clamp_(min=0)", "weight.mul_((weight > 0).float())", "limit(weight)"])
@pytest.mark.parametrize("start", ["torch.rand(4)", "torch.zeros(4)"])
def test_what_the_step_of_an_optimizer_writes_last_is_not_moved_by_it(first, write, start, captured) -> None:
    """Where the class that it is derived from was used before, torch records two steps: one in the other."""
    program = LIMITS_IN_ITS_STEP.replace("weight.clamp_(min=0)", write).replace("torch.manual_seed(0)\n", first)
    if start == "torch.zeros(4)":  # each step is taken back as a whole
        program = program.replace("torch.rand(4", "torch.zeros(4").replace(
            "1.0, 0.5, -1.0, 0.0", "-5.0, -5.0, -5.0, -5.0"
        )
    assert judge(captured(program, alone=True)).findings == ()


@pytest.mark.parametrize(("said", "found"), [("maximize=False", True), ("maximize=True", False)])
def test_only_an_optimizer_that_may_maximize_hides_a_sign(said, found, captured) -> None:
    program = example(divergence_rewarded)[0].replace("lr=0.01)", f"lr=0.01, {said})")
    codes = {finding.rule.code for finding in judge(captured(program)).findings}
    assert ("BP841" in codes) == found
