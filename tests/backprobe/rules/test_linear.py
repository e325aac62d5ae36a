"""Judging and reporting are linear in the record and the source: executed lines are counted, not seconds.

Each shape is a program that grows with a number. Twice the number is twice the program or twice its turns; what a rule
does for it may be 2.2 times as much, for a program has parts that do not grow.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import backprobe
from backprobe.record import Record
from backprobe.rules import judge
from backprobe.show.formats import terminal_report

OURS = str(Path(backprobe.__file__).parent)
REAL = Path(__file__).parents[2] / "real_programs"
HEAD = "import torch\nfrom torch import nn\n"


def names_fed_to_themselves(size: int) -> str:
    """Each name of a loop leads to every other one, and none of them ever to a tensor with a history."""
    names = [f"v{at}" for at in range(size)]
    made = "".join(f"    {name} = torch.ones(4)\n" for name in names)
    fed = "".join(
        f"        {a} = {a} * {b} + {c}\n        {a}, {b} = {a} / {a}.norm() + {c}, {b} + {a}\n"
        for a, b, c in zip(names, names[1:] + names[:1], names[2:] + names[:2], strict=True)
    )
    return f"""{HEAD}def main():
    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), 0.1)
{made}    for _ in range(2):
{fed}        total = {" + ".join(names)}
        loss = net(total).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
main()
"""


def names_fed_from_a_loss(size: int) -> str:
    """The same, and a loss goes into one of them."""
    fed = names_fed_to_themselves(size)
    return fed.replace("    for _", "    loss = net(v0).sum()\n    for _").replace(
        "        total", "        v0 = v0 + loss.detach()\n        total"
    )


def names_fed_to_a_root(size: int) -> str:
    """Nothing that the backward call walks leads back: every detach on the way is a place where it may have ended."""
    fed = "".join(f"    v{at} = net(h)\n    h = v{at}.detach() + h\n" for at in range(size))
    return f"""{HEAD}net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    h = torch.zeros(4)
{fed}    loss = torch.tensor(h.sum().item(), requires_grad=True)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def steps(size: int) -> str:
    return f"""{HEAD}net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range({size}):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
"""


def layers(size: int) -> str:
    return f"""{HEAD}class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.inner = nn.Linear(4, 8)
        self.outer = nn.Linear(8, 4)
    def forward(self, x):
        h = torch.relu(self.inner(self.norm(x)))
        return x + self.outer(h)
net = nn.Sequential(*(Block() for _ in range({size})))
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2):
    loss = net(torch.randn(2, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def phases(size: int) -> str:
    turns = "".join(
        f"opt{at} = torch.optim.SGD(net.parameters(), 0.1)\ntrain(opt{at})\nscore{at} = evaluate()\n"
        for at in range(size)
    )
    return f"""{HEAD}net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.ReLU(), nn.Linear(8, 2))
def train(opt):
    net.train()
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
def evaluate():
    net.eval()
    with torch.no_grad():
        return net(torch.randn(8, 4)).pow(2).mean().item()
{turns}"""


def functions(size: int) -> str:
    made = "".join(
        f"def f{at}(x):\n    y = x * w\n    z = torch.tanh(y) + x\n    return z / z.norm()\n" for at in range(size)
    )
    called = "".join(f"    x = f{at}(x)\n" for at in range(size))
    return f"""{HEAD}w = torch.ones(4, requires_grad=True)
opt = torch.optim.SGD([w], 0.1)
{made}for _ in range(2):
    x = torch.ones(4)
{called}    opt.zero_grad()
    x.sum().backward()
    opt.step()
"""


def two_optimizers(size: int) -> str:
    return f"""{HEAD}made, judged = nn.Linear(4, 4), nn.Linear(4, 1)
first = torch.optim.SGD(made.parameters(), 0.01)
second = torch.optim.SGD(judged.parameters(), 0.01)
for _ in range({size}):
    fake = made(torch.randn(8, 4))
    second.zero_grad()
    judged(torch.randn(8, 4)).pow(2).mean().backward()
    judged(fake.detach()).pow(2).mean().backward()
    second.step()
    first.zero_grad()
    judged(fake).mean().backward()
    first.step()
"""


def unrolled(size: int) -> str:
    return f"""{HEAD}cell = nn.GRUCell(4, 4)
opt = torch.optim.SGD(cell.parameters(), 0.1)
for _ in range(2):
    h, states = torch.zeros(2, 4), []
    for t in range({size}):
        h = cell(torch.randn(2, 4), h)
        states.append(h)
    with torch.no_grad():
        for one in states:
            shown = one.norm()
    opt.zero_grad()
    torch.stack(states).pow(2).mean().backward()
    opt.step()
"""


SHAPES: dict[Callable[[int], str], int] = {
    names_fed_to_themselves: 8,
    names_fed_from_a_loss: 20,
    names_fed_to_a_root: 40,
    steps: 9,
    layers: 6,
    phases: 6,
    functions: 12,
    two_optimizers: 8,
    unrolled: 10,
}
"""Each with the size that is doubled."""


def lines_of(record: Record) -> Counter[CodeType]:
    """How many lines of code run to judge a record and to report it, by function."""
    counted: Counter[CodeType] = Counter()

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            counted[frame.f_code] += 1
        return line

    def call(frame: FrameType, _event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename.startswith(OURS) else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        terminal_report.render(record, judge(record))
    finally:
        sys.settrace(before)
    return counted


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_program_takes_at_most_little_more_than_twice_the_lines(shape, captured) -> None:
    size = SHAPES[shape]
    records = captured(shape(size)), captured(shape(2 * size))
    assert [record.end and record.end.exit_code for record in records] == [0, 0]
    once, twice = map(lines_of, records)
    grown = sorted(twice, key=lambda code: twice[code] - 2 * once[code], reverse=True)[:5]
    told = [(code.co_qualname, once[code], twice[code]) for code in grown]
    assert twice.total() <= 2.2 * once.total(), told


def test_names_that_a_loop_feeds_to_themselves_take_few_lines_for_each_row(captured) -> None:
    record = captured((REAL / "selfref.py").read_text())
    rows = sum(len(getattr(record, table)) for table in ("bindings", "snapshots", "moments", "operations", "nodes"))
    assert lines_of(record).total() <= 600 * rows
