"""BP302 graph-carried-across-steps: a tensor of one turn brings its graph, freed by then, into the next one.

What it finds:
    A backward call raised because its root was computed from a tensor of the turn before: a hidden state, a running
    average, a sum of losses. The finding stands at the statement that takes that tensor in; where an object kept it
    from one turn to the next, at the statement that put it there; where that is the function of a bank or queue, at the
    argument that it is fed with. Related are where it was made and the backward call that raised.

Why it matters:
    The program stops in its second turn. With `retain_graph=True`, which the message of torch suggests, it runs, but
    each backward call walks all turns before it: slower each time, until memory ends.

What PyTorch does:
    The carried tensor keeps the node that made it, and that node the whole graph of its turn. A backward call walks
    through it into what the earlier call freed, and raises `RuntimeError: Trying to backward through the graph a second
    time`. Seen in torch 2.13.

Example:
    import torch

    cell = torch.nn.GRUCell(2, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = torch.zeros(4, 3)
    for x in torch.ones(3, 4, 2):
        state = cell(x, state)  # <- here
        loss = state.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch

    cell = torch.nn.GRUCell(2, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    state = torch.zeros(4, 3)
    for x in torch.ones(3, 4, 2):
        state = cell(x, state.detach())
        loss = state.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the state is carried inside one turn only
    import torch

    cell = torch.nn.GRUCell(2, 3)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    for sequence in torch.ones(3, 5, 4, 2):
        state = torch.zeros(4, 3)
        for x in sequence:
            state = cell(x, state)
        optimizer.zero_grad()
        state.pow(2).mean().backward()
        optimizer.step()

Near miss: what is carried saved nothing
    import torch

    weight = torch.ones(3, requires_grad=True)
    carried = weight + 1
    for _ in range(3):
        carried = carried + weight
        carried.sum().backward()
        weight.grad = None

Blind spots:
    A tensor that was never bound to a name, such as a value kept in a dict, is not followed: BP301 then gives the call
    that raised. Where `retain_graph=True` hides the error, BP306 is to see the growth.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.handed_arguments import Handed, handed_in
from backprobe.rules.analysis.graph.carried_graphs import Carried, WalkedAgain, walked_again
from backprobe.rules.analysis.graph.detaching_edits import handed_without
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.assignments import last_assigned
from backprobe.rules.analysis.source.expressions import line_before, replacement
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import (
    parts_of,
    region_in,
    site_at,
    site_of,
    statement,
    statement_at,
    tree_of,
    value_of,
)
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.terms.term_sources import trained_by
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Edit, Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site

RULE = Rule(
    name="graph-carried-across-steps",
    code="BP302",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "backward", "node", "binding"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that walked into the graph of the turn before."""
    for again in walked_again(record):
        if again.cause == "carried" and again.carried is not None and again.carried.site is not None:
            yield _finding(record, again, again.carried, site_of(record, again.carried.site))


def _finding(record: Record, again: WalkedAgain, carried: Carried, site: Site) -> Finding:
    made = lookup(record).bindings_of[carried.tensor][0].site
    holder = _optimizer_of(record, carried)
    is_cut_elsewhere = holder is not None or _learns_only_so(record, again, carried)
    edit = None if is_cut_elsewhere else _before_its_loop(record, again, carried, site)
    story = f"`{carried.name}` comes here from before the last backward call, and brings its graph with it."
    advice = f"Use `{carried.name}.detach()` here: the value goes on, its history ends."
    if holder is not None:
        advice = (
            f"`{optimizer_name(record, holder)}` has the first `{carried.name}`, which this name leaves: write the new "
            f"value into it, `{carried.name}.copy_(...)` under `torch.no_grad()`."
        )
    elif carried.kept is not None:
        story, advice = _of_kept(record, carried, carried.kept, site)
    at = site if carried.kept is None else site_of(record, carried.kept)
    handed = None if holder is not None else _handed(record, carried, at)
    if handed is not None:
        advice = f"Hand in `{handed.text}.detach()`: what is kept then has no history."
        edit = None if handed.beside else handed_without(record, handed, ".detach()")
    place = at.site if handed is None else handed.site.site
    return told(
        record,
        RULE,
        place,
        (story, _why(record, again, place), advice),
        binding=carried.name,
        moments=[again.second.moment_before],
        related=(
            (
                f"`{carried.name}` was made here, before that backward call",
                None if made in (site.site, carried.kept) else made,
            ),
            ("it is kept here", None if handed is None else at.site),
            ("it goes into the next backward call from here", None if carried.kept is None else site.site),
            (_raises(again), again.second.site),
        ),
        evidence={
            "tensor": carried.tensor,
            "call": again.second.call,
            "walked_by_call": again.first.call,
            "nodes": [lookup(record).nodes[node].type for node in again.nodes[:8]],
        },
        fixes=[] if edit is None else [Fix(title="Cut the history off", safety="unsafe", edits=(edit,))],
        tensors=[carried.tensor],
        calls=[again.second.call],
        level=level_of(record, again.raised),
    )


def _handed(record: Record, carried: Carried, at: Site) -> Handed | None:
    """Of a bank or queue that a function keeps in an attribute: the one tracked argument that it is fed with.

    The function puts that beside or into what it kept before, and is right for what has no history. One that runs a
    module there makes history of its own.
    """
    held = {name.partition("[")[0] for name in (carried.name, *at.targets)}
    made = _statements_of(record, at)
    reads = {name for one in made for name in one.reads}
    if not any("." in name and name in reads for name in held) or any(
        call.site == one.site for call in record.module_calls for one in made
    ):
        return None
    rows = bindings_named(record)
    tracked = (
        name
        for name in sorted(reads)
        if any(
            row.function == at.function and (state := state_at(record, row.tensor, row.moment)) and state.requires_grad
            for row in rows[name]
        )
    )
    found = [one for name in tracked if (one := handed_in(record, at, name)) is not None]
    return found[0] if len(found) == 1 else None


def _statements_of(record: Record, at: Site, depth: int = 3) -> list[Site]:
    """A statement, and those before it that gave the names in it their values: `old = 0.5 * self.rows`."""
    tree, found = tree_of(record, at), [at]
    for part in parts_of(value_of(statement(record, at))) if depth > 0 else ():
        given = last_assigned(record, tree, part) if tree is not None and isinstance(part, ast.Name) else None
        row = None if given is None else site_at(record, given)
        found += [] if row is None else _statements_of(record, row, depth - 1)
    return found


def _optimizer_of(record: Record, carried: Carried) -> int | None:
    """The optimizer that holds what the name stood for at first."""
    rows = bindings_named(record)[carried.name]
    found = in_optimizers(record).get(rows[0].tensor) if rows else None
    return found[0] if found else None


def _of_kept(record: Record, carried: Carried, kept: int, site: Site) -> tuple[str, str]:
    """What is said of a value that one statement keeps in an object, and another one takes out in the next turn."""
    row = site_of(record, kept)
    bound = {one.name.split("[")[0] for one in lookup(record).bindings_of[carried.tensor] if one.site == kept}
    held = next((name for one in row.targets if (name := one.split("[")[0]) in bound), carried.name)
    words = line_words(record, site.site, kept)
    call = "the next backward call"
    where = f" for {call}" if site.site == kept else f", and {words} brings it into {call}"
    story = f"`{held}` keeps the graph of what is computed here{where}."
    return story, f"Keep `.detach()` of the value, or reset `{held}`: once for each backward call, not more often."


def _raises(again: WalkedAgain) -> str:
    is_same = again.first.site == again.second.site
    return "this backward call raises when it runs again" if is_same else "this backward call raises"


def _why(record: Record, again: WalkedAgain, told_at: int) -> str:
    at = "" if again.first.site is None else f" at {line_words(record, again.first.site, told_at)}"
    if again.first.retain_graph:
        return f"The backward call{at} walks that graph again, over weights that a step has changed since, and raises."
    return f"The backward call{at} has freed that graph; the next one walks into it and raises."


def _learns_only_so(record: Record, again: WalkedAgain, carried: Carried) -> bool:
    """What made it gets no gradient in its own turn: cut off from the next one it would learn nothing."""
    return not trained_by(record, carried.tensor) <= reaches(record)[again.first.call].leaves


def _before_its_loop(record: Record, again: WalkedAgain, carried: Carried, site: Site) -> Edit | None:
    """`h = h.detach()` before the loop over the parts of one turn, where a loop reads it; else where it is read.

    Cut off at each part, the graph of a turn would be one part long.
    """
    node, tree, call = statement(record, site), tree_of(record, site), statement_at(record, again.second.site)
    if node is None or tree is None or call is None or not carried.name.isidentifier():
        return detached(record, site, carried)
    around = [one for one in tree.ancestors(node) if isinstance(one, ast.For | ast.While | ast.FunctionDef)]
    inner = list(takewhile(lambda one: call not in ast.walk(one) and not isinstance(one, ast.FunctionDef), around))
    if not inner or len(inner) == len(around) or isinstance(around[len(inner)], ast.FunctionDef):
        return detached(record, site, carried)
    return line_before(record, site, inner[-1], f"{carried.name} = {carried.name}.detach()")


def detached(record: Record, site: Site, carried: Carried) -> Edit | None:
    """`state` as `state.detach()` where the statement reads it once; a line above it where the name holds a tuple."""
    node = statement(record, site)
    value = value_of(node)
    if node is None or value is None or isinstance(node, ast.AugAssign):
        return None
    name = carried.name
    bound = lookup(record).bindings_of[carried.tensor]
    if any(row.name.startswith(f"{name}[") for row in bound):
        text = f"if {name} is not None:\n{' ' * (site.col + 3)}{name} = tuple(part.detach() for part in {name})"
        return line_before(record, site, node, text)
    reads = [part for part in ast.walk(value) if isinstance(part, ast.expr) and ast.unparse(part) == name]
    bound_so = bindings_named(record)[name]
    if len(reads) != 1 or not bound_so or bound_so[0].tensor == carried.tensor:
        return None
    return replacement(record, site, region_in(record, site.source, reads[0]), f"{name}.detach()")
