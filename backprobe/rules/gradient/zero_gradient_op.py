"""BP220 zero-gradient-op: an operation whose derivative is zero everywhere stands between the loss and what is trained.

What it finds:
    `sign`, `round`, `floor`, `ceil`, `trunc`, `bernoulli` or `normal` got a gradient in the backward calls and sent on
    zeros, and no trained parameter behind it ever got anything else. The finding stands at that operation.
    So it does at a straight-through estimator without its `detach()`: the gradients of `x` in `x + (y - x)` cancel.

Why it matters:
    Nothing raises, and `.grad` is not None: it is a tensor of zeros. The optimizer steps, and what lies behind the
    operation stays as it was made.

What PyTorch does:
    These functions are flat between their jumps, and torch gives them the derivative 0, not an error; so it does to the
    mean and deviation of what `normal` draws. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(12, 6), nn.Linear(6, 12)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(3):
        rows = torch.randn(40, 12)
        bits = torch.sign(encoder(rows))  # <- here
        loss = (decoder(bits) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(12, 6), nn.Linear(6, 12)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(3):
        rows = torch.randn(40, 12)
        hidden = encoder(rows)
        bits = hidden + (torch.sign(hidden) - hidden).detach()
        loss = (decoder(bits) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: what is rounded is not trained
    import torch
    from torch import nn

    layer = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        rows = torch.rand(8, 4).mul(10).round()
        optimizer.zero_grad()
        layer(rows).square().mean().backward()
        optimizer.step()

Near miss: the fraction behind the floor has a gradient
    import torch
    from torch import nn

    layer = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        place = layer(torch.rand(8, 4))
        optimizer.zero_grad()
        (place - place.floor()).square().mean().backward()
        optimizer.step()

Near miss: a rounded value is only counted
    import torch
    from torch import nn

    layer = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        score = layer(torch.rand(8, 4)).sigmoid()
        hits = score.round().sum().item()
        optimizer.zero_grad()
        (score - 1).square().mean().backward()
        optimizer.step()

Blind spots:
    Comparisons, `argmax` and integer casts give no zeros but no gradient at all: BP606 is to see those.

Source:
    The derivatives of these functions in `derivatives.yaml` of PyTorch; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import always_zero, came_to, is_nonzero
from backprobe.rules.analysis.graph.reach import leaves_behind, leaves_past
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.analysis.tensors.operation_chains import takers
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.analysis.terms.term_sources import trained_by
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="zero-gradient-op",
    code="BP220",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "stats", "grad-life", "optimizer"),
)

_FLAT: Final = re.compile(r"(Sign|Round|Floor|Ceil|Trunc|Bernoulli|Normal)Backward\d*")


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    flat: dict[int, list[tuple[Node, str]]] = {}
    for node in nodes_like(record, _FLAT.fullmatch):
        kind = _FLAT.fullmatch(node.type)
        if kind is not None and node.site is not None and _lost(record, node):
            flat.setdefault(node.site, []).append((node, kind[1].lower()))
    for site, some in flat.items():
        yield _finding(record, site, some)
    for node, (twice, rows) in _cancelled(record).items():
        yield _of_cancelled(record, node, twice, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Twice:
    """What a sum adds and takes away again: `x` of `x + (y - x)`, and the difference in which it takes it away."""

    part: ast.expr
    difference: ast.BinOp


def _cancelled(record: Record) -> dict[ast.BinOp, tuple[_Twice, list[Operation]]]:
    """The sums that add a tracked tensor and take it away again, in two steps or more: they are its other summand."""
    found: dict[ast.BinOp, tuple[_Twice, list[Operation]]] = {}
    for row in record.operations:
        node = expression_of(record, row) if row.function in ("+", "-") and row.requires_grad else None
        twice = _taken_away(record, row, node) if isinstance(node, ast.BinOp) else None
        if isinstance(node, ast.BinOp) and twice is not None and _is_trained(record, row, twice.part):
            found.setdefault(node, (twice, []))[1].append(row)
    return {node: one for node, one in found.items() if len(one[1]) > 1}


def _taken_away(record: Record, row: Operation, node: ast.BinOp) -> _Twice | None:
    """`x` of `x + (y - x)`, `(y - x) + x` and `x - (x - y)`; None for another sum."""
    given = [(node.left, node.right), (node.right, node.left)] if isinstance(node.op, ast.Add) else []
    given += [(node.left, node.right)] if isinstance(node.op, ast.Sub) else []
    for one, other in given:
        inner = _difference(record, row, other) if isinstance(one, ast.Name | ast.Attribute) else None
        if inner is not None:
            held, rest = (inner.right, inner.left) if isinstance(node.op, ast.Add) else (inner.left, inner.right)
            if ast.unparse(held) == ast.unparse(one) and not isinstance(rest, ast.Constant):
                return _Twice(part=one, difference=inner)
    return None


def _difference(record: Record, row: Operation, summand: ast.expr) -> ast.BinOp | None:
    """The difference that a summand is, also where it has a name: then nothing else takes it, nor is its part new."""
    if isinstance(summand, ast.BinOp):
        return summand if isinstance(summand.op, ast.Sub) else None
    for tensor in row.operands if isinstance(summand, ast.Name | ast.Attribute) else ():
        made = made_by(record).get(tensor)
        node = None if made is None or made.function != "-" else expression_of(record, made)
        if made is None or not isinstance(node, ast.BinOp) or len(takers(record)[tensor]) > 1:
            continue
        if set(made.operands) & set(row.operands) - {tensor}:
            return node
    return None


def _is_trained(record: Record, row: Operation, part: ast.expr) -> bool:
    """What the part stands for has a history that leads to something that is trained."""
    name = ast.unparse(part)
    held = [one for one in row.operands if any(bound.name == name for bound in lookup(record).bindings_of[one])]
    tracked = [one for one in held if (was := state_at(record, one, row.moment or 0)) and was.requires_grad]
    return any(trained_by(record, one) & trained(record) for one in tracked)


def _of_cancelled(record: Record, node: ast.BinOp, twice: _Twice, rows: list[Operation]) -> Finding:
    part, inner = ast.unparse(twice.part), twice.difference
    site, sign = site_of(record, rows[0].statement), "+" if isinstance(node.op, ast.Add) else "-"
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{ast.unparse(node)[:80]}` adds `{part}` and takes it away again: the two gradients cancel.",
            f"No gradient comes to `{part}` through it; all of it goes to the rest, as if `{part}` were not there.",
            f"Detach the difference: `{part} {sign} ({ast.unparse(inner)[:60]}).detach()`.",
        ),
        binding=site.targets[0] if site.targets else part,
        moments=[row.moment or 0 for row in rows],
        region=region_in(record, site.source, node),
        evidence={"calls": len(rows)},
    )


def _lost(record: Record, node: Node) -> list[int]:
    """The trained leaves behind it that never got anything but zeros, though a gradient came to the node itself."""
    rows = came_to(record, node.node)
    if not any(is_nonzero(row.grad_output) for row in rows):
        return []
    return sorted((leaves_behind(record, node.node) & trained(record) & always_zero(record)) - _spared(record))


@table
def _spared(record: Record) -> frozenset[int]:
    """The leaves that some backward call reaches on a way without a flat node: if they get zeros, others send them."""
    flat = frozenset(node.node for node in nodes_like(record, _FLAT.fullmatch))
    return frozenset(leaf for call in lookup(record).calls for leaf in leaves_past(record, call, flat))


def _turned_round(record: Record, tensor: int) -> int | None:
    """The statement that adds a detached difference to the flat value `b` itself: `b + (x - b).detach()`."""
    known = operations_by_number(record)
    for taker in takers(record).get(tensor, ()):
        for cut in (known.get(number) for number in taker.inner if taker.function == "+"):
            inner = () if cut is None or cut.function.rpartition(".")[2] != "detach" else cut.inner
            rows = (known.get(number) for number in inner)
            if any(row is not None and row.function == "-" and tensor in row.operands for row in rows):
                return taker.statement
    return None


def _finding(record: Record, site: int, some: list[tuple[Node, str]]) -> Finding:
    node, kind = some[0]
    index = lookup(record)
    lost = _lost(record, node)
    made = [row.tensor for row in record.tensor_nodes if row.node == node.node]
    names = [row.name for tensor in made for row in index.bindings_of[tensor]]
    result = f"`{names[0]}`" if names else "its result"
    how = "has no derivative by what it draws from" if kind == "normal" else "is flat"
    whom = "it" if len(lost) == 1 else "them"
    calls = dict.fromkeys(row.call for one, _kind in some for row in came_to(record, one.node))
    turned = next((at for tensor in made if (at := _turned_round(record, tensor)) is not None), None)
    if turned is not None:
        advice = f"The detached side is the wrong one: write `x + (torch.{kind}(x) - x).detach()`."
    elif kind == "normal":
        advice = "Draw it as `mean + std * torch.randn_like(std)`."
    else:
        advice = f"Let the gradient pass straight through, as in `x + (torch.{kind}(x) - x).detach()`."
    return told(
        record,
        RULE,
        site if turned is None else turned,
        (
            f"`{kind}` {how}: the gradient that comes to {result} goes on as zeros.",
            f"Nothing else ever comes to {together(record, lost)}: no step trains {whom}.",
            advice,
        ),
        binding=names[0] if names else kind,
        moments=[one.first_seen for one, _kind in some],
        related=[
            (f"`{kind}` is taken here", None if turned is None else site),
            ("a gradient came to it in this backward call", index.calls[next(iter(calls))].site),
        ],
        evidence={"node": node.type, "leaves_at_zero": lost[:16], "calls": len(calls)},
        tensors=lost,
    )
