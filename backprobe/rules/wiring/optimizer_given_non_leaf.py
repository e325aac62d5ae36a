"""BP704 optimizer-given-non-leaf: an optimizer was given the result of an operation instead of a leaf.

What it finds:
    The constructor of an optimizer raised "can't optimize a non-leaf Tensor": the tensor was computed from another one
    that requires grad.

Why it matters:
    The program stops. An optimizer changes values in place; the next forward pass would compute this one anew.

What PyTorch does:
    Each tensor in an optimizer's groups must be a leaf, or retain its gradient. Gradients are stored in leaves only.
    Seen in torch 2.13.

Example:
    import torch

    start = torch.randn(3, requires_grad=True)
    image = start * 0.1
    optimizer = torch.optim.SGD([image], lr=0.1)  # <- here

Use instead:
    import torch

    start = torch.randn(3, requires_grad=True)
    optimizer = torch.optim.SGD([start], lr=0.1)

Near miss: the value is made a leaf of its own
    import torch

    start = torch.randn(3, requires_grad=True)
    image = (start * 0.1).detach().requires_grad_()
    optimizer = torch.optim.SGD([image], lr=0.1)

Near miss: the program catches the exception
    import torch

    start = torch.randn(3, requires_grad=True)
    image = start * 0.1
    try:
        optimizer = torch.optim.SGD([image], lr=0.1)
    except ValueError as error:
        print(error)

Blind spots:
    Where the list names no variable, as in `[f() for f in ...]`, the tensor is not named.

Source:
    torch.optim.Optimizer.add_param_group in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.optimizers.parameter_lists import optimizer_call, parameters_argument
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Binding, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="optimizer-given-non-leaf",
    code="BP704",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per constructor that raised."""
    for raised in record.raised:
        if raised.family == "optimizer-of-non-leaf" and raised.site is not None:
            yield _finding(record, raised, raised.site)


def _finding(record: Record, raised: Raised, number: int) -> Finding:
    site = site_of(record, number)
    call = optimizer_call(record, site)
    argument = None if call is None else parameters_argument(call)
    given = None if argument is None else _given(record, argument, raised.moment or 0, site.function)
    given = given or _kept_in_object(record, raised.moment or 0, site.function)
    what = "One of the tensors" if given is None else f"`{given.name}`"
    made = None if given is None else lookup(record).tensors[given.tensor]
    came = (
        "it was computed from another tensor"
        if made is None
        else f"it is the result of an operation{_how(made.created_how)}"
    )
    leaf = None if given is None else _leaf(record, given, site.function)
    born = _born(record, given, site.function) if given is not None and leaf is None else None
    instead = "the tensor that it was computed from" if leaf is None else f"`{leaf}`"
    region = None if argument is None or born is not None else region_in(record, site.source, argument)
    return told(
        record,
        RULE,
        number if born is None else born,
        (
            f"{what} is no leaf: {came}, and an optimizer can only hold leaves.",
            "A step would change a value that the next forward pass computes again.",
            f"Give it {instead}, or make a leaf of it: `.detach().requires_grad_()`.",
        ),
        binding=given.name if given is not None else "",
        moments=[raised.moment or 0],
        region=region,
        related=_related(given, number, born),
        evidence={"raised": raised.message, "leaf": leaf},
        tensors=() if given is None else (given.tensor,),
        level=level_of(record, raised),
    )


def _related(given: Binding | None, number: int, born: int | None) -> tuple[tuple[str, int | None], ...]:
    if born is not None:
        return (("the optimizer is given it here", number),)
    return () if given is None else ((f"`{given.name}` is computed here", given.site),)


def _born(record: Record, given: Binding, function: str) -> int | None:
    """Where it was computed from a leaf that no name in sight holds, `torch.randn(3, requires_grad=True) * 0.1`.

    There is no other tensor that the optimizer could be given, so that expression is to be changed.
    """
    row = lookup(record).tensors[given.tensor]
    leaves = _leaves(record, given.tensor)
    if not leaves or any(_names_in_sight(record, one, function) for one in leaves):
        return None
    return given.site if row.site is None else row.site


def _names_in_sight(record: Record, leaf: int, function: str) -> list[str]:
    """The names of a leaf that the function which builds the optimizer can read: not those of a helper's own."""
    rows = lookup(record).bindings_of[leaf]
    return [row.name for row in rows if row.function in (function, "<module>") or "." in row.name]


def _leaves(record: Record, tensor: int) -> frozenset[int]:
    made = lookup(record).node_of.get(tensor)
    return frozenset() if made is None else leaves_behind(record, made.node)


def _kept_in_object(record: Record, moment: int, function: str) -> Binding | None:
    """An attribute that held a result of such a leaf then: `self.u`, behind `model.parameters()`."""
    for row in record.bindings:
        if row.moment <= moment and "." in row.name and lookup(record).tensors[row.tensor].fqn is None:
            state = state_at(record, row.tensor, moment)
            is_result = state is not None and not state.is_leaf and state.requires_grad
            if is_result and _born(record, row, function) is not None:
                return row
    return None


def _how(created: str) -> str:
    return f" (`{created}`)" if created.endswith(tuple("0123456789")) else ""


def _given(record: Record, argument: ast.expr, moment: int, function: str) -> Binding | None:
    """The name in the argument that held a tensor which is no leaf."""
    for part in ast.walk(argument):
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
            rows = [
                row
                for row in bindings_named(record)[ast.unparse(part)]
                if row.moment <= moment and row.function in (function, "<module>")
            ]
            state = state_at(record, rows[-1].tensor, moment) if rows else None
            if state is not None and not state.is_leaf:
                return rows[-1]
    return None


def _leaf(record: Record, given: Binding, function: str) -> str | None:
    """The name of the one leaf that requires grad and that the tensor was computed from, where it is in sight."""
    leaves: set[str] = set()
    for parent in given.parents:
        state = state_at(record, parent, given.moment)
        bound = _names_in_sight(record, parent, function)
        if state is not None and state.is_leaf and state.requires_grad and bound:
            leaves.add(bound[-1])
    return leaves.pop() if len(leaves) == 1 else None
