"""Fixes of findings that need more than their own line, and findings whose line no fix mends."""

import pytest

from backprobe.rules import judge
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.trials import compared, shown
from tests.backprobe.rules.programs import PROGRAMS

TRAIN = """\
import torch

class Keeper:
    def __init__(self):
        self.mean = None

    def blend(self, old, new):
        return new if old is None else 0.9 * old + 0.1 * new

    def take(self, loss):
        {take}

keeper, net = Keeper(), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(12, 8, 3):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    keeper.take(loss)
print(keeper.mean.requires_grad)
"""
IN_TWO_LINES = """\
if self.mean is None:
            self.mean = loss
        else:
            self.mean = 0.9 * self.mean + 0.1 * loss"""


@pytest.mark.parametrize("take", [IN_TWO_LINES, "self.mean = self.blend(self.mean, loss)"])
def test_a_running_value_stays_a_tensor_and_begins_without_a_history(take, captured) -> None:
    source = TRAIN.format(take=take)
    record = captured(source)
    judgement = judge(record)
    (finding,) = judgement.findings
    assert finding.rule.code == "BP304"
    (fix,) = finding.fixes
    again = captured(edited(source, fix.edits))
    assert compared(finding, fix.edits, shown(record, judgement), shown(again, judge(again))).verdict == "confirmed"


EVALUATED = """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def loss_of(x):
    return (net(x) - 1).square().mean()

net.train()
for step in range(8):
    loss = loss_of(torch.randn(5, 4))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 3 == 2:
        net.eval()
        {look}
"""


@pytest.mark.parametrize(
    ("look", "fixes"), [("with torch.no_grad(): print(loss_of(torch.randn(5, 4)))", 0), ("print(step)", 1)]
)
def test_a_function_that_also_evaluates_is_not_put_into_training_mode(look, fixes, captured) -> None:
    found = [
        finding for finding in judge(captured(EVALUATED.format(look=look))).findings if finding.rule.code == "BP611"
    ]
    assert [len(finding.fixes) for finding in found] == [fixes]


SHARED = """\
import torch

w = torch.ones(4, requires_grad=True)

def through(x):
    y = w * x
    z = y.exp()
    total = z
    total += 1
    return {result}

through(torch.ones(4)).backward()
"""


@pytest.mark.parametrize(("result", "safety"), [("total.sum() + z.sum()", "unsafe"), ("total.sum()", "safe")])
def test_a_new_tensor_is_no_safe_fix_where_another_name_is_read_on(result, safety, captured) -> None:
    found = [
        finding for finding in judge(captured(SHARED.format(result=result))).findings if finding.rule.code == "BP401"
    ]
    assert [fix.safety for finding in found for fix in finding.fixes] == [safety]


CHOSEN = """\
import torch
from torch import nn

net, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    with torch.no_grad():
        code = {choice}
    loss = head(code).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("choice", "fixes"),
    [("net(torch.randn(8, 4))", 1), ("net(torch.randn(8, 4)).topk(4).values", 0)],
)
def test_what_is_chosen_under_no_grad_is_not_put_under_gradients(choice, fixes, captured) -> None:
    found = [
        finding for finding in judge(captured(CHOSEN.format(choice=choice))).findings if finding.rule.code == "BP602"
    ]
    assert [len(finding.fixes) for finding in found] == [fixes]


WRAPPED = """\
import tempfile
import torch
from torch import nn

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        return self.one(x)

    def score(self, x):
        return self.two(x)

place = f"file://{{tempfile.mktemp()}}"
torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
wrapper = nn.parallel.DistributedDataParallel(Two())
optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
torch.distributed.destroy_process_group()
"""


@pytest.mark.parametrize(
    ("loss", "fixes"),
    [
        ("wrapper.module.score(wrapper.module(x)).square().mean()", 0),
        ("wrapper.module(x).square().mean()", 1),
    ],
)
def test_a_wrapper_is_not_called_for_a_part_of_what_is_trained(loss, fixes, captured) -> None:
    found = [finding for finding in judge(captured(WRAPPED.format(loss=loss))).findings if finding.rule.code == "BP740"]
    assert [len(finding.fixes) for finding in found] == [fixes]


PLAYERS = """\
import torch
from torch import nn

G, D = nn.Linear(3, 1), nn.Linear(1, 1)
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for _ in range(3):
    fake = G(torch.randn(8, 3)).detach()
    od.zero_grad()
    {critic}
    od.step()
    og.zero_grad()
    (-D(fake).mean()).backward()
    og.step()
"""


@pytest.mark.parametrize(
    ("critic", "titles"),
    [
        ("D(fake).mean().backward()", []),
        ("D(torch.randn(8, 1)).mean().backward()", ["Drop `.detach()`"]),
    ],
)
def test_a_cut_that_two_calls_without_a_kept_graph_need_is_not_dropped(critic, titles, captured) -> None:
    findings = judge(captured(PLAYERS.format(critic=critic))).findings
    assert [fix.title for finding in findings if finding.rule.code == "BP601" for fix in finding.fixes] == titles


SLOPES = """\
import torch

weight = torch.ones(3, requires_grad=True)
points = torch.rand(4, 3, requires_grad=True)

def slope(u, v):
    return torch.autograd.grad(u, v, torch.ones_like(u))[0]

u = (points * weight).tanh()
x = points[:, :1]
{asked}
"""


@pytest.mark.parametrize(
    ("asked", "titles"),
    [
        ("slope(u, x)", []),
        ("torch.autograd.grad(u.sum(), x)", ["Differentiate by `points`"]),
    ],
)
def test_a_helper_is_given_no_name_of_its_callers(asked, titles, captured) -> None:
    (finding,) = judge(captured(SLOPES.format(asked=asked))).findings
    assert (finding.rule.code, [fix.title for fix in finding.fixes]) == ("BP323", titles)


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("graph-carried-across-steps: what the optimizer holds is bound to a projection", "BP302"),
        ("graph-carried-across-steps: a list of penalties is filled in forward and never emptied", "BP302"),
        ("graph-break-rebuild: a list of tensors and a number", "BP605"),
    ],
)
def test_no_edit_is_offered_where_none_of_the_line_mends_the_program(program, code, captured) -> None:
    (finding,) = judge(captured(PROGRAMS[program])).findings
    assert finding.rule.code == code
    assert [fix for fix in finding.fixes if fix.edits] == []


KEPT_BY_A_FLAG = """\
import torch
from torch import nn

def slope(y, x, keep):
    return torch.autograd.grad(y.sum(), x, retain_graph=True, create_graph=keep)[0]

def slopes(y, x, times, keep=True):
    for _ in range(times):
        y = slope(y, x, keep)
    return y

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.inner(x)

    def slope(self, y, x, keep=True):
        return torch.autograd.grad(y.sum(), x, retain_graph=True, create_graph=keep)[0]

    def twice(self, y, x, keep):
        return self.slope(self.slope(y, x), x, keep)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(3):
    x = torch.rand(8, 1, requires_grad=True)
    u = net(x)
    inside = {inside}
    edge = {edge}
    loss = (inside + u).pow(2).mean() + edge.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("inside", "edge", "lines"),
    [
        ("slope(u, x, True)", "slope(u, x, False)", [32]),
        ("slopes(u, x, 2)", "slopes(u, x, 1, keep=False)", []),
        ("net.slope(u, x)", "net.slope(u, x, False)", []),
        ("net.slope(u, x)", "net.slope(u, x, keep=False)", [32]),
        ("net.twice(u, x, True)", "net.twice(u, x, False)", []),
        ("u", "slopes(u, x, 1, keep=False)", []),
    ],
)
def test_a_flag_that_callers_hand_on_is_not_overwritten_in_the_helper(inside, edge, lines, captured) -> None:
    findings = judge(captured(KEPT_BY_A_FLAG.format(inside=inside, edge=edge))).findings
    (finding,) = [finding for finding in findings if finding.rule.code == "BP325"]
    assert [edit.region.start_line for fix in finding.fixes for edit in fix.edits] == lines
