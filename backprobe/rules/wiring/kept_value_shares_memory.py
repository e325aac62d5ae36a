"""BP753 kept-value-shares-memory: an older value of a parameter is kept without a copy, and compared or put back later.

What it finds:
    A statement keeps `weight.detach()`, `p.data` or the parameter itself under a name. An optimizer steps, and then the
    program takes the difference of the two, or copies the kept one back. Both are one memory.
    Or a list takes in a value turn by turn, a state, a weight, a state dict, that is one memory each time, written in
    between.

Why it matters:
    The change of the weights is always zero, the distance to the starting point too, and the best weights that are put
    back are the last ones.

What PyTorch does:
    `detach()`, `data`, views and `numpy()` share memory with their tensor; an optimizer writes into that memory. Only
    `clone()` and `copy.deepcopy` copy. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        before = model.weight.detach()  # <- here
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        print((model.weight - before).norm().item())

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        before = model.weight.detach().clone()
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        print((model.weight - before).norm().item())

Near miss: the value is taken after the step
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    start = model.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        now = model.weight.detach()
        print((now - start).norm().item())

Near miss: it is only shown
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    weight = model.weight.data
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        print(weight.norm().item())

Blind spots:
    Values that are compared element by element in Python, or by functions of one's own without a difference, are not
    followed, nor what a dict keeps by key. A whole `state_dict` that is loaded back is told by BP751.

Source:
    torch.Tensor.detach in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement_at, tree_of, value_of
from backprobe.rules.analysis.training.overwritten_values import Overwritten, overwritten_values
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import updates_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="kept-value-shares-memory",
    code="BP753",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("binding", "optimizer", "grad-life", "version"),
)

_COMPARE: Final = frozenset({"-", "sub", "subtract", "dist", "allclose", "equal", "mse_loss", "copy_", "l1_loss"})
"""Functions that give zero, true or no change where both of their tensors are one memory."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that kept a value."""
    found: dict[int, list[tuple[Binding, Operation, int]]] = {}
    for row in record.operations:
        if row.function.rpartition(".")[2] in _COMPARE and len(row.operands) == 2 and row.moment is not None:
            kept = _kept(record, row)
            if kept is not None:
                found.setdefault(kept[0].site, []).append((kept[0], row, kept[1]))
    for site, rows in found.items():
        yield _finding(record, site, rows)
    for one in overwritten_values(record):
        yield _of_container(record, one)


@table
def _by_memory(record: Record) -> dict[int, list[int]]:
    """The trained parameters by memory."""
    found: dict[int, list[int]] = {}
    for row in record.tensors:
        if row.storage is not None and row.tensor in in_optimizers(record) and row.view_of is None:
            found.setdefault(row.storage, []).append(row.tensor)
    return found


def _kept(record: Record, row: Operation) -> tuple[Binding, int] | None:
    """The binding of the older value that an operation was given, and its parameter; None where there is none."""
    tensors = [lookup(record).tensors[one] for one in row.operands]
    first, other = tensors
    same = first.storage is not None and first.storage == other.storage
    if not same or first.shape != other.shape or first.storage_offset != other.storage_offset:
        return None
    for parameter in _by_memory(record).get(first.storage or 0, ()):
        for one in row.operands:
            if one == parameter or lookup(record).tensors[one].role == "gradient":
                continue
            bound = [b for b in lookup(record).bindings_of[one] if b.moment <= (row.moment or 0)]
            if bound and _moved_since(record, bound[0], parameter, row.moment or 0):
                return bound[0], parameter
    return None


def _moved_since(record: Record, bound: Binding, parameter: int, until: int) -> bool:
    """An update changed the parameter after the value was kept; of a value kept under an `if`, since the first time."""
    tree, node = tree_of(record, site_of(record, bound.site)), statement_at(record, bound.site)
    if node is None or tree is None or not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    chosen = any(isinstance(one, ast.If) for one in tree.ancestors(node))
    since = _first_runs(record)[bound.site] if chosen else bound.moment
    return any(since < update.moment <= until for update in updates_of(record).get(parameter, ()))


@table
def _first_runs(record: Record) -> dict[int, int]:
    """The first moment at which a statement bound anything, by statement."""
    return {row.site: row.moment for row in reversed(record.bindings)}


def _of_container(record: Record, one: Overwritten) -> Finding:
    """At the write, where it is arithmetic of the program; else where the memory was taken without a copy."""
    site, text = _place(record, one), f"`{one.kept}`"
    wrote = one.writes[0]
    where = () if wrote.site == site else (("here it is changed in place", wrote.site),)
    return told(
        record,
        RULE,
        site,
        (
            f"`{one.container}` keeps {text} in each iteration, always in one memory: it is changed in place.",
            "All that was kept holds the last values.",
            "Keep a copy, as `.clone()` or `copy.deepcopy` gives it, or make a new tensor instead of the change.",
        ),
        binding=one.kept,
        moments=sorted({event.moment for event in one.writes}),
        related=(*where, ("here it is kept", None if one.site == site else one.site)),
        evidence={"container": one.container, "kept": one.kept, "overwritten": len(one.writes)},
        tensors=one.tensors[:16],
    )


def _place(record: Record, one: Overwritten) -> int:
    wrote = {event.site for event in one.writes if event.done_by == "statement"}
    node = statement_at(record, one.writes[0].site) if len(wrote) == 1 else None
    if isinstance(node, ast.AugAssign) and one.writes[0].site is not None:
        return one.writes[0].site
    return one.site if one.taken is None else one.taken


def _finding(record: Record, site: int, rows: list[tuple[Binding, Operation, int]]) -> Finding:
    bound, used, parameter = rows[0]
    name, back = bound.name.partition("[")[0], used.function.endswith("copy_")
    effect = "What is copied back is what the parameter holds by then." if back else "Their difference is always zero."
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` shares its memory with {together(record, [parameter])}: it moves with every step.",
            effect,
            "Copy it: `.detach().clone()`.",
        ),
        binding=name,
        moments=sorted({row.moment for row, _used, _parameter in rows}),
        related=(("both are used here", used.statement),),
        evidence={"parameter": parameter, "uses": len(rows), "function": used.function},
        fixes=_fixes(record, site),
        tensors=sorted({one for _row, _used, one in rows}),
    )


def _fixes(record: Record, number: int) -> Iterator[Fix]:
    """`.clone()` behind a value that ends in `.detach()` or `.data`, or behind the element of a comprehension."""
    site, value = site_of(record, number), value_of(statement_at(record, number))
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        value = value.elt
    elif isinstance(value, ast.DictComp):
        value = value.value
    ends = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "detach"
    if value is not None and (ends or (isinstance(value, ast.Attribute) and value.attr == "data")):
        region = region_in(record, site.source, value)
        edit = insertion(record, site, region.end_line, region.end_col, ".clone()")
        yield Fix(title="Copy the value", safety="unsafe", edits=(edit,))
