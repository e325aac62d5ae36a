"""BP760 parametrization-bypassed: the computed weight of a parametrised layer is written in place, which is lost.

What it finds:
    An in-place method, or a function of `nn.init`, was given the weight of a layer that has a parametrisation, or its
    `.data`: a tensor that was computed for this one access.

Why it matters:
    The layer keeps the weights that it was made with: the initialisation is lost, and nothing raises.

What PyTorch does:
    `layer.weight` of a parametrised layer computes the weight anew from `parametrizations.weight.original` each time it
    is read. What is written to the result goes nowhere. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.nn.utils.parametrizations import spectral_norm

    layer = spectral_norm(nn.Linear(4, 3))
    layer.weight.data.normal_(0.0, 0.02)  # <- here
    layer(torch.randn(2, 4)).sum().backward()

Use instead:
    import torch
    from torch import nn
    from torch.nn.utils.parametrizations import spectral_norm

    layer = nn.Linear(4, 3)
    layer.weight.data.normal_(0.0, 0.02)
    layer = spectral_norm(layer)
    layer(torch.randn(2, 4)).sum().backward()

Near miss: the original is written
    import torch
    from torch import nn
    from torch.nn.utils.parametrizations import weight_norm

    layer = weight_norm(nn.Linear(4, 3))
    nn.init.normal_(layer.parametrizations.weight.original1)
    layer(torch.randn(2, 4)).sum().backward()

Near miss: a copy of the weight is changed
    import torch
    from torch import nn
    from torch.nn.utils.parametrizations import spectral_norm

    layer = spectral_norm(nn.Linear(4, 3))
    copied = layer.weight.detach().clone()
    copied.data.mul_(2.0)
    layer(torch.randn(2, 4)).sum().backward()

Blind spots:
    The older `torch.nn.utils.weight_norm` and `spectral_norm`, which work by hooks, are not judged.

Source:
    torch.nn.utils.parametrize in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="parametrization-bypassed",
    code="BP760",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("module",),
)

_LIST: Final = "ParametrizationList"


def check(record: Record) -> Iterator[Finding]:
    """One finding per call in the program."""
    found: dict[tuple[int, str], tuple[ast.Attribute, list[Operation]]] = {}
    for row in record.operations if _parametrised(record) else ():
        written = _written(record, row) if row.function.endswith("_") else None
        if written is not None and _is_computed(record, row):
            key = (row.statement, ast.unparse(written))
            found.setdefault(key, (written, []))[1].append(row)
    for written, rows in found.values():
        yield _finding(record, written, rows)


@table
def _parametrised(record: Record) -> frozenset[str]:
    """The names of what parametrisations compute: `weight` of `0.parametrizations.weight`."""
    return frozenset((row.fqn or "").rpartition(".")[2] for row in record.modules if row.cls == _LIST)


@table
def _operations(record: Record) -> dict[int, Operation]:
    return {row.operation: row for row in record.operations}


def _written(record: Record, row: Operation) -> ast.Attribute | None:
    """The attribute that is written, `layer.weight`, as method or function: what a parametrisation computes."""
    site = site_of(record, row.statement)
    for part in ast.walk(statement(record, site) or ast.Pass()):
        if not isinstance(part, ast.Call):
            continue
        region = region_in(record, site.source, part)
        name = part.func.attr if isinstance(part.func, ast.Attribute) else ""
        if (region.start_line, region.start_col) != (row.line, row.col) or not row.function.endswith(name or " "):
            continue
        target: ast.expr | None = part.args[0] if part.args and ".init." in f".{row.function}" else None
        if target is None and isinstance(part.func, ast.Attribute):
            target = part.func.value
        if isinstance(target, ast.Attribute) and target.attr == "data":
            target = target.value
        return target if isinstance(target, ast.Attribute) and target.attr in _parametrised(record) else None
    return None


def _is_computed(record: Record, row: Operation) -> bool:
    """What is written is no parameter and no buffer, and no name ever held it."""
    index = lookup(record)
    below = [_operations(record)[one] for one in row.inner if one in _operations(record)]
    tensors = [*row.operands[:1], *(tensor for one in below for tensor in one.operands[:1])]
    rows = [index.tensors[tensor] for tensor in tensors]
    return bool(rows) and all(
        one.role is None and one.cls == "Tensor" and not index.bindings_of[one.tensor] for one in rows
    )


def _finding(record: Record, written: ast.Attribute, rows: list[Operation]) -> Finding:
    name = ast.unparse(written)
    held = f"{ast.unparse(written.value)}.parametrizations.{written.attr}.original"
    return told(
        record,
        RULE,
        rows[0].statement,
        (
            f"`{name}` is computed again each time it is read: what is written to it here is lost.",
            "The layer keeps the weights that it was made with.",
            f"Write to `{held}`, or initialise the layer before it is parametrised.",
        ),
        binding=name,
        moments=[row.moment or 0 for row in rows],
        evidence={"written": name, "times": len(rows)},
    )
