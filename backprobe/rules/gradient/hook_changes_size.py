"""BP251 hook-changes-size: a hook returns a gradient of another size, type, dtype or device.

What it finds:
    A backward call raised because what a hook returned cannot take the place of the gradient that it was given. The
    finding stands at the hook's `return`.

Why it matters:
    The program stops in the backward call, and the traceback shows neither the hook nor its line.

What PyTorch does:
    What a hook of `register_hook` returns replaces the gradient and must be like it; otherwise torch raises "hook has
    changed the size of value". None leaves the gradient as it is. Seen in torch 2.13.

Example:
    import torch

    rows = []

    def keep_flat(grad):
        rows.append(grad.flatten())
        return grad.flatten()  # <- here

    weight = torch.ones(2, 3, requires_grad=True)
    weight.register_hook(keep_flat)
    (weight * 2).sum().backward()

Use instead:
    import torch

    rows = []

    def keep_flat(grad):
        rows.append(grad.flatten())

    weight = torch.ones(2, 3, requires_grad=True)
    weight.register_hook(keep_flat)
    (weight * 2).sum().backward()

Near miss: the gradient is scaled in its shape
    import torch

    weight = torch.ones(2, 3, requires_grad=True)
    weight.register_hook(lambda grad: grad * 0.5)
    (weight * 2).sum().backward()

Blind spots:
    Of two hooks with one name the one whose tensor the backward call met is told; a hook of a library is left out.

Source:
    torch.Tensor.register_hook in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.hook_code import hook_function, hook_lambda
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.custom_functions import returns
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import number_at, region_in, site_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Hook, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="hook-changes-size",
    code="BP251",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "hook", "node"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "hook-changed-shape"):
        hook = _running(record, raised)
        if hook is not None:
            yield from _finding(record, raised, hook)


def _running(record: Record, raised: Raised) -> Hook | None:
    """The hook of that name on a tensor of the failing call; of several the one registered last."""
    name = raised.facts.get("hook", "")
    named = [row for row in record.hooks if row.kind == "tensor" and row.callable.rpartition(".")[2] == name]
    met = reaches(record)[raised.call] if raised.call is not None else None
    index = lookup(record)
    here = [
        row
        for row in named
        if row.tensor is not None
        and met is not None
        and (row.tensor in met.leaves or ((made := index.node_of.get(row.tensor)) is not None and made.node in met.met))
    ]
    return (here or named or [None])[-1]


def _finding(record: Record, raised: Raised, hook: Hook) -> Iterator[Finding]:
    function, anonymous = hook_function(record, hook), hook_lambda(record, hook)
    every = [one for one in returns(function) if not isinstance(one.value, ast.Constant)]
    value = every[-1].value if every else anonymous.body if anonymous is not None else None
    site = number_at(record, every[-1]) if every else hook.callable_site
    if value is None or site is None:
        return
    place = site_of(record, site)
    region = region_in(record, place.source, every[-1] if every else value)
    whose = "a tensor" if hook.tensor is None else f"`{called(record, hook.tensor)}`"
    changed = next(
        (what for what in ("size", "dtype", "device", "type") if f"changed the {what}" in raised.message), "kind"
    )
    name = "This lambda" if anonymous is not None else f"`{hook.callable.rpartition('.')[2]}`"
    yield told(
        record,
        RULE,
        site,
        (
            f"{name}, a hook on {whose}, returns a gradient of another {changed}.",
            "What a hook returns takes the gradient's place and must be like it; the backward call raises.",
            "Return nothing, if the hook is only to look; else a tensor like the one that it was given.",
        ),
        binding=hook.callable,
        moments=[raised.moment or 0],
        region=region,
        related=(("registered here", hook.site), ("raised here", raised.site)),
        evidence={"hook": hook.callable, "changed": changed},
        fixes=(
            Fix(
                title="Leave the gradient as it is",
                safety="unsafe",
                edits=(replacement(record, place, region_in(record, place.source, value), "None"),),
            ),
        ),
        level=level_of(record, raised),
    )
