"""The check of gradients on programs of every shape, each in a fork of a warm process."""

import pytest
import torch

from backprobe.capture.gradient_check.directions import Probe
from backprobe.capture.gradient_check.ghosts import Answer
from backprobe.capture.gradient_check.segment import Measured, Segment
from backprobe.capture.gradient_check.verdicts import judge_gradient
from backprobe.record import GradientCheck
from backprobe.rules.manual_programs import programs

pytestmark = pytest.mark.usefixtures("gradient_forks")

HEAD = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
"""
STEP = """\
for _ in range(3):
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    {before}optimizer.step()
"""
LOOSE = """\
import torch
torch.manual_seed(1)
w, c = torch.randn(4, requires_grad=True), torch.ones(3, requires_grad=True)
optimizer = torch.optim.Adam([w, c], lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16)
for _ in range(3):
    optimizer.zero_grad()
    loss = ((x @ w {more} - y) ** 2).mean()
    loss.backward()
    optimizer.step()
"""


def checked(source: str) -> tuple[GradientCheck, ...]:
    record = programs().captured(source, check=True)
    assert record.end is not None
    assert (record.end.exit_code, record.end.own_error) == (0, None)
    return record.gradient_checks


def verdicts(rows: tuple[GradientCheck, ...]) -> set[tuple[str, str | None]]:
    return {(row.verdict, row.cause) for row in rows}


def test_every_leaf_of_the_first_and_the_third_step_agrees_to_six_digits() -> None:
    rows = checked(HEAD + STEP.format(before=""))
    assert [row.step for row in rows] == [0] * 4 + [2] * 4
    assert {(row.verdict, row.precision, row.why) for row in rows} == {("agrees", "float64", None)}
    for row in rows:
        assert row.numeric == pytest.approx(row.used, rel=1e-5, abs=1e-7)


def test_a_loss_that_is_weighed_by_cleared_gradients_is_not_called_wrong() -> None:
    """The weight follows the parameters through `.grad`, which no copy fills: only the last call's terms are known."""
    rows = checked(
        HEAD
        + """\
for _ in range(1):
    terms = [(net(x) - y).square().mean(), net(x).square().mean()]
    norms = []
    for term in terms:
        net.zero_grad()
        term.backward(retain_graph=True)
        norms.append(net[0].weight.grad.norm().item())
    loss = terms[0] + norms[0] / norms[1] * terms[1]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    )
    assert {row.verdict for row in rows} <= {"not-checked", "rough"}, [row.verdict for row in rows]


def test_without_being_asked_for_there_is_no_row() -> None:
    assert programs().captured(HEAD + STEP.format(before="")).gradient_checks == ()


def test_the_check_leaves_the_entries_of_backward_calls_as_they_are() -> None:
    step = STEP.format(before="") + "torch.autograd.backward(((net(x) - y) ** 2).mean())\n"
    entries = [
        [call.entry for call in programs().captured(HEAD + step, check=check).backward_calls] for check in (False, True)
    ]
    assert entries == [["Tensor.backward"] * 3 + ["autograd.backward"]] * 2


def test_tensors_that_no_module_has_are_checked_and_a_cut_is_named_with_its_line() -> None:
    record = programs().captured(LOOSE.format(more="+ c.detach().sum()"), check=True)
    w, c = record.gradient_checks[:2]
    assert (w.verdict, c.verdict, c.cause) == ("agrees", "cut", "cut")
    assert [site.line for site in record.sites if site.site == c.site] == [8]
    assert c.numeric is not None
    assert abs(c.numeric) > 0.1
    assert c.frozen == pytest.approx(0, abs=1e-9)
    assert {cut.function for cut in c.cuts} == {"detach"}


@pytest.mark.parametrize(
    ("before", "explained"),
    [
        ("nn.utils.clip_grad_norm_(net.parameters(), 0.01); ", "clipping's factor"),
        ("nn.utils.clip_grad_value_(net.parameters(), 0.001); ", "clipping by value"),
        ("[p.grad.mul_(0.5) for p in net.parameters()]; ", "changed `.grad` between"),
    ],
)
def test_what_was_done_to_the_gradient_on_purpose_explains_it(before: str, explained: str) -> None:
    rows = checked(HEAD + STEP.format(before=before))
    assert {row.verdict for row in rows} <= {"differs", "factor", "agrees"}
    told = [row.explained_by for row in rows if row.verdict != "agrees"]
    assert told
    assert all(explained in (text or "") for text in told)
    assert {row.cause for row in rows} == {None}


def test_a_scalers_factor_explains_it() -> None:
    program = (
        HEAD
        + "scaler = torch.amp.GradScaler('cpu', init_scale=1024.0)\n"
        + (STEP.replace("loss.backward()", "scaler.scale(loss).backward()").format(before="")).replace(
            "optimizer.step()", "scaler.step(optimizer); scaler.update()"
        )
    )
    rows = checked(program)
    assert {row.explained_by for row in rows} == {"the gradient scaler's factor, 1/1024"}


def test_a_gradient_that_is_not_cleared_or_cleared_too_late_is_a_mistake() -> None:
    kept = checked((HEAD + STEP.format(before="")).replace("    optimizer.zero_grad()\n", ""))
    assert verdicts(kept[:4]) == {("agrees", None)}
    assert verdicts(kept[4:]) == {("differs", "not-cleared")}
    late = checked(HEAD + STEP.format(before="optimizer.zero_grad(); "))
    assert verdicts(late) == {("cut", "cleared")}


def test_the_loss_as_its_own_gradient_is_twice_too_small() -> None:
    rows = checked((HEAD + STEP.format(before="")).replace("loss.backward()", "loss.backward(loss)"))
    assert verdicts(rows) == {("factor", "own-gradient")}
    step = [row.factor for row in rows if row.step == 0]
    assert step == pytest.approx([0.5] * 4, rel=1e-3)


def test_accumulation_two_optimizers_and_second_derivatives_agree() -> None:
    micro = checked(
        HEAD + "for _ in range(3):\n    optimizer.zero_grad()\n    for part in (x[:8], x[8:]):\n"
        "        (net(part).square().mean() / 2).backward()\n    optimizer.step()\n"
    )
    assert verdicts(micro) == {("agrees", None)}
    two = checked(
        HEAD.replace("net.parameters()", "net[0].parameters()")
        + "other = torch.optim.Adam(net[2].parameters())\n"
        + STEP.format(before="other.step(); ").replace("optimizer.zero_grad", "net.zero_grad")
    )
    assert verdicts(two) == {("agrees", None)}
    assert len({row.optimizer for row in two}) == 2
    penalty = checked(
        HEAD + "x.requires_grad_()\nfor _ in range(3):\n    optimizer.zero_grad()\n"
        "    (g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)\n"
        "    (net(x).square().mean() + g.square().mean()).backward()\n    optimizer.step()\n"
    )
    assert verdicts(penalty) == {("agrees", None)}


def test_what_cannot_be_checked_says_why() -> None:
    asked = checked(
        "import torch\nw = torch.ones(3, requires_grad=True)\n"
        "class Own(torch.optim.SGD):\n    def step(self, loss):\n        super().step()\n"
        "class Loss:\n    def __call__(self):\n        return w.square().sum()\n"
        "optimizer, loss = Own([w], lr=0.1), Loss()\nfor _ in range(3):\n    optimizer.zero_grad()\n"
        "    loss().backward()\n    optimizer.step(loss)\n"
    )
    assert {row.verdict for row in asked} == {"not-checked"}
    assert {"in what is no plain function" in (row.why or "") for row in asked} == {True}
    threads = checked(
        "import threading\nstop = []\ndef spin():\n    while not stop:\n        pass\n"
        "thread = threading.Thread(target=spin, name='spinner')\nthread.start()\n"
        + HEAD + STEP.format(before="") + "stop.append(1)\nthread.join()\n"
    )  # fmt: skip
    assert {row.verdict for row in threads} == {"not-checked"}
    assert all("the thread 'spinner' of the program runs" in (row.why or "") for row in threads)


def test_threads_that_wait_and_workers_that_load_data_do_not_keep_a_step_from_being_checked() -> None:
    waiting = checked(
        "import queue, threading\nlines = queue.Queue()\ndef write():\n    while lines.get() is not None:\n        pass\n"
        "thread = threading.Thread(target=write)\nthread.start()\nlines.put(1)\n"
        + HEAD + STEP.format(before="") + "lines.put(None)\nthread.join()\n"
    )  # fmt: skip
    assert verdicts(waiting) == {("agrees", None)}
    loaded = checked(
        HEAD + "from torch.utils.data import DataLoader, TensorDataset\n"
        "for x, y in DataLoader(TensorDataset(x, y), batch_size=4, num_workers=1):\n    optimizer.zero_grad()\n"
        "    x.mul_(2.0)\n    loss = ((net(x) - y) ** 2).mean()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert verdicts(loaded) == {("agrees", None)}


def test_a_gradient_that_two_backward_calls_add_up_names_their_lines() -> None:
    rows = checked(
        "import torch\nw, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)\n"
        "first, second = torch.optim.SGD([w], lr=0.1), torch.optim.SGD([v], lr=0.1)\nfor _ in range(3):\n"
        "    made = w * 2\n    loss = made.square().sum()\n    other = (made * v).sum()\n    first.zero_grad()\n"
        "    loss.backward(retain_graph=True)\n    second.zero_grad()\n    other.backward()\n"
        "    first.step()\n    second.step()\n"
    )
    said = "it is the sum of the backward calls in lines 9 and 11"
    assert [(row.optimizer, row.verdict, row.explained_by) for row in rows] == [
        (0, "agrees", said), (1, "agrees", None), (0, "agrees", said), (1, "agrees", None),
    ]  # fmt: skip


def test_a_use_of_a_frozen_leaf_is_no_use_of_it() -> None:
    rows = checked(
        "import torch\nfrom torch import nn\nactor, critic = nn.Linear(4, 2), nn.Linear(6, 1)\n"
        "first = torch.optim.SGD(actor.parameters(), lr=0.01)\nsecond = torch.optim.SGD(critic.parameters(), lr=0.01)\n"
        "for _ in range(3):\n    seen, done = torch.randn(16, 4), torch.randn(16, 2)\n"
        "    second.zero_grad()\n    critic(torch.cat([seen, done], 1)).square().mean().backward()\n"
        "    critic.requires_grad_(False)\n    first.zero_grad()\n"
        "    (-critic(torch.cat([seen, actor(seen).tanh()], 1)).mean()).backward()\n"
        "    critic.requires_grad_(True)\n    second.step()\n    first.step()\n"
    )
    assert verdicts(rows) == {("agrees", None)}


def test_what_was_cleared_before_the_last_backward_call_is_no_part_of_its_derivative() -> None:
    rows = checked(
        "import torch\nfrom torch import nn\nmaker, critic = nn.Linear(4, 4), nn.Linear(4, 1)\n"
        "first = torch.optim.SGD(maker.parameters(), lr=0.01)\nsecond = torch.optim.SGD(critic.parameters(), lr=0.01)\n"
        "for _ in range(3):\n    made = maker(torch.randn(8, 4))\n    lost = -critic(made).mean()\n"
        "    told = critic(made.detach()).square().mean()\n    first.zero_grad()\n    lost.backward()\n"
        "    second.zero_grad()\n    told.backward()\n    first.step()\n    second.step()\n"
    )
    of_critic = [row for row in rows if row.optimizer == 1]
    assert verdicts(tuple(of_critic)) == {("agrees", None)}
    cut = [row for row in rows if row.optimizer == 0]
    assert {row.explained_by for row in cut} - {None} == {"the program cuts the graph: `detach` in line 9"}


def test_a_tensor_that_changes_inside_the_step_is_not_compared() -> None:
    rows = checked(
        HEAD + "for _ in range(3):\n    optimizer.zero_grad()\n    loss = net(x).square().mean()\n"
        "    with torch.no_grad():\n        net[0].bias.add_(0.1)\n"
        "    net(x).square().mean().backward()\n    optimizer.step()\n"
    )
    told = {row.tensor: row.why for row in rows if row.step == 0 and row.verdict == "not-checked"}
    assert len(told) == 1
    assert "changed between" in str(told)


PARTS = """\
import torch
from torch import nn
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for part in range(4):
    {clear}
    x = torch.randn(8, 4)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean() / 4
    loss.backward()
optimizer.step()
"""


def test_micro_batches_that_are_cleared_away_are_a_mistake_and_those_that_add_up_agree() -> None:
    assert verdicts(checked(PARTS.format(clear="optimizer.zero_grad()"))) == {("differs", "cleared")}
    assert verdicts(checked(PARTS.format(clear="part or optimizer.zero_grad()"))) == {("agrees", None)}


def test_a_gradient_that_is_looked_at_and_cleared_before_the_loss_is_no_mistake() -> None:
    # what an attack does: another line walks back, for the gradient of the input
    before = "(net(x) ** 2).mean().backward()\n    optimizer.zero_grad()\n"
    step = STEP.replace("    loss.backward()", f"    {before}    loss.backward()").format(before="")
    assert {row.cause for row in checked(HEAD + step)} == {None}


CHECKPOINTED = """\
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
block, head = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(16, 4{flag})
optimizer.zero_grad()
head(checkpoint(block, x, use_reentrant=True)).square().mean().backward()
optimizer.step()
"""


def test_a_step_begins_inside_a_reentrant_checkpoint_so_that_its_cut_is_seen() -> None:
    assert [row.verdict for row in checked(CHECKPOINTED.format(flag=""))] == ["cut", "cut", "agrees", "agrees"]
    tracked = checked(CHECKPOINTED.format(flag=", requires_grad=True"))
    assert [row.verdict for row in tracked] == ["agrees"] * 4


def test_a_tensor_used_before_what_is_run_again_is_not_said_to_agree() -> None:
    source = (
        HEAD.replace("nn.Linear(4, 8), nn.Tanh(), ", "")
        .replace("nn.Linear(8, 1)", "nn.Linear(4, 1)")
        .replace("net.parameters()", "[*net.parameters(), *first.parameters()]")
        .replace("optimizer =", "first = nn.Linear(4, 4)\noptimizer =")
    )
    step = "optimizer.zero_grad()\nwith torch.no_grad():\n    z = first(x)\n"
    rows = checked(f"{source}{step}((net(z) - y) ** 2).mean().backward()\noptimizer.step()\n")
    assert [row.verdict for row in rows] == ["agrees", "agrees", "not-checked", "not-checked"]
    assert {row.why for row in rows[2:]} == {
        "it may have been used before: under no_grad, or before another optimizer's step"
    }


HOOKED = """\
import torch
from torch import nn
first, second = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
seen = []
def look(gradient):
    size = gradient.norm().item()
    seen.append(size)
def turn(gradient):
    return gradient * 1.0
def show(gradient):
    print(f"{{gradient.abs().max():.3f}}", len(seen))
    seen.insert(0, gradient.detach().mean())
def halve(gradient):
    gradient *= 0.5
def first_only(gradient):
    gradient[1:] = 0.0
def into(gradient):
    torch.mul(gradient, 0.5, out=gradient)
def replace(gradient):
    gradient.data = gradient / 2
def reduce(gradient):
    average(gradient)
def average(gradient):
    gradient.div_(2)
z = first(torch.randn(16, 4))
{hook}
h = torch.tanh(z)
loss = second(h).square().mean()
h.data.mul_(0.5)
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("hook", "explained"),
    [
        ("z.register_hook(turn)", "a hook that is called for gradients: turn"),
        ("z.register_hook(look)", None),
        ("z.register_hook(show)", None),
        *(
            (f"z.register_hook({name})", f"a hook that is called for gradients: {name}")
            for name in ("halve", "first_only", "into", "replace", "reduce")
        ),
        ("second.bias.register_hook(turn)", None),
    ],
)
def test_a_hook_explains_what_it_may_have_changed_and_nothing_else(hook: str, explained: str | None) -> None:
    rows = [row for row in checked(HOOKED.format(hook=hook)) if row.tensor == 0]
    assert [(row.verdict, row.explained_by) for row in rows] == [("differs", explained)]


@pytest.mark.parametrize("hard", [True, False])
def test_a_sample_that_torch_hands_straight_through_is_a_cut_of_its_own(hard) -> None:
    rows = checked(
        HEAD + "decode = nn.Linear(4, 1)\nencode = nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD([*encode.parameters(), *decode.parameters()], lr=0.1)\n"
        "for _ in range(3):\n    optimizer.zero_grad()\n"
        f"    z = nn.functional.gumbel_softmax(encode(x), tau=0.7, hard={hard})\n"
        "    loss = ((decode(z) - y) ** 2).mean()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert len(rows) == 8
    explained = [row for row in rows if row.verdict != "agrees"]
    assert {(row.verdict, bool(row.explained_by)) for row in explained} == ({("differs", True)} if hard else set())
    assert {row.verdict for row in rows if row.frozen is None} == {"agrees"}


BOUNDED = """\
import torch
from torch import nn
torch.manual_seed(0)
x, t = torch.randn(12, 4), TARGETS
lin = nn.Linear(4, 1)
with torch.no_grad():
    lin.weight.mul_(FACTOR)
    lin.bias.fill_(BIAS)
optimizer = torch.optim.SGD(lin.parameters(), lr=1e-6)
for _ in range(3):
    optimizer.zero_grad()
    p = torch.sigmoid(lin(x)).squeeze(1)
    loss = nn.functional.binary_cross_entropy(p, t, reduction=REDUCTION).sum()
    loss.backward()
    optimizer.step()
"""


def bounded(**named: object) -> list[GradientCheck]:
    text = BOUNDED
    for name, value in {"REDUCTION": "'mean'", "TARGETS": "torch.ones(12)", "FACTOR": 1, **named}.items():
        text = text.replace(name, str(value))
    rows = checked(text)
    assert len(rows) == 4
    return rows


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_cross_entropy_of_outputs_that_are_0_has_a_bounded_gradient(reduction) -> None:
    assert {row.verdict for row in bounded(REDUCTION=repr(reduction), BIAS=-10)} == {"agrees"}
    for row in bounded(REDUCTION=repr(reduction), BIAS=-30):
        assert row.verdict == "differs"
        assert (row.explained_by or "").startswith("torch bounds the gradient of `binary_cross_entropy`")


def test_where_the_loss_is_another_in_float64_rounding_is_no_finding() -> None:
    rows = bounded(TARGETS="(torch.arange(12) % 2).float()", FACTOR=120, BIAS=0)
    assert {row.precision for row in rows} == {"float32"}
    assert not [row for row in rows if row.verdict == "differs" and not row.explained_by]


def test_a_row_for_padding_that_gets_no_gradient_is_not_moved() -> None:
    rows = checked(
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
        "table, mix = nn.Embedding(6, 3, padding_idx=0), nn.Linear(3, 2)\n"
        "optimizer = torch.optim.SGD([*table.parameters(), *mix.parameters()], lr=0.1)\n"
        "tokens = torch.tensor([[1, 2, 0], [3, 0, 0]])\nfor _ in range(3):\n    optimizer.zero_grad()\n"
        "    rows = table(tokens)\n    unit = rows / (rows.square().sum(-1, keepdim=True) + 1e-2).sqrt()\n"
        "    mix(unit.sum(1)).logsumexp(-1).mean().backward()\n    optimizer.step()\n"
    )
    assert {row.verdict for row in rows} == {"agrees"}


def test_a_row_for_padding_is_not_moved_either_where_float32_is_what_is_left() -> None:
    rows = checked(
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
        "table, walk, mix = nn.Embedding(6, 3, padding_idx=0), nn.GRU(3, 3, batch_first=True), nn.Linear(3, 2)\n"
        "optimizer = torch.optim.SGD([*table.parameters(), *walk.parameters(), *mix.parameters()], lr=0.1)\n"
        "tokens = torch.tensor([[1, 2, 0, 0], [3, 0, 0, 0]])\nfor _ in range(3):\n    optimizer.zero_grad()\n"
        "    mix(walk(table(tokens))[0].sum(1)).logsumexp(-1).mean().backward()\n    optimizer.step()\n"
    )
    (first,) = [row for row in rows if row.step == 0 and row.n == 0]
    assert (first.precision, first.verdict) == ("float32", "agrees"), first
    assert "differs" not in {row.verdict for row in rows}


def test_leaves_that_are_used_inside_of_vmap_are_moved_there_too() -> None:
    rows = checked(
        "import torch\ntorch.manual_seed(0)\n"
        "w = torch.randn(3, 4, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=0.1)\nx = torch.randn(5, 4)\n"
        "for _ in range(3):\n    optimizer.zero_grad()\n"
        "    torch.vmap(lambda one: torch.tanh(x @ one).square().mean())(w).sum().backward()\n    optimizer.step()\n"
    )
    assert rows
    assert all(row.numeric and row.verdict in ("agrees", "rough") for row in rows), rows


@pytest.mark.parametrize(
    ("numeric", "is_unsure", "verdict"),
    [(2.03, True, "rough"), (2.03, False, "differs"), (2.2, True, "differs"), (2.001, True, "agrees")],
)
def test_where_float64_could_not_be_had_float32_must_differ_by_more(numeric, is_unsure, verdict) -> None:
    leaf = torch.ones(1, requires_grad=True)
    leaf.grad = torch.full((1,), 2.0)
    h = 3e-3

    def moved(by: float) -> tuple[Answer, Answer]:
        return Answer(roots=(1 + numeric * by,)), Answer(roots=(1 - numeric * by,))

    measured = Measured(
        Probe(0, (leaf,), (torch.ones(1, dtype=torch.float64),), 1.0), base=Answer(roots=(1.0,)), precision="float32", h=h,
        fine=moved(h), coarse=moved(3 * h), arrived=2.0, largest=2.0, is_unsure=is_unsure,
    )  # fmt: skip
    told = judge_gradient(Segment(sequence=0, event=0), measured, (True,), None, (), is_kept=False, others=False)
    assert told.verdict == verdict, told


HALF_PARAMETERS = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(torch.{dtype})
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(16, 4, dtype=torch.{dtype})
    optimizer.zero_grad()
    (net(x){cut} - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
"""
HALF_IN_BETWEEN = """\
import torch
from torch import nn
torch.manual_seed(0)
low, high, head = nn.Linear(32, 2, bias=False), nn.Linear(2, 32, bias=False), nn.Linear(32, 4)
body = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32)).to(torch.{dtype}).requires_grad_(False)
optimizer = torch.optim.SGD([*low.parameters(), *high.parameters(), *head.parameters()], lr=0.01)
for _ in range(3):
    x, y = torch.randn(16, 32), torch.randint(0, 4, (16,))
    optimizer.zero_grad()
    inner = body((x + 0.01 * high(low(x))).to(torch.{dtype}))
    nn.functional.cross_entropy(head(inner.float()), y).backward()
    optimizer.step()
"""
AUTOCAST_IN_FORWARD = """\
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 1)
    def forward(self, x):
        inner = self.first(x)
        with torch.autocast("cpu", dtype=torch.{dtype}):
            return self.last(inner.tanh()).float()
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("program", [HALF_PARAMETERS, HALF_IN_BETWEEN, AUTOCAST_IN_FORWARD])
def test_a_right_gradient_in_half_precision_is_not_called_wrong(program: str, dtype: str) -> None:
    """A change that float32 bears is rounded away in half precision: the loss does not move at all."""
    rows = checked(program.format(dtype=dtype, cut=""))
    assert {row.verdict for row in rows} <= {"agrees", "rough"}, rows
    assert {row.precision for row in rows} == {"float64"}
    assert [row for row in rows if row.verdict == "agrees" and row.numeric]


def test_a_cut_in_half_precision_is_still_found() -> None:
    rows = checked(HALF_PARAMETERS.format(dtype="bfloat16", cut=" + net(x).pow(2).detach()"))
    assert any(row.cuts for row in rows), rows


def test_where_half_precision_gives_another_loss_than_float64_nothing_is_claimed() -> None:
    program = HALF_PARAMETERS.format(dtype="bfloat16", cut="")
    rows = checked(program.replace(".mean()", ".mean().mul(1 + 64 * torch.finfo(net(x).dtype).eps)"))
    assert {(row.verdict, row.numeric) for row in rows} == {("not-checked", None)}, rows
