"""BP327 gradient-doubled: one loss is walked twice, and its gradient counts twice.

What it finds:
    Two backward calls start from the same root and add to the same `.grad`, with nothing between them that reads, uses
    or clears it; the finding stands at the second call. Or a call walks a term alone and a later one walks it again
    inside a sum, as a running total does; it stands at the call that walks the term alone. Or two statements add one
    scalar term to the same root in two steps or more; it stands at the later sum.

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

from backprobe.rules.analysis.graph.carried_graphs import is_used_between
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.training_modes import used_by_updates
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import blocks, region_in, site_of, statement, tree_of
from backprobe.rules.analysis.terms.repeated_terms import Repeated, added_twice, stores, walked_before
from backprobe.rules.framework.finding import Finding, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import source_lines
from backprobe.rules.framework.rule import Rule

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


_LEAST = 2
"""Calls in which a term was added twice: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that makes a loss, or a term of one, count again."""
    yield from _same_roots(record)
    alone: dict[int, list[Repeated]] = {}
    for one in walked_before(record):
        alone.setdefault(one.call.site or 0, []).append(one)
    for rows in alone.values():
        yield _walked_alone(record, rows)
    sums: dict[int, list[Repeated]] = {}
    for one in added_twice(record):
        sums.setdefault(one.site, []).append(one)
    for rows in sums.values():
        if len({one.call.call for one in rows}) >= _LEAST:
            yield _added_again(record, rows)


def _same_roots(record: Record) -> Iterator[Finding]:
    """One finding per statement that walked a root which had just been walked."""
    pairs: dict[int, list[tuple[BackwardCall, BackwardCall]]] = {}
    last: dict[int, BackwardCall] = {}
    for call in record.backward_calls:
        root = call.roots[0].tensor if len(call.roots) == 1 else None
        if root is None or call.site is None or not stores(call):
            continue
        if root in last and _is_untouched_between(record, last[root], call):
            pairs.setdefault(call.site, []).append((last[root], call))
        last[root] = call
    for site, found in pairs.items():
        yield _finding(record, site_of(record, site), found)


def _is_untouched_between(record: Record, first: BackwardCall, second: BackwardCall) -> bool:
    """Both brought gradients to the same leaves, and no one looked at those, used or changed them between."""
    leaves = reaches(record)[first.call].leaves & reaches(record)[second.call].leaves
    if not leaves or first.roots[0].gradient_given or second.roots[0].gradient_given:
        return False
    if not is_used_between(record, first, second):
        return True
    # a look at the gradient between the calls, as for a log, takes nothing out of the sum that is stepped on
    start, end = first.moment_before, second.moment_before
    changed = any(row.tensor in leaves and start < row.moment <= end and row.call is None for row in record.leaf_grads)
    stepped = any(start < row.moment <= end for row in record.optimizer_events)
    return not changed and not stepped and second.call in used_by_updates(record)


def _walked_alone(record: Record, rows: list[Repeated]) -> Finding:
    """A term walked alone, and again inside a later root."""
    first, call = rows[0].first or rows[0].call, rows[0].call
    name, whole = first.roots[0].name or "the root", call.roots[0].name or "the later root"
    same = first.site == call.site
    sites = list(dict.fromkeys(one.site for one in rows))
    seen = f"`{name}` is walked back here, and the call that follows walks it again inside `{whole}`."
    if same:
        seen = f"`{name}` takes in one term after another, and each call here walks all of them again."
    return told(
        record,
        RULE,
        sites[0],
        (
            seen,
            "Nothing clears `.grad` between: what was added first counts once more with each call.",
            "Walk each term by itself, or their sum once, after the loop." if same else "Make one of the two calls.",
        ),
        binding=name,
        moments=sorted({(one.first or one.call).moment_before for one in rows}),
        related=[
            *(("this term is walked alone, too", site) for site in sites[1:4]),
            ("this call walks it again", None if same else call.site),
        ],
        evidence={"calls": [first.call, call.call], "terms": len(rows), "assumed": "each term is to count once"},
        calls=[call.call],
        tensors=[one.tensor for one in first.roots if one.tensor is not None],
    )


def _added_again(record: Record, rows: list[Repeated]) -> Finding:
    """A term that two sums add into one root."""
    one, index = rows[0], lookup(record)
    made = [row.tensor for row in record.tensor_nodes if row.node == one.term]
    name = next((row.name for tensor in made for row in index.bindings_of[tensor]), "one term")
    root = one.call.roots[0].name or "the root"
    return told(
        record,
        RULE,
        one.site,
        (
            f"`{name}` is added to `{root}` here, and was added to a part of it before.",
            "Its gradient counts twice. Assumed: it is to count once.",
            "Add it in one place; if it is to weigh more, give it one factor.",
        ),
        binding=name,
        moments=[row.call.moment_before for row in rows],
        related=(("it was added here before", index.nodes[one.adds[0]].site), ("walked back here", one.call.site)),
        evidence={"sums": len(one.adds), "calls": len(rows), "assumed": "the term is to count once"},
        calls=[row.call.call for row in rows],
        tensors=made[:1],
    )


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
