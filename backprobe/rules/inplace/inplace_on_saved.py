"""BP401 inplace-on-saved: a tensor that a node had saved for backward was changed in place before it was used.

What it finds:
    A backward call raised because a tensor it needed is no longer what it was in the forward pass. The finding stands
    at the statement that changed it first; related are the statement whose node had saved it, every other change with
    the versions it made, and the backward call.

Why it matters:
    The program stops, and the message of torch names neither the tensor nor the line. Where the same change happens
    to a tensor that nothing saved, it is harmless: so the line alone does not show the mistake.

What PyTorch does:
    A node keeps the tensors that its derivative needs, with their `_version`. Each in-place change raises the version
    of the tensor and of all its views. If the numbers differ when the node runs, it raises `RuntimeError: one of the
    variables needed for gradient computation has been modified by an inplace operation`. Sigmoid, tanh, exp and softmax
    save their output; a product saves its factors. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(3, requires_grad=True)
    gate = torch.sigmoid(x)
    gate.mul_(2.0)  # <- here
    gate.sum().backward()

Use instead:
    import torch

    x = torch.ones(3, requires_grad=True)
    gate = torch.sigmoid(x)
    gate = gate.mul(2.0)
    gate.sum().backward()

Near miss: nothing saved the tensor
    import torch

    x = torch.ones(3, requires_grad=True)
    shifted = x + 1
    shifted.mul_(2.0)
    shifted.sum().backward()

Near miss: the change comes after the backward call
    import torch

    x = torch.ones(3, requires_grad=True)
    gate = torch.sigmoid(x)
    gate.sum().backward()
    with torch.no_grad():
        gate.mul_(2.0)

Near miss: a copy is changed
    import torch

    x = torch.ones(3, requires_grad=True)
    gate = torch.sigmoid(x)
    shown = gate.clone()
    shown.mul_(2.0)
    (gate.sum() + shown.sum()).backward()

Near miss: the optimizer steps between forward passes
    import torch

    layer = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.ones(2, 3)).sum().backward()
        optimizer.step()

Near miss: the program catches the exception
    import torch

    x = torch.ones(3, requires_grad=True)
    gate = torch.sigmoid(x)
    gate.mul_(2.0)
    try:
        gate.sum().backward()
    except RuntimeError as error:
        print(error)

Blind spots:
    A write through `.data` or NumPy raises no version and no error: BP411 is to see it by the values. A tensor that the
    record does not know by name is told by its shape and its versions only where those leave one candidate.

Source:
    "In-place correctness checks" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import outermost, symbol_of
from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of, value_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.saved_changes import SavedChange, saved_changes, saved_name
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.edits.out_of_place import out_of_place
from backprobe.rules.framework.finding import Finding, Fix, Location, Occurrences, Subject, rule_name
from backprobe.rules.framework.finding_builder import joined
from backprobe.rules.framework.locations import location
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record, Site

RULE = Rule(
    name="inplace-on-saved",
    code="BP401",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "saved", "version"),
)

MAX_CHANGES: Final = 6
"""Changes that are told one by one."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that met a saved tensor of another version; steps of the training are BP402's."""
    for change in saved_changes(record):
        first = next((one for one in change.changes if one.site is not None), change.last)
        site = first.site if first.site is not None else change.call.site
        if not change.by_update and site is not None:
            yield _finding(record, change, site_of(record, site))


def _finding(record: Record, changed: SavedChange, site: Site) -> Finding:
    index = lookup(record)
    last, call = changed.last, changed.call
    name = saved_name(record, changed)
    saver = index.nodes[changed.saved.node]
    step = step_of(record, call.moment_before)
    how = _how(record, site)
    return Finding(
        rule=rule_name(RULE),
        level=level_of(record, changed.raised),
        confidence=RULE.confidence,
        message=f"{how[0].upper()}{how[1:]} changes {name} in place, and the backward pass needs the old values.\n"
        f"`{saver.type}` saved it at version {changed.changes[0].version_before}; it is at version "
        f"{last.version_after} when the backward call comes.\nWrite the result to a new tensor.",
        location=location(record, site.site),
        related=joined(location(record, site.site), _story(record, changed)),
        evidence={
            "binding": name.strip("`"),
            "tensor": last.tensor,
            "saved_by": saver.type,
            "saved_version": changed.changes[0].version_before,
            "version": last.version_after,
            "changes": len(changed.changes),
            "call": call.call,
        },
        fixes=tuple(_fixes(record, changed)),
        occurrences=Occurrences(first_step=step, last_step=step),
        subject=Subject(facts=(("call", call.call),), moment=last.moment),
    )


def _how(record: Record, site: Site) -> str:
    node = statement(record, site)
    if isinstance(node, ast.AugAssign):
        symbol = symbol_of(node.op)
        return f"`{symbol}=`" if symbol else "this statement"
    if isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
        return "this store"
    return outermost(value_of(node))


def _story(record: Record, changed: SavedChange) -> Iterator[tuple[str, Location]]:
    saver = lookup(record).nodes[changed.saved.node]
    if saver.site is not None:
        saved = saved_name(record, changed, saver.site)
        yield f"`{saver.type}` saved {saved} here", location(record, saver.site)
    for event in changed.changes[-MAX_CHANGES:]:
        if event.site is not None:
            versions = f"version {event.version_before} became {event.version_after} here"
            yield versions, location(record, event.site)
    if changed.call.site is not None:
        yield "raised here", location(record, changed.call.site)


def _fixes(record: Record, changed: SavedChange) -> Iterator[Fix]:
    """Every change made out of place; none where one of them cannot be."""
    sites = [event.site for event in changed.changes if event.done_by == "statement"]
    edits = [out_of_place(record, site_of(record, site)) for site in dict.fromkeys(sites) if site is not None]
    found = [edit for edit in edits if edit is not None]
    if found and len(found) == len(changed.changes):
        is_shared = any(_is_read_under_other_name(record, event) for event in changed.changes)
        yield Fix(title="Make a new tensor", safety="unsafe" if is_shared else "safe", edits=tuple(found))


def _is_read_under_other_name(record: Record, event: InplaceEvent) -> bool:
    """`out = x`, then `out += block(x)` in a loop: with a new tensor in `out`, `x` keeps its old values."""
    if event.site is None:
        return False
    site = site_of(record, event.site)
    node, tree, index = statement(record, site), tree_of(record, site), lookup(record)
    if node is None or tree is None:
        return False
    rows = index.bindings_of[event.tensor]
    names = {row.name for row in rows if index.sites[row.site].function == site.function}
    loops = [one for one in tree.ancestors(node) if isinstance(one, ast.For | ast.While | ast.FunctionDef)]
    first = loops[0].lineno if loops and not isinstance(loops[0], ast.FunctionDef) else node.lineno + 1
    around = next((one for one in loops if isinstance(one, ast.FunctionDef)), tree.module)
    reads = (one for one in ast.walk(around) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    return any(one.id in names - _written(node) and one.lineno >= first for one in reads)


def _written(node: ast.stmt) -> set[str]:
    """The plain name that a statement changes in place."""
    target = node.target if isinstance(node, ast.AugAssign) else value_of(node)
    if isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute):
        target = target.func.value
    return {target.id} if isinstance(target, ast.Name) else set()
