"""BP322 root-without-history: nothing that the root was computed from ever required grad.

What it finds:
    A backward call raised because its root has no history, and the record shows no tensor above it that ever required
    grad. The finding stands at that call; related are the tensors that the root was computed from. Or a function that
    makes a loss and walks it was called inside a caller's `no_grad`: it stands at that `with`.

Why it matters:
    The program stops. Somewhere the tensor to be trained was made without `requires_grad=True`, or all parameters were
    frozen.

What PyTorch does:
    A result requires grad if one of its operands does. A root that does not is refused: `RuntimeError: element 0 of
    tensors does not require grad and does not have a grad_fn`. The message is the same where a history was cut off on
    the way, by `detach()`, `no_grad` or `item()`: other rules name those. Seen in torch 2.13.

Example:
    import torch

    weight = torch.zeros(3)
    x, y = torch.ones(5, 3), torch.ones(5)
    loss = (x @ weight - y).pow(2).mean()
    loss.backward()  # <- here

Use instead:
    import torch

    weight = torch.zeros(3, requires_grad=True)
    x, y = torch.ones(5, 3), torch.ones(5)
    loss = (x @ weight - y).pow(2).mean()
    loss.backward()

Near miss: the root is a leaf itself
    import torch

    offset = torch.tensor(2.0, requires_grad=True)
    offset.backward()
    print(offset.grad)

Near miss: one operand is enough
    import torch

    weight = torch.zeros(3, requires_grad=True)
    x = torch.ones(5, 3)
    (x @ weight).sum().backward()

Blind spots:
    A root made inside a library from tensors that have no name is not told: BP901 speaks of it.

Source:
    torch.Tensor.requires_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.cuts import cut_above, rooted_in
from backprobe.rules.analysis.graph.roots import RaisedCall, raised_calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import parts_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.training.grad_modes import off_around_walk
from backprobe.rules.framework.finding import Finding
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Mode, Record

RULE = Rule(
    name="root-without-history",
    code="BP322",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "backward", "parents"),
)


CUTTING: Final = frozenset({"detach", "detach_", "data", "item", "numpy", "tolist", "argmax", "argmin", "argsort"})
"""Attributes that end a history, where the tensor before them has no name."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call whose root never had a history."""
    for one in raised_calls(record, "no-history"):
        off = off_around_walk(record, one.raised, one.site.site)
        if off is not None and off.site is not None:
            yield _walked_without_mode(record, one, off, off.site)
            continue
        roots = rooted_in(record, one.call)
        above = _ancestors(record, roots)
        hidden = _may_hide_a_cut(record, one, above)
        if above and not hidden and not _was_cut(record, above, one.call.moment_before):
            yield _finding(record, one, roots, above)


def _walked_without_mode(record: Record, one: RaisedCall, off: Mode, around: int) -> Finding:
    """A function that makes a loss and walks it, called while gradients are off."""
    name = next((row.name for row in one.call.roots if row.name), None) or "the root"
    advice = "Call it outside; or open `torch.enable_grad()` where it needs gradients."
    if off.kind == "inference":  # where `enable_grad` has no effect
        advice = "Call it outside; or use `torch.no_grad()` here, and `torch.enable_grad()` where it needs gradients."
    return told(
        record,
        RULE,
        around,
        (
            f"Gradients are off from here on, and `{one.site.function.rpartition('.')[2]}` walks `{name}` back inside.",
            "Nothing that is computed there has a history, so the backward call raises.",
            advice,
        ),
        binding=name,
        moments=[one.call.moment_before],
        related=(("this backward call raises", one.site.site),),
        evidence={"call": one.call.call, "grad_mode": False},
        tensors=[row.tensor for row in one.call.roots if row.tensor is not None],
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )


def _ancestors(record: Record, roots: frozenset[int]) -> dict[int, None]:
    """The roots and all that they were computed from, nearest first."""
    index = lookup(record)
    found: dict[int, None] = {}
    waiting = sorted(roots)
    while waiting:
        tensor = waiting.pop(0)
        if tensor not in found:
            found[tensor] = None
            waiting += [parent for row in index.bindings_of[tensor] for parent in row.parents]
    return found


def _may_hide_a_cut(record: Record, one: RaisedCall, above: dict[int, None]) -> bool:
    """A statement on the way has a cut among values without a name, flags one of them, or runs without tracking."""
    index = lookup(record)
    sites = {row.site for tensor in above for row in index.bindings_of[tensor]} | {one.site.site}
    moments = [row.moment for tensor in above for row in index.bindings_of[tensor]] + [one.call.moment_before]
    if not all(index.moments[moment].grad_mode and not index.moments[moment].inference_mode for moment in moments):
        return True
    parts = [part for site in sites for part in parts_of(statement(record, index.sites[site]))]
    if any(isinstance(part, ast.keyword) and part.arg == "requires_grad" for part in parts):
        return True
    return any(isinstance(part, ast.Attribute) and part.attr in CUTTING for part in parts)


def _was_cut(record: Record, above: dict[int, None], until: int) -> bool:
    """Something above the root required grad, or what lost its history on the way, or a module with such parameters."""
    index = lookup(record)
    if any(state.requires_grad for tensor in above for state in index.snapshots_of[tensor]):
        return True
    if any(cut_above(record, tensor) is not None for tensor in above):
        return True
    sites = {row.site for tensor in above for row in index.bindings_of[tensor]}
    ran = {row.module for row in record.module_calls if row.site in sites}
    if any(row.training for row in record.module_calls if row.site in sites):
        ran |= {row.module for row in record.modules}
    trainable = (row.requires_grad for module in record.modules if module.module in ran for row in module.parameters)
    return any(trainable) or any(
        not index.moments[row.moment].grad_mode and any(state.requires_grad for state in index.snapshots_of[row.tensor])
        for row in record.bindings
        if row.site in sites and row.moment <= until
    )


def _finding(record: Record, one: RaisedCall, roots: frozenset[int], above: dict[int, None]) -> Finding:
    index = lookup(record)
    name = next((row.name for row in one.call.roots if row.name), None) or called(record, min(roots))
    sources = [
        tensor
        for tensor in above
        if tensor not in roots
        and not any(row.parents for row in index.bindings_of[tensor])
        and index.tensors[tensor].dtype.startswith(("float", "bfloat", "complex"))
    ]
    named = [called(record, tensor) for tensor in sources]
    told_of = ", ".join(f"`{one}`" for one in named[:4])
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"`{name}` has no history: none of the tensors that it was computed from requires grad.",
            f"It was computed from {told_of}." if named else "It was computed from constants.",
            "Make the one to be trained with `requires_grad=True`, before it is used.",
        ),
        binding=name,
        moments=[one.call.moment_before],
        related=[
            (f"`{called(record, tensor)}` does not require grad", index.tensors[tensor].site) for tensor in sources[:4]
        ],
        evidence={"call": one.call.call, "computed_from": named[:8]},
        tensors=sorted(roots),
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )
