"""BP401 inplace-on-saved: a tensor that a node had saved for backward was changed in place before it was used.

What it finds:
    A backward call raised because a tensor it needed is no longer what it was in the forward pass. The finding stands
    at the statement that changed it last; related are the statement whose node had saved it, every other change with
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.expressions import outermost, replacement, symbol_of
from backprobe.rules.finding import Edit, Finding, Fix, Occurrences, Related, rule_name
from backprobe.rules.lookup import lookup
from backprobe.rules.places import location
from backprobe.rules.raised import level_of, raised_as
from backprobe.rules.reach import reaches
from backprobe.rules.rule import Rule
from backprobe.rules.steps import step_of
from backprobe.rules.syntax import region_in, site_of, statement, text_in, value_of

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, InplaceEvent, Raised, Record, Saved, Site

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changed:
    """A saved tensor, and the changes since: at least one, in order."""

    saved: Saved
    changes: list[InplaceEvent]


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that met a saved tensor of another version."""
    for raised in raised_as(record, "changed-in-place"):
        call = lookup(record).calls.get(raised.call) if raised.call is not None else None
        if call is None:
            continue
        changed = _needed(record, call, raised)
        at = changed.changes[-1].site if changed is not None else None
        at = at if at is not None else call.site
        if changed is not None and at is not None:
            yield _finding(record, call, raised, changed, site_of(record, at))


def _needed(record: Record, call: BackwardCall, raised: Raised) -> _Changed | None:
    """The saved tensor that the exception speaks of: its versions are those that torch names."""
    expected, seen = _fact(raised, "expected_version"), _fact(raised, "version")
    every = [saved for node in sorted(reaches(record)[call.call].met) for saved in lookup(record).saved_of[node]]
    found: list[_Changed] = []
    for saved in every:
        since = saved.version if saved.version is not None else expected
        changes = [] if since is None else _changes(record, call, saved, since)
        if not changes or (expected is not None and since != expected):
            continue
        if seen is not None and changes[-1].version_after != seen:
            continue
        found.append(_Changed(saved=saved, changes=changes))
    # Of several saved tensors with these versions the node that runs first raised; sequence numbers run backwards.
    order = {node.node: node.seq or 0 for node in record.nodes}
    shape = raised.facts.get("shape")
    found.sort(key=lambda one: (_shape_text(one.saved) != shape, -order[one.saved.node]))
    return found[0] if found else None


def _shape_text(saved: Saved) -> str:
    return ", ".join(map(str, saved.shape))


def _fact(raised: Raised, name: str) -> int | None:
    text = raised.facts.get(name, "")
    return int(text) if text.isdecimal() else None


def _changes(record: Record, call: BackwardCall, saved: Saved, since: int) -> list[InplaceEvent]:
    """What changed this memory after the node had saved it and before the call; views share versions."""
    index = lookup(record)
    storage = saved.storage
    if storage is None and saved.tensor is not None:
        storage = index.tensors[saved.tensor].storage
    found: dict[int, InplaceEvent] = {}
    for event in record.inplace_events:
        same = event.tensor == saved.tensor or (storage is not None and index.tensors[event.tensor].storage == storage)
        if same and event.version_after > since and event.moment <= call.moment_before:
            found.setdefault(event.version_after, event)
    return [found[version] for version in sorted(found)]


def _finding(record: Record, call: BackwardCall, raised: Raised, changed: _Changed, site: Site) -> Finding:
    index = lookup(record)
    last = changed.changes[-1]
    name = _name(record, changed)
    saver = index.nodes[changed.saved.node]
    step = step_of(record, call.moment_before)
    how = "an optimizer step" if last.done_by == "optimizer" else _how(record, site)
    return Finding(
        rule=rule_name(RULE),
        level=level_of(record, raised),
        confidence=RULE.confidence,
        message=f"{how[0].upper()}{how[1:]} changes {name} in place, and the backward pass needs the old values.\n"
        f"`{saver.type}` saved it at version {changed.changes[0].version_before}; it is at version "
        f"{last.version_after} when the backward call comes.\n{_advice(last)}",
        location=location(record, site.site),
        related=tuple(_story(record, call, changed, name)),
        evidence={
            "binding": name.strip("`"),
            "tensor": last.tensor,
            "saved_by": saver.type,
            "saved_version": changed.changes[0].version_before,
            "version": last.version_after,
            "changes": len(changed.changes),
            "call": call.call,
        },
        fixes=tuple(_fixes(record, changed.changes)),
        occurrences=Occurrences(first_step=step, last_step=step),
    )


def _name(record: Record, changed: _Changed) -> str:
    """What the program calls the tensor: its own name, else its key, else the name of an alias."""
    index = lookup(record)
    tensors = [number for number in (changed.saved.tensor, *(e.tensor for e in changed.changes)) if number is not None]
    for tensor in tensors:
        if index.tensors[tensor].fqn is not None:
            return f"`{index.tensors[tensor].fqn}`"
    for tensor in tensors:
        if index.bindings_of[tensor]:
            return f"`{index.bindings_of[tensor][0].name}`"
    return "a saved tensor"


def _how(record: Record, site: Site) -> str:
    node = statement(record, site)
    if isinstance(node, ast.AugAssign):
        symbol = symbol_of(node.op)
        return f"`{symbol}=`" if symbol else "this statement"
    if isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
        return "this store"
    return outermost(value_of(node))


def _advice(last: InplaceEvent) -> str:
    if last.done_by == "optimizer":
        return "Compute the loss after the step, or step after the backward call."
    return "Write the result to a new tensor."


def _story(record: Record, call: BackwardCall, changed: _Changed, name: str) -> Iterator[Related]:
    saver = lookup(record).nodes[changed.saved.node]
    if saver.site is not None:
        yield Related(message=f"`{saver.type}` saved {name} here", location=location(record, saver.site))
    for event in changed.changes[-MAX_CHANGES:]:
        if event.site is not None:
            versions = f"version {event.version_before} became {event.version_after} here"
            yield Related(message=versions, location=location(record, event.site))
    if call.site is not None:
        yield Related(message="raised here", location=location(record, call.site))


def _fixes(record: Record, changes: list[InplaceEvent]) -> Iterator[Fix]:
    """Every change made out of place; none where one of them cannot be."""
    sites = [event.site for event in changes if event.done_by == "statement"]
    edits = [_out_of_place(record, site_of(record, site)) for site in dict.fromkeys(sites) if site is not None]
    found = [edit for edit in edits if edit is not None]
    if found and len(found) == len(changes):
        yield Fix(title="Make a new tensor", safety="safe", edits=tuple(found))


def _out_of_place(record: Record, site: Site) -> Edit | None:
    """`y += 1` as `y = y + 1`, `y.mul_(2)` as `y = y.mul(2)`; None where the statement is neither of a plain name."""
    node = statement(record, site)
    text = None
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and symbol_of(node.op):
        right = text_in(record, site.source, region_in(record, site.source, node.value))
        right = right if isinstance(node.value, ast.Name | ast.Constant | ast.Call | ast.Attribute) else f"({right})"
        text = f"{node.target.id} = {node.target.id} {symbol_of(node.op)} {right}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        text = _method_out_of_place(record, site, node.value)
    return (
        None if node is None or text is None else replacement(record, site, region_in(record, site.source, node), text)
    )


def _method_out_of_place(record: Record, site: Site, call: ast.Call) -> str | None:
    if not (isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
        return None
    name, method = call.func.value.id, call.func.attr.removesuffix("_")
    if method == call.func.attr or method not in OUT_OF_PLACE:
        return None
    whole = text_in(record, site.source, region_in(record, site.source, call))
    return f"{name} = {name}.{method}{whole[whole.index('(', len(name)) :]}"


OUT_OF_PLACE: Final = frozenset(
    [
        "abs",
        "add",
        "addcdiv",
        "addcmul",
        "ceil",
        "clamp",
        "clamp_max",
        "clamp_min",
        "cos",
        "div",
        "exp",
        "floor",
        "log",
        "masked_fill",
        "mul",
        "neg",
        "pow",
        "reciprocal",
        "relu",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
        "softmax",
        "sqrt",
        "square",
        "sub",
        "tanh",
        "tril",
        "triu",
        "trunc",
    ]
)
"""Methods that torch has with and without the underscore, and that give the same values."""
