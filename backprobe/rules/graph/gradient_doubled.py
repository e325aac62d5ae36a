"""BP327 gradient-doubled: one loss is walked twice, and its gradient counts twice.

What it finds:
    Two backward calls start from the same root and add to the same `.grad`, with nothing between them that reads, uses
    or clears it. The finding stands at the second call; related is the first.

Why it matters:
    The gradient is twice what it should be: the step is twice as long, and a learning rate found that way hides it.
    Assumed: the loss is meant to count once.

What PyTorch does:
    A backward call adds to `.grad`. Walking a graph again raises only where a node has freed what it saved; with
    `retain_graph=True`, or where nothing was saved, torch says nothing. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    loss = (weight * 2 - 1).pow(2).sum()
    loss.backward(retain_graph=True)
    loss.backward()  # <- here
    optimizer.step()

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    loss = (weight * 2 - 1).pow(2).sum()
    loss.backward()
    optimizer.step()

Near miss: the gradient is cleared between
    import torch

    weight = torch.ones(3, requires_grad=True)
    loss = weight.pow(2).sum()
    loss.backward(retain_graph=True)
    weight.grad = None
    loss.backward()

Near miss: the first gradient is read
    import torch

    weight = torch.ones(3, requires_grad=True)
    loss = weight.pow(2).sum()
    loss.backward(retain_graph=True)
    once = weight.grad.clone()
    loss.backward()
    print(weight.grad / once)

Near miss: two losses on one trunk
    import torch

    weight = torch.ones(3, requires_grad=True)
    trunk = weight * 2
    first, second = trunk.sum(), trunk.pow(2).sum()
    first.backward(retain_graph=True)
    second.backward()

Near miss: each call is asked for another leaf
    import torch

    left = torch.ones(3, requires_grad=True)
    right = torch.ones(3, requires_grad=True)
    loss = (left * right).sum()
    loss.backward(inputs=[left], retain_graph=True)
    loss.backward(inputs=[right])

Blind spots:
    A loss that is computed twice and walked twice is no root twice: whether both were meant is not to be seen.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.carried import is_used_between
from backprobe.rules.expressions import replacement
from backprobe.rules.finding import Finding, Fix, Region
from backprobe.rules.places import source_lines
from backprobe.rules.reach import reaches
from backprobe.rules.rule import Rule
from backprobe.rules.syntax import blocks, region_in, site_of, statement, tree_of
from backprobe.rules.told import told

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record, Site

RULE = Rule(
    name="gradient-doubled",
    code="BP327",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("backward", "node", "grad-life", "grad-read", "optimizer"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that walked a root which had just been walked."""
    pairs: dict[int, list[tuple[BackwardCall, BackwardCall]]] = {}
    last: dict[int, BackwardCall] = {}
    for call in record.backward_calls:
        root = call.roots[0].tensor if len(call.roots) == 1 else None
        if root is None or call.site is None or not _stores(call):
            continue
        if root in last and _is_untouched_between(record, last[root], call):
            pairs.setdefault(call.site, []).append((last[root], call))
        last[root] = call
    for site, found in pairs.items():
        yield _finding(record, site_of(record, site), found)


def _stores(call: BackwardCall) -> bool:
    """It added to `.grad` of all leaves that it met, of which some are there."""
    return call.accumulate_grad and call.inputs is None and call.outcome == "finished" and not call.create_graph


def _is_untouched_between(record: Record, first: BackwardCall, second: BackwardCall) -> bool:
    """Both brought gradients to the same leaves, and no one looked at those, used or changed them between."""
    leaves = reaches(record)[first.call].leaves & reaches(record)[second.call].leaves
    if not leaves or first.roots[0].gradient_given or second.roots[0].gradient_given:
        return False
    return not is_used_between(record, first, second)


def _finding(record: Record, site: Site, found: list[tuple[BackwardCall, BackwardCall]]) -> Finding:
    first, second = found[0]
    name = second.roots[0].name or "the root"
    leaves = reaches(record)[first.call].leaves & reaches(record)[second.call].leaves
    counted = "1 leaf" if len(leaves) == 1 else f"{len(leaves)} leaves"
    fix = _fix(record, site, first)
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{name}` is walked a second time, and its gradient is added to {counted} again.",
            "Each step is then twice as long as the learning rate says.",
            "Drop one of the two calls; if the loss is to count twice, multiply it by 2.",
        ),
        binding=name,
        moments=[call.moment_before for _first, call in found],
        related=(("the first walk", None if first.site == site.site else first.site),),
        evidence={"calls": [first.call, second.call], "leaves": len(leaves), "assumed": "the loss is to count once"},
        fixes=[] if fix is None else [fix],
        calls=[second.call],
        tensors=[second.roots[0].tensor] if second.roots[0].tensor is not None else [],
    )


def _fix(record: Record, site: Site, first: BackwardCall) -> Fix | None:
    """The second call dropped with its line, where it is a statement alone on it and not alone in its block."""
    node, tree = statement(record, site), tree_of(record, site)
    if first.site is None or first.site == site.site or not isinstance(node, ast.Expr) or tree is None:
        return None
    region = region_in(record, site.source, node)
    lines = source_lines(record)[site.source]
    behind = lines[region.end_line - 1][region.end_col - 1 :].strip()
    before = lines[region.start_line - 1][: region.start_col - 1].strip()
    alone = any(body == [node] for body in blocks(tree.parents.get(node)))
    if alone or before or (behind and not behind.startswith("#")) or region.end_line >= len(lines):
        return None
    whole = Region(start_line=region.start_line, start_col=1, end_line=region.end_line + 1, end_col=1)
    return Fix(title="Drop the second call", safety="unsafe", edits=(replacement(record, site, whole, ""),))
