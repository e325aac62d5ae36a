"""What makes a step use another gradient than the derivative: on purpose, or a mistake that the order of events shows."""

import pytest

from tests.backprobe.capture.gradient_check.test_verdicts import HEAD, STEP, checked, verdicts

pytestmark = pytest.mark.usefixtures("gradient_forks")

SCALER = "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\n"
SCALED = """\
for _ in range(3):
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    {walk}
    scaler.step(optimizer); scaler.update()
"""
CLIP = "nn.utils.clip_grad_norm_(net.parameters(), {limit})"
MICRO = """\
for _ in range(3):
    optimizer.zero_grad()
    for part, wanted in zip(x.split(4), y.split(4)):
        loss = ((net(part) - wanted) ** 2).mean() / 4
        loss.backward()
        {inside}
    {after}
    optimizer.step()
"""


def explanation_of(walk: str) -> set[tuple[str | None, bool]]:
    """Causes of what differs, and whether something explains it."""
    rows = checked(HEAD + SCALER + SCALED.format(walk=walk))
    return {(row.cause, row.explained_by is not None) for row in rows if row.verdict != "agrees"}


def test_a_scaler_that_divides_the_gradient_of_an_unscaled_loss_is_a_mistake() -> None:
    first = "scaler.scale(loss.detach()); "  # it makes the factor, and its product is thrown away
    assert explanation_of(first + "loss.backward()") == {("not-scaled", False)}
    assert explanation_of("(scaler.scale(loss) / 2).backward()") == {(None, True)}
    assert explanation_of("scaler.scale(loss.detach()); (loss * scaler.get_scale()).backward()") == {(None, True)}


def test_only_what_the_unscaled_loss_reaches_is_a_mistake() -> None:
    rows = checked(
        HEAD.replace("net.parameters()", "[*net.parameters(), w]").replace(
            "net = ", "w = torch.ones(2, requires_grad=True)\nnet = "
        )
        + SCALER
        + SCALED.format(walk="scaler.scale(loss).backward(); (w ** 2).sum().backward()")
    )
    assert [row.cause for row in rows if row.step == 0] == [None] * 4 + ["not-scaled"]


def test_clipping_a_gradient_with_the_scale_in_it_is_a_mistake_and_one_without_it_is_none() -> None:
    scaled = "scaler.scale(loss).backward(); "
    assert explanation_of(scaled + CLIP.format(limit=0.1)) == {("clipped-scaled", False)}
    assert explanation_of(scaled + "nn.utils.clip_grad_value_(net.parameters(), 0.1)") == {("clipped-scaled", False)}
    assert explanation_of(scaled + "scaler.unscale_(optimizer); " + CLIP.format(limit=0.1)) == {(None, True)}
    assert explanation_of(scaled + CLIP.format(limit="0.1 * scaler.get_scale() * 20")) == {(None, True)}


def test_clipping_between_micro_batches_of_one_step_is_a_mistake_and_behind_the_last_it_is_none() -> None:
    clip = CLIP.format(limit=0.1)
    inside = checked(HEAD + MICRO.format(inside=clip, after="pass"))
    assert {row.cause for row in inside if row.verdict != "agrees"} == {"clipped-early"}
    after = checked(HEAD + MICRO.format(inside="pass", after=clip))
    told = [row for row in after if row.verdict != "agrees"]
    assert {row.cause for row in told} == {None}
    assert all("clipping's factor" in (row.explained_by or "") for row in told)


@pytest.mark.parametrize(("where", "causes"), [("    ", {None, "hook-repeated"}), ("", {None})])
def test_a_hook_that_a_loop_adds_at_each_turn_is_a_mistake_from_its_second_turn_on(
    where: str, causes: set[str | None]
) -> None:
    add = "net[0].weight.register_hook(lambda grad: grad / 2)\n"
    loop, rest = STEP.format(before="").split("\n", 1)
    program = HEAD + (f"{loop}\n{where}{add}{rest}" if where else f"{add}{loop}\n{rest}")
    rows = [row for row in checked(program) if row.verdict != "agrees"]
    assert {row.cause for row in rows} == causes
    assert {row.cause for row in rows if row.step == 0} == {None}


def test_what_the_step_before_used_is_told_as_kept_though_another_loss_has_added_to_it() -> None:
    two = """\
import torch
from torch import nn
torch.manual_seed(2)
make, judge = nn.Linear(3, 3), nn.Linear(3, 1)
first, second = torch.optim.SGD(make.parameters(), 0.1), torch.optim.SGD(judge.parameters(), 0.1)
for _ in range(4):
    first.zero_grad()
    made = make(torch.randn(8, 3))
    judge(made).mean().backward()
    first.step()
    {clear}
    judge(made.detach()).square().mean().backward()
    second.step()
"""
    kept = checked(two.format(clear="pass"))
    assert {row.cause for row in kept if row.optimizer == 1 and row.step > 1} == {"not-cleared"}
    assert verdicts(checked(two.format(clear="second.zero_grad()"))) == {("agrees", None)}


@pytest.mark.parametrize("limit", [1000, 0.1])
def test_what_is_not_cleared_is_a_mistake_also_where_it_was_clipped(limit: float) -> None:
    step = STEP.format(before=CLIP.format(limit=limit) + "; ")
    rows = checked(HEAD + step.replace("    optimizer.zero_grad()\n", ""))
    assert {row.cause for row in rows if row.step == 0} == {None}
    assert {row.cause for row in rows if row.step == 2} == {"not-cleared"}
    assert not {"agrees", "cut"} & {row.verdict for row in rows if row.step == 2}


def test_a_gradient_that_is_taken_away_while_others_stay_is_meant_and_a_clear_of_all_is_a_mistake() -> None:
    some = checked(HEAD + STEP.format(before="net[2].weight.grad = None; "))
    told = [row for row in some if row.verdict != "agrees"]
    assert {(row.verdict, row.cause) for row in told} == {("cut", None)}
    assert all("took its gradient away" in (row.explained_by or "") for row in told)
    every = checked(HEAD + STEP.format(before="[setattr(p, 'grad', None) for p in net.parameters()]; "))
    assert verdicts(every) == {("cut", "cleared")}


def test_a_gradient_that_the_program_writes_itself_is_explained_also_in_place_of_an_older_one() -> None:
    program = """\
import torch
w, b = torch.ones(3, requires_grad=True), torch.ones(1, requires_grad=True)
net, task = torch.optim.SGD([b], 0.1), torch.optim.SGD([w], 0.1)
for _ in range(3):
    net.zero_grad()
    ((w.detach() * b).sum() ** 2).backward()
    task.zero_grad()
    {write}
    task.step()
    net.step()
"""
    rows = checked(program.format(write="(w.grad,) = torch.autograd.grad((w ** 3).sum(), [w])"))
    mine = [row for row in rows if row.optimizer == 1]
    assert {row.cause for row in mine} == {None}
    assert "the program wrote `.grad` itself" in {row.explained_by for row in mine}
    walk = "    ((w.detach() * b).sum() ** 2).backward()\n"
    early = program.replace(walk, "").replace("    task.step()", walk + "    task.step()")
    before = checked(early.format(write="(w.grad,) = torch.autograd.grad((w ** 3).sum(), [w])"))
    assert {row.cause for row in before if row.optimizer == 1} == {None}
    alone = [row for row in checked(program.format(write="w.grad")) if row.optimizer == 1]
    assert ("cut", "cut") in {(row.verdict, row.cause) for row in alone}


def test_a_clear_between_the_losses_of_two_networks_is_meant_also_where_the_second_gives_zero() -> None:
    rows = checked("""\
import torch
from torch import nn
torch.manual_seed(9)
make, judge = nn.Linear(3, 3), nn.Linear(3, 1)
first, second = torch.optim.SGD(make.parameters(), 0.1), torch.optim.SGD(judge.parameters(), 0.1)
for _ in range(3):
    made = make(torch.randn(8, 3))
    fooled, told = -judge(made).mean(), judge(made.detach()).mean() - judge(torch.ones(8, 3)).mean()
    first.zero_grad()
    fooled.backward()
    second.zero_grad()
    told.backward()
    second.step()
    first.step()
""")
    bias = [row for row in rows if row.used == 0 and row.optimizer == 1]
    assert bias
    assert {row.cause for row in rows} == {None}
    assert {(row.verdict, row.numeric, row.explained_by) for row in bias} == {("agrees", 0.0, None)}
