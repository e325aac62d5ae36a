"""BP253 hook-result-dropped: a hook computes another gradient from the one that it is given, and returns nothing.

What it finds:
    A function that is a hook of a tensor binds a local name to a tensor of the gradient's shape, computed from the
    gradient. Nothing reads that name afterwards, nothing is written into the gradient, and the function has no
    `return` with a value. The finding stands at the last such statement.

Why it matters:
    The program reads as if the gradient were masked, scaled or clipped. The backward call hands on the old one.

What PyTorch does:
    What a hook of `register_hook` returns replaces the gradient; None leaves it as it is. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    layer = nn.Linear(4, 3)
    mask = (layer.weight.detach() > 0).float()

    def masked(grad):
        grad = grad * mask  # <- here

    layer.weight.register_hook(masked)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    layer = nn.Linear(4, 3)
    mask = (layer.weight.detach() > 0).float()

    def masked(grad):
        return grad * mask

    layer.weight.register_hook(masked)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        layer(x).square().mean().backward()
        optimizer.step()

Near miss: a hook that logs what it computes
    import torch

    seen = []

    def log(grad):
        scaled = grad / 2
        seen.append(scaled.norm().item())

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(log)
    (weight * 2).sum().backward()

Near miss: a hook that writes into the gradient
    import torch

    def halve(grad):
        grad.mul_(0.5)
        doubled = grad * 2

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(halve)
    (weight * 2).sum().backward()

Near miss: a hook that reads the result in the same line
    import torch

    seen = []

    def log(grad):
        scaled = grad / 2; seen.append(scaled.norm().item())

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(log)
    (weight * 2).sum().backward()

Near miss: a hook that keeps all its names
    import torch

    kept = {}

    def keep(grad):
        scaled = grad / 2
        kept.update(locals())

    weight = torch.ones(3, requires_grad=True)
    weight.register_hook(keep)
    (weight * 2).sum().backward()

Blind spots:
    Hooks of modules, and hooks that return a value in one of their branches.

Source:
    torch.Tensor.register_hook in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.hook_code import Function, gradient_name, hook_function
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.custom_functions import returns
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import number_at, region_in, site_of, text_in
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Hook, Operation, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="hook-result-dropped",
    code="BP253",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="unsafe",
    needs=("hook", "binding", "backward"),
)

_READ_ALL: Final = frozenset({"locals", "vars", "eval", "exec", "sys._getframe", "inspect.currentframe"})
"""What may read each local name of the function that calls it."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per hook function."""
    for hook in {row.callable: row for row in reversed(record.hooks) if row.kind == "tensor"}.values():
        function = hook_function(record, hook)
        if function is None or hook.replaced_gradient or any(_has_value(node) for node in returns(function)):
            continue
        given = _gradients_of_calls(record, hook, function)
        if any(event.tensor in given and event.done_by == "statement" for event in record.inplace_events):
            continue
        for node in reversed([part for part in ast.walk(function) if isinstance(part, ast.Assign)]):
            rows = _computed(record, node, given)
            if rows and _is_dropped(function, node):
                yield _finding(record, hook, function, node, rows)
                break


def _has_value(node: ast.Return) -> bool:
    return node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)


def _gradients_of_calls(record: Record, hook: Hook, function: Function) -> frozenset[int]:
    """Return the gradients that the function was called with."""
    rows = bindings_named(record)[gradient_name(function) or ""]
    sites = lookup(record).sites
    return frozenset(row.tensor for row in rows if row.function == hook.callable and sites[row.site].kind == "enter")


def _computed(record: Record, node: ast.Assign, given: frozenset[int]) -> list[Operation]:
    """Return the operations of a statement that made a tensor of a gradient, in the gradient's shape."""
    number, tensors = number_at(record, node), lookup(record).tensors
    return [
        row
        for row in record.operations
        if row.statement == number and row.tensor is not None and row.tensor not in row.operands
        and any(tensors[operand].shape == tensors[row.tensor].shape for operand in given.intersection(row.operands))
    ]  # fmt: skip


def _is_dropped(function: Function, node: ast.Assign) -> bool:
    """The statement binds one local name, outside of loops, and nothing behind it reads or writes the name."""
    target = node.targets[0]
    if len(node.targets) > 1 or not isinstance(target, ast.Name):
        return False
    end = (node.end_lineno or 0, node.end_col_offset or 0)
    for part in ast.walk(function):
        if isinstance(part, ast.Global | ast.Nonlocal) and target.id in part.names:
            return False
        if isinstance(part, ast.For | ast.While) and node in ast.walk(part):
            return False
        if isinstance(part, ast.Name) and part.id == target.id and (part.lineno, part.col_offset) > end:
            return False
        if isinstance(part, ast.Call) and ast.unparse(part.func) in _READ_ALL:
            return False
        if isinstance(part, ast.Lambda | Function) and part is not function and target.id in _names(part):
            return False
    return True


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _finding(record: Record, hook: Hook, function: Function, node: ast.Assign, rows: list[Operation]) -> Finding:
    number = rows[0].statement
    site = site_of(record, number)
    target = ast.unparse(node.targets[0])
    whose = "of a tensor" if hook.tensor is None else f"of `{called(record, hook.tensor)}`"
    return told(
        record,
        RULE,
        number,
        (
            f"`{function.name}` computes `{target}` from the gradient {whose}, and returns nothing.",
            "Nothing reads the result: the gradient that is handed on is the old one.",
            "Return the result, if it is to replace the gradient.",
        ),
        binding=target,
        moments=[row.moment for row in rows if row.moment is not None] or [0],
        related=(("registered here", hook.site),),
        evidence={"hook": hook.callable, "calls": len(rows), "assumed": "the result is meant to be used"},
        fixes=_fixes(record, site, function, node),
        tensors=() if hook.tensor is None else (hook.tensor,),
    )


def _fixes(record: Record, site: Site, function: Function, node: ast.Assign) -> Iterator[Fix]:
    """`return ...` in place of the assignment, where it is the last statement."""
    if function.body[-1] is node:
        value = text_in(record, site.source, region_in(record, site.source, node.value))
        edit = replacement(record, site, region_in(record, site.source, node), f"return {value}")
        yield Fix(title="Return the result", safety="unsafe", edits=(edit,))
