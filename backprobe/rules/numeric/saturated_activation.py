"""BP509 saturated-activation: nearly every tanh or sigmoid stands at its flat end from the first step on.

What it finds:
    In every backward call of the run, at least three, a tanh or sigmoid got a gradient and sent less than three tenths
    of it: of the elements that it got one for, more than 70 of 100 sent zero. Layers behind it hold trained parameters.
    Or a loss of a generator is the mean of `logsigmoid`, or of minus `softplus`, of what a critic gave, and in most
    calls of the second half hardly anything of its gradient went on: the loss is flat where it is worst.
    The finding stands at the statement by which the program gave a layer behind it values beyond what layers start
    with; else at the activation, which is where its module is made if one statement runs several.

Why it matters:
    What lies before it cannot learn: its gradient is zero for nearly every example. Raw inputs (prices, pixels up to
    255, years) are the usual cause.

What PyTorch does:
    The derivative of tanh is `1 - tanh(x)**2`: below 1e-7 beyond 9, so that it is 0 in float32. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    prices = torch.rand(40, 4) * 90_000 + 10_000
    for _ in range(4):
        hidden = torch.tanh(first(prices))  # <- here
        loss = (second(hidden) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    prices = torch.rand(40, 4) * 90_000 + 10_000
    scaled = (prices - prices.mean(0)) / prices.std(0)
    for _ in range(4):
        hidden = torch.tanh(first(scaled))
        loss = (second(hidden) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a gate closes late in training
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    for step in range(4):
        hidden = torch.sigmoid(first(torch.randn(40, 4)) * 100**step)
        loss = (second(hidden) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the last layer's probabilities are sure of themselves
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(4):
        sure = torch.sigmoid(model(torch.randn(40, 4) * 1e6))
        loss = (sure - 0.5).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a ReLU, of which half of the units are off
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    for _ in range(4):
        loss = (second(first(torch.randn(40, 4)).relu()) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the generator's loss is flat where it is good
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 2), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(maker.parameters(), lr=0.1)
    judge.requires_grad_(False).bias.fill_(6)
    for _ in range(12):
        loss = -nn.functional.logsigmoid(judge(maker(torch.randn(16, 2)))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Activations that are flat but not exactly zero in their dtype are told by BP507, if at all.

Source:
    Glorot, Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010. Measured: over the
    correct programs of the corpora a tanh or sigmoid behind a weight makes at most 2 % of the elements zero that were
    not zero already, in every one of three calls.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.losses.flat_losses import FlatLoss, flat_losses
from backprobe.rules.analysis.modules.module_sites import calls_by_number, modules_by_number
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.scopes import names
from backprobe.rules.analysis.source.syntax import region_in, site_at, site_of, statement, value_of
from backprobe.rules.analysis.tensors.value_origins import extreme_start, unscaled_batch
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Node, NodePass, Record, Statistics
    from backprobe.rules.framework.finding import Finding, Region

RULE = Rule(
    name="saturated-activation",
    code="BP509",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("stats", "node", "backward"),
    thresholds={"flat": 0.7, "sent": 0.3},
)
_LEAST = 3
"""Backward calls in which it must be flat: thrice is a pattern."""

_KINDS = {"TanhBackward0": "tanh", "SigmoidBackward0": "sigmoid"}


_MODULES = frozenset({"Tanh", "Sigmoid"})


@dataclass(slots=True)
class _Seen:
    """One activation's statement: in how many calls it was flat, and the worst numbers.

    Attributes:
        others: The statement runs other activations too.
    """

    kind: str
    node: int
    module: int | None
    others: bool = False
    flat: list[BackwardCall] = field(default_factory=list["BackwardCall"])
    open: int = 0
    share: float = 1.0
    sent: float = 0.0


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement whose activation was flat in every call, or whose loss went flat where it is worst."""
    told_of, seen = set[int](), _seen(record)
    for (site, kind, number), one in seen.items():
        one.others = any(key[:2] == (site, kind) and key[2] != number for key in seen)
        if len(one.flat) >= _LEAST and not one.open and site not in told_of:
            told_of.add(site)
            yield _finding(record, site, one)
    for flat in flat_losses(record):
        yield _of_loss(record, flat)


def _seen(record: Record) -> dict[tuple[int, str, int | None], _Seen]:
    """The activations by statement and kind, and by module: one statement may call a whole stack of layers."""
    seen: dict[tuple[int, str, int | None], _Seen] = {}
    flat, least = threshold(RULE, "flat"), threshold(RULE, "sent")
    for call in record.backward_calls if nodes_like(record, _KINDS.__contains__) else ():
        for node, got in _activations(record, call):
            sent = _sent(record, call, node)
            if sent is None or sent.grad_output is None or node.site is None:
                continue
            key = (node.site, node.type, _module(record, node))
            one = seen.setdefault(key, _Seen(_KINDS[node.type], node.node, key[2]))
            measured, reached = sent.grad_output, got.counted - got.zeros
            share = max(measured.zeros - got.zeros, 0) / max(reached, 1)
            part = (measured.norm or 0.0) / (got.norm or 1.0)
            if share > flat and part < least:
                one.flat.append(call)
                one.share, one.sent = min(one.share, share), max(one.sent, part)
            else:
                one.open += 1
    return seen


def _module(record: Record, node: Node) -> int | None:
    """The module in whose call the node was made, where that is the activation itself."""
    call = None if node.module_call is None else calls_by_number(record).get(node.module_call)
    module = None if call is None else modules_by_number(record).get(call.module)
    return module.module if module is not None and module.cls in _MODULES else None


def _activations(record: Record, call: BackwardCall) -> Iterator[tuple[Node, Statistics]]:
    """The tanh and sigmoid nodes that a call ran behind some weight, with the gradient they got."""
    index = lookup(record)
    rows = sorted(
        (row for row in index.passes_of_call[call.call] if row.position is not None), key=lambda row: row.position or 0
    )
    weights = 0
    for row in rows:
        node = index.nodes[row.node]
        weights += node.variable is not None and len(index.tensors[node.variable].shape or ()) > 1
        measured = row.grad_output
        if weights and node.type in _KINDS and measured is not None and measured.norm:
            yield node, measured


def _sent(record: Record, call: BackwardCall, node: Node) -> NodePass | None:
    """What arrived at the node that an activation sends to, if it sends to one that only it sends to."""
    index = lookup(record)
    targets = [edge.to_node for edge in index.edges_of[node.node] if edge.to_node is not None]
    rows = [row for target in targets for row in index.passes_of_node[target] if row.call == call.call]
    return rows[0] if len(rows) == 1 else None


def _made_at(record: Record, site: int, one: _Seen) -> tuple[int, Region] | None:
    """The first statement of the program that writes the class of a module which the flat statement does not name."""
    module = modules_by_number(record).get(one.module or -1)
    last = "" if module is None else (module.fqn or module.binding or "").rpartition(".")[2]
    named = any(name.rpartition(".")[2] == last for name in site_of(record, site).reads)
    calls = [call for file in names(record).values() for call in file.calls.get(module.cls if module else "", ())]
    for call in [] if named else sorted(calls, key=lambda part: part.lineno):
        for number, file in names(record).items():
            node = next((above for above in file.tree.ancestors(call) if isinstance(above, ast.stmt)), None)
            place = None if node is None else site_at(record, node)
            if place is not None:
                return place.site, region_in(record, number, call)
    return None


def _finding(record: Record, site: int, one: _Seen) -> Finding:
    row = site_of(record, site)
    name = row.targets[0] if row.targets else one.kind
    value = value_of(statement(record, row))
    start = extreme_start(record, sorted(leaves_behind(record, one.node)), one.flat[0].moment_before)
    advice = "Scale the inputs to mean 0 and deviation 1, or put a norm before it."
    if start is not None:
        advice = f"This statement gives `{called(record, start.tensor)}` its values: start it with a smaller scale."
    data = unscaled_batch(record, site) if start is None else None
    made = None if data is None else lookup(record).tensors[data[0]].site
    if data is not None and made is not None:
        advice = f"`{called(record, data[0])}` has values of about {data[1]:.1g}: scale them to mean 0 and deviation 1."
    written = _made_at(record, site, one) if start is None and one.module is not None and one.others else None
    place = site if start is None else start.site
    region = None if value is None or place != site else region_in(record, row.source, value)
    return told(
        record,
        RULE,
        place if written is None else written[0],
        (
            f"`{name}`: the {one.kind} is flat for {100 * one.share:.0f} % of its elements in all calls.",
            f"It sends {one.sent:.1g} of the gradient it gets (limit {threshold(RULE, 'sent'):g}).",
            advice,
        ),
        binding=name,
        moments=[call.moment_before for call in one.flat],
        region=region if written is None else written[1],
        related=(
            *(((f"the {one.kind} is flat here", site),) if start is not None or written is not None else ()),
            *((("these data go into it", made),) if made != site else ()),
        ),
        evidence={"flat": round(one.share, 4), "sent": one.sent, "calls": len(one.flat)},
        calls=[call.call for call in one.flat],
    )


def _of_loss(record: Record, one: FlatLoss) -> Finding:
    row = site_of(record, one.site)
    name = row.targets[0] if row.targets else one.kind
    return told(
        record,
        RULE,
        one.site,
        (
            f"`{name}` goes down as what the critic gives goes up, and is flat where that is lowest.",
            f"There {one.kind} sends on {one.sent:.1g} of its gradient: the worse the samples, the less is learnt.",
            "Take the loss that is steep there: minus the log of the probability that they are real.",
        ),
        binding=name,
        moments=[call.moment_before for call in one.calls],
        related=(("this backward call sends on hardly anything", one.calls[-1].site),),
        evidence={"sent": one.sent, "calls": len(one.calls)},
        calls=[call.call for call in one.calls],
    )
