"""BP250 hook-modifies-gradient: a hook that records a gradient also returns another one, which takes its place.

What it finds:
    A hook on a tensor that writes down something of the gradient (appends, prints, stores it) and returns a tensor with
    other values than it was given. The finding stands at its `return`.

Why it matters:
    A hook meant for looking changes the training, and nothing raises: everything behind the tensor is trained with the
    clamped, normalised or absolute gradient that was to be shown.

What PyTorch does:
    What a hook of `register_hook` returns replaces the gradient; None leaves it as it is. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    layer, seen = nn.Linear(6, 4), []

    def log_norm(grad):
        shown = grad.clamp(-0.001, 0.001)
        seen.append(shown.norm().item())
        return shown  # <- here

    for _ in range(3):
        hidden = layer(torch.randn(5, 6))
        hidden.register_hook(log_norm)
        hidden.square().mean().backward()

Use instead:
    import torch
    from torch import nn

    layer, seen = nn.Linear(6, 4), []

    def log_norm(grad):
        seen.append(grad.norm().item())

    for _ in range(3):
        hidden = layer(torch.randn(5, 6))
        hidden.register_hook(log_norm)
        hidden.square().mean().backward()

Near miss: a hook that clips, and records nothing
    import torch

    def clipped(grad):
        bound = 0.1
        return grad.clamp(-bound, bound)

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(clipped)
    (weight * 2).sum().backward()

Near miss: the gradient itself is returned
    import torch

    seen = []

    def keep(grad):
        seen.append(grad)
        return grad

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(keep)
    (weight * 2).sum().backward()

Near miss: it counts its calls, which says nothing of the gradient
    import torch

    counts = {"calls": 0}

    def halved(grad):
        counts["calls"] += 1
        return grad * 0.5

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(halved)
    (weight * 2).sum().backward()

Near miss: a part of the gradient is masked in a copy
    import torch

    def masked(grad):
        grad = grad.clone()
        grad[0] = 0
        return grad

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(masked)
    (weight * 2).sum().backward()

Blind spots:
    A hook that clips and logs on purpose looks the same: allow it by a comment. Of a lambda, and of hooks on modules,
    the record does not show what they return.

Source:
    torch.Tensor.register_hook in PyTorch's documentation; observed with torch 2.13. The threshold is one
    call whose norm, sum, least or greatest element differs: a hook either returns other values or it does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.hook_code import (
    Function,
    Returned,
    gradient_name,
    hook_function,
    returned_by_hook,
)
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Hook, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="hook-modifies-gradient",
    code="BP250",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="unsafe",
    needs=("hook", "binding", "stats"),
    explains=("gradient-not-derivative",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per hook function and `return`."""
    found: dict[int, tuple[Hook, Function, list[Returned]]] = {}
    for hook in {row.callable: row for row in reversed(record.hooks) if row.kind == "tensor"}.values():
        function = hook_function(record, hook)
        if function is None or not _records(function):
            continue
        for one in returned_by_hook(record, hook, function):
            if _differs(one):
                found.setdefault(one.site, (hook, function, []))[2].append(one)
    for hook, function, changed in found.values():
        yield _finding(record, hook, function, changed)


def _differs(one: Returned) -> bool:
    before, after = one.before, one.after
    return (before.norm, before.sum, before.min, before.max) != (after.norm, after.sum, after.min, after.max)


def _records(function: Function) -> bool:
    """A statement hands something of the gradient to what outlives the call: a list, a log, an attribute, a global."""
    known = {gradient_name(function)}
    local = {part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and _reads(part.value, known):
            known |= {target.id for target in part.targets if isinstance(target, ast.Name)}
        if isinstance(part, ast.Expr) and _reads(part.value, known) and _root(part.value) not in local | known:
            return True
        if isinstance(part, ast.Assign) and _reads(part.value, known):
            kept = [target for target in part.targets if isinstance(target, ast.Subscript | ast.Attribute)]
            if any(_root(target) not in local | known for target in kept):
                return True
    return False


def _reads(value: ast.expr, known: set[str | None]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in known for part in ast.walk(value))


def _root(value: ast.expr) -> str | None:
    """The name that a path or a call begins with: `seen` of `seen.append(x)`."""
    while isinstance(value, ast.Attribute | ast.Subscript | ast.Call):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else None


def _finding(record: Record, hook: Hook, function: Function, changed: list[Returned]) -> Finding:
    first = changed[0]
    whose = "of a tensor" if hook.tensor is None else f"of `{called(record, hook.tensor)}`"
    site = site_of(record, first.site)
    edits = ()
    if first.statement.value is not None:
        region = region_in(record, site.source, first.statement.value)
        edits = (replacement(record, site, region, "None"),)
    times = f"in {len(changed)} calls" if len(changed) > 1 else "in its only call"
    norms = f"the norm {first.before.norm:.4g} became {first.after.norm:.4g}"
    return told(
        record,
        RULE,
        first.site,
        (
            f"`{function.name}` records the gradient {whose}, and what it returns takes that gradient's place.",
            f"It returned other values {times} (one is enough): {norms}.",
            "Return nothing, if the hook is only to look.",
        ),
        binding=function.name,
        moments=[one.moment for one in changed],
        related=(("registered here", hook.site),),
        evidence={
            "hook": hook.callable,
            "norm_before": first.before.norm,
            "norm_after": first.after.norm,
            "calls": len(changed),
        },
        fixes=(Fix(title="Leave the gradient as it is", safety="unsafe", edits=edits),),
        tensors=() if hook.tensor is None else (hook.tensor,),
    )
