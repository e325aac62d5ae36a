"""BP301 second-backward-freed-graph: a backward call walks into a graph that an earlier one has freed.

What it finds:
    Two backward calls share a part of the graph. The first one freed the tensors saved there, and the second one
    raised. The finding stands at the second call; related are the call that freed it and the statement that made the
    first shared part. Where the first is an `autograd.grad()` that looks at the graph before the training's own call,
    it stands there.

Why it matters:
    The program stops. The remedy that the message of torch suggests, `retain_graph=True`, keeps the memory of the
    whole graph and is rarely what was meant: one backward call over the sum of both losses gives the same gradients.

What PyTorch does:
    A backward call frees what its nodes saved as it goes, unless `retain_graph=True`. A second walk over a freed node
    raises `RuntimeError: Trying to backward through the graph a second time`. Nodes that save nothing can be walked
    again without an error. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(3, requires_grad=True)
    trunk = x * x
    first, second = trunk.sum(), (trunk * 2).sum()
    first.backward()
    second.backward()  # <- here

Use instead:
    import torch

    x = torch.ones(3, requires_grad=True)
    trunk = x * x
    first, second = trunk.sum(), (trunk * 2).sum()
    (first + second).backward()

Near miss: the graph is retained on purpose
    import torch

    x = torch.ones(3, requires_grad=True)
    trunk = x * x
    first, second = trunk.sum(), (trunk * 2).sum()
    first.backward(retain_graph=True)
    second.backward()

Near miss: nothing saved is shared
    import torch

    x = torch.ones(3, requires_grad=True)
    trunk = x + 1
    first, second = trunk.sum(), (trunk - 2).sum()
    first.backward()
    second.backward()

Near miss: each call has a graph of its own
    import torch

    x = torch.ones(3, requires_grad=True)
    for _ in range(2):
        loss = (x * x).sum()
        loss.backward()

Near miss: the program catches the exception
    import torch

    x = torch.ones(3, requires_grad=True)
    loss = (x * x).sum()
    loss.backward()
    try:
        loss.backward()
    except RuntimeError as error:
        print(error)

Blind spots:
    Where the shared part was made in an earlier turn, BP302 and BP303 name the line to change; this rule speaks where
    that part has no name. A graph freed by a backward pass in C++ is not proven.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.carried_graphs import WalkedAgain, is_same_turn, is_used_between, walked_again
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.roots import asked_in
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement, with_keyword
from backprobe.rules.analysis.source.syntax import blocks, region_in, site_of, statement, text_in, tree_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.framework.finding import Edit, Finding, Fix, Occurrences, Region, Related, Subject, rule_name
from backprobe.rules.framework.locations import line_words, location, source_lines
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record, Site

RULE = Rule(
    name="second-backward-freed-graph",
    code="BP301",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "backward", "node"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that met nodes freed by an earlier one of the same turn."""
    for again in walked_again(record):
        site = again.second.site if again.second.site is not None else again.raised.site
        if again.cause == "shared" and again.first.site is not None and _is_probe(record, again):
            yield _probe(record, again, site_of(record, again.first.site))
        elif again.cause == "shared" and site is not None:
            yield _finding(record, again, site_of(record, site))


def _is_probe(record: Record, again: WalkedAgain) -> bool:
    """The first call is an `autograd.grad()` that looks at the graph of the training's own call, and frees it."""
    first, second = again.first, again.second
    looks = first.entry == "autograd.grad" and not first.retain_graph and second.accumulate_grad
    return looks and first.site is not None and first.site != second.site and is_same_turn(record, first, second)


def _probe(record: Record, again: WalkedAgain, site: Site) -> Finding:
    """The call that only looked: it is the one to change."""
    first, second = again.first, again.second
    asked = asked_in(record, site)
    edits = () if asked is None else (with_keyword(record, site, asked, "retain_graph", "True"),)
    root = first.roots[0].name if first.roots else None
    where = "after it" if second.site is None else f"at {line_words(record, second.site, site.site)}"
    step = step_of(record, first.moment_before)
    related: list[Related] = []
    if second.site is not None:
        related.append(Related(message="this backward call finds it freed", location=location(record, second.site)))
    return Finding(
        rule=rule_name(RULE),
        level=level_of(record, again.raised),
        confidence=RULE.confidence,
        message=f"This `autograd.grad()` frees a graph that the backward call {where} walks after it.\n"
        f"{len(again.nodes)} of its nodes gave back what they need.\n"
        "Give it `retain_graph=True`: only the last call may free the graph.",
        location=location(record, site.site),
        related=tuple(related),
        evidence={
            "binding": root,
            "call": second.call,
            "freed_by_call": first.call,
            "freed_nodes": [lookup(record).nodes[node].type for node in again.nodes[:8]],
            "retain_graph": first.retain_graph,
        },
        fixes=tuple(
            Fix(title="Retain the graph for the call that follows", safety="safe", edits=(one,)) for one in edits
        ),
        occurrences=Occurrences(first_step=step, last_step=step),
        subject=Subject(facts=(("call", second.call),), moment=second.moment_before),
    )


def _finding(record: Record, again: WalkedAgain, site: Site) -> Finding:
    index = lookup(record)
    first, second, shared = again.first, again.second, [index.nodes[node] for node in again.nodes]
    name = _shared_name(record, first, second)
    counted = "1 node" if len(shared) == 1 else f"{len(shared)} nodes"
    trunk = min((node for node in shared if node.site is not None), key=lambda node: node.seq or 0, default=None)
    related: list[Related] = []
    if trunk is not None and trunk.site is not None:
        made = "the part of the graph that both calls walk begins here"
        related.append(Related(message=made, location=location(record, trunk.site)))
    if first.site is not None:
        freed = f"this backward call freed {counted} of it"
        related.append(Related(message=freed, location=location(record, first.site)))
    step = step_of(record, second.moment_before)
    where = "before it" if first.site is None else f"at {line_words(record, first.site, site.site)}"
    return Finding(
        rule=rule_name(RULE),
        level=level_of(record, again.raised),
        confidence=RULE.confidence,
        message=f"This backward call walks a graph that the one {where} has freed.\n"
        f"Both walk what {name} was computed from, where {counted} gave back what it needs.\n"
        f"{_advice(record, first, second, name)}",
        location=location(record, site.site),
        related=tuple(related),
        evidence={
            "binding": second.roots[0].name if second.roots else None,
            "shared": name.strip("`"),
            "call": second.call,
            "freed_by_call": first.call,
            "freed_nodes": [node.type for node in shared[:8]],
            "retain_graph": first.retain_graph,
        },
        fixes=tuple(_fixes(record, first, second)),
        occurrences=Occurrences(first_step=step, last_step=step),
        subject=Subject(facts=(("call", second.call),), moment=second.moment_before),
    )


def _shared_name(record: Record, first: BackwardCall, second: BackwardCall) -> str:
    """What the program calls the last value that both roots were computed from."""
    index = lookup(record)
    both = reaches(record)[first.call].met & reaches(record)[second.call].met
    named = [
        (index.nodes[row.node].seq or 0, index.bindings_of[row.tensor][-1].name)
        for row in record.tensor_nodes
        if row.node in both and index.nodes[row.node].variable is None and index.bindings_of[row.tensor]
    ]
    return f"`{max(named)[1]}`" if named else "its root"


def _advice(record: Record, first: BackwardCall, second: BackwardCall, name: str) -> str:
    if first.site == second.site:
        return "Give the calls before the last one `retain_graph=True`, or compute the shared part again for each."
    if not is_same_turn(record, first, second):
        return f"Detach {name} in the loss that is not to train what made it, or compute it again for the second one."
    if {root.tensor for root in first.roots} == {root.tensor for root in second.roots}:
        return "Call it once; if a second pass is meant, give `retain_graph=True` to the first."
    return "Add the losses and make one backward call."


def _fixes(record: Record, first: BackwardCall, second: BackwardCall) -> Iterator[Fix]:
    if first.site is None or second.site is None or not is_same_turn(record, first, second):
        return
    one, two = site_of(record, first.site), site_of(record, second.site)
    earlier, later = _bare_call(record, one), _bare_call(record, two)
    if earlier is None or later is None or one.source != two.source or one.function != two.function:
        return
    if {root.tensor for root in first.roots} == {root.tensor for root in second.roots}:
        if _is_meant(record, first, second):
            kept = with_keyword(record, one, earlier[1], "retain_graph", "True")
            yield Fix(title="Retain the graph for the second pass", safety="unsafe", edits=(kept,))
        elif (dropped := _without_line(record, two, later[0])) is not None:
            yield Fix(title="Drop the second call", safety="unsafe", edits=(dropped,))
    elif not earlier[1].args + earlier[1].keywords + later[1].args + later[1].keywords:
        roots = [_receiver(record, site, call) for site, (_node, call) in ((one, earlier), (two, later))]
        region = region_in(record, two.source, later[1])
        joined = replacement(record, two, region, f"({roots[0]} + {roots[1]}).backward()")
        dropped = _without_line(record, one, earlier[0])
        if dropped is not None:
            yield Fix(title="Make one backward call over the sum", safety="unsafe", edits=(dropped, joined))


def _is_meant(record: Record, first: BackwardCall, second: BackwardCall) -> bool:
    """The second walk brings something else than the first, which would otherwise only be doubled."""
    given = any(root.gradient_given for root in (*first.roots, *second.roots))
    return given or first.inputs != second.inputs or is_used_between(record, first, second)


def _bare_call(record: Record, site: Site) -> tuple[ast.Expr, ast.Call] | None:
    """`loss.backward(...)` where it is a whole statement."""
    node = statement(record, site)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return (node, node.value) if node.value.func.attr == "backward" else None
    return None


def _receiver(record: Record, site: Site, call: ast.Call) -> str:
    """What `backward` is called on, as written."""
    on = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    return text_in(record, site.source, region_in(record, site.source, on))


def _without_line(record: Record, site: Site, node: ast.Expr) -> Edit | None:
    """Take a statement out with its line; None if it is alone in its block or shares its line."""
    region = region_in(record, site.source, node)
    lines = source_lines(record)[site.source]
    around = tree_of(record, site)
    alone = around is None or any(body == [node] for body in blocks(around.parents.get(node)))
    whole = lines[region.start_line - 1][: region.start_col - 1] + lines[region.end_line - 1][region.end_col - 1 :]
    if alone or (whole.strip() and not whole.lstrip().startswith("#")) or region.end_line >= len(lines):
        return None
    return replacement(
        record, site, Region(start_line=region.start_line, start_col=1, end_line=region.end_line + 1, end_col=1), ""
    )
