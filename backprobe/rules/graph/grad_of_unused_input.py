"""BP323 grad-of-unused-input: a gradient is asked for by a tensor that the root was not computed from.

What it finds:
    `autograd.grad` raised because one of its inputs does not lead to the root. Mostly that input is a view or a copy,
    made of the right tensor beside the forward pass. The finding stands at the call, or at that of the function which
    differentiates by what it is handed; related is where the input was made, and the tensor that did go in.

Why it matters:
    The program stops. With `allow_unused=True` it would go on with None, or with zeros: a term of the loss that trains
    nothing.

What PyTorch does:
    `x[:, 1]` is a new tensor with `x` as its history. The root was computed from `x`; the new tensor is none of its
    operands: `RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph`. Seen in
    torch 2.13.

Example:
    import torch

    points = torch.ones(4, 2, requires_grad=True)
    value = points.pow(3).sum()
    time = points[:, 1]
    (slope,) = torch.autograd.grad(value, time)  # <- here

Use instead:
    import torch

    points = torch.ones(4, 2, requires_grad=True)
    value = points.pow(3).sum()
    (slopes,) = torch.autograd.grad(value, points)
    slope = slopes[:, 1]

Near miss: the slice went in
    import torch

    points = torch.ones(4, 2, requires_grad=True)
    time = points[:, 1]
    value = time.pow(3).sum() + points[:, 0].sum()
    (slope,) = torch.autograd.grad(value, time)

Near miss: the program says that it may be unused
    import torch

    points = torch.ones(4, 2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    grads = torch.autograd.grad(points.pow(3).sum(), [points, other], allow_unused=True)

Blind spots:
    `allow_unused=True` on an input that was meant to be used is not seen.

Source:
    torch.autograd.grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.calling_statements import statement_calling
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.roots import RaisedCall, input_expressions, raised_calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.naming import called, capital
from backprobe.rules.analysis.source.scopes import Function, parameters_of, scope_of
from backprobe.rules.analysis.source.syntax import region_in, statement, tree_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Root, Site

RULE = Rule(
    name="grad-of-unused-input",
    code="BP323",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "backward", "node"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per call that raised over an input that its root does not depend on."""
    for one in raised_calls(record, "unused-input"):
        inputs = one.call.inputs or ()
        told_at = one.raised.facts.get("index", "")
        at = int(told_at) if told_at.isdecimal() else 0
        if at < len(inputs) and not _is_met(record, one, inputs[at]):
            yield _finding(record, one, inputs[at], at)


def _is_met(record: Record, one: RaisedCall, asked: Root) -> bool:
    """The walk of this call came to the node that made the tensor, or to the leaf itself."""
    reach, made = reaches(record)[one.call.call], lookup(record).node_of.get(asked.tensor or -1)
    return asked.tensor in reach.leaves or (made is not None and made.node in reach.met)


def _handed_at(record: Record, one: RaisedCall, name: str) -> Site | None:
    """The call of a function that differentiates by what it is handed: it is right for another input."""
    node, tree = statement(record, one.site), tree_of(record, one.site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if not isinstance(function, Function) or name not in parameters_of(function):
        return None
    return statement_calling(record, one.site.site, one.call.moment_before)


def _finding(record: Record, one: RaisedCall, asked: Root, at: int) -> Finding:
    index = lookup(record)
    expressions = input_expressions(one.asked)
    written = ast.unparse(expressions[at]) if at < len(expressions) else None
    name = asked.name or written or f"input {at}"
    root = next((row.name for row in one.call.roots if row.name), None)
    output = f"`{root}`" if root else "the root"
    went_in = _went_in(record, one, asked)
    source = None if went_in is None else called(record, went_in)
    made = None if asked.tensor is None else index.tensors[asked.tensor].site
    how = f"it was made from `{source}` beside the forward pass" if source else "nothing that was computed from it is"
    advice = (
        f"Differentiate by `{source}`, which went in, and take the part of the result; or use `{name}` in the forward "
        "pass."
        if source
        else f"Use `{name}` in the forward pass; or say `allow_unused=True` if it may be left out."
    )
    fixes: list[Fix] = []
    # a helper that is given the input knows no name of its caller's
    here = {row.function for row in index.bindings_of[went_in]} if went_in is not None else set[str]()
    if source is not None and at < len(expressions) and one.site.function in here:
        edit = replacement(record, one.site, region_in(record, one.site.source, expressions[at]), source)
        fixes = [Fix(title=f"Differentiate by `{source}`", safety="unsafe", edits=(edit,))]
    outer = None
    if at < len(expressions) and isinstance(expressions[at], ast.Name) and not fixes:
        outer = _handed_at(record, one, written or "")
    return told(
        record,
        RULE,
        one.site.site if outer is None else outer.site,
        (
            f"{capital(output)} was not computed from `{name}`: {how}{'' if source else ' in it'}.",
            "So there is no gradient by it, and torch raises.",
            advice,
        ),
        binding=name,
        moments=[one.call.moment_before],
        related=(
            ("it is differentiated here", None if outer is None else one.site.site),
            (f"`{name}` was made here", None if made == one.site.site else made),
        ),
        evidence={"input": at, "call": one.call.call, "root": root, "went_in": source},
        fixes=fixes,
        tensors=[] if asked.tensor is None else [asked.tensor],
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )


def _went_in(record: Record, one: RaisedCall, asked: Root) -> int | None:
    """The tensor above the input that the call's walk does meet: its base, or what it was computed from."""
    index = lookup(record)
    reach = reaches(record)[one.call.call]
    waiting = [asked.tensor] if asked.tensor is not None else []
    seen: set[int] = set()
    while waiting:
        tensor = waiting.pop(0)
        if tensor in seen:
            continue
        seen.add(tensor)
        made = index.node_of.get(tensor)
        if tensor != asked.tensor and (tensor in reach.leaves or (made is not None and made.node in reach.met)):
            return tensor if index.bindings_of[tensor] or index.tensors[tensor].fqn else None
        base = index.tensors[tensor].view_of
        waiting += [] if base is None else [base]
        waiting += [parent for row in index.bindings_of[tensor] for parent in row.parents]
    return None
