"""BP111 parameter-lost-on-move: an attribute of a module is the result of an operation on a Parameter, not a Parameter.

What it finds:
    `self.w = nn.Parameter(t).to(device)`, or any other operation behind `nn.Parameter`: the module holds the computed
    tensor, and the Parameter belongs to nobody. The finding stands at that assignment.

Why it matters:
    The tensor is in no `parameters()`, so no optimizer trains it, and in no `state_dict`, so it is never saved. Nothing
    raises: gradients flow through it into a leaf that has no name.

What PyTorch does:
    A module registers what is assigned to it if that is a Parameter. `.to()`, `*` and all other operations give a plain
    tensor; `.to()` gives back the Parameter itself only where nothing has to change. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    class Codebook(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(10, 4)).to(torch.float64)  # <- here
            self.scale = nn.Parameter(torch.ones(1, dtype=torch.float64))

        def forward(self, ids):
            return self.table[ids] * self.scale

    book = Codebook()
    optimizer = torch.optim.SGD(book.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        book(torch.tensor([1, 2])).square().sum().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    class Codebook(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(10, 4).to(torch.float64))
            self.scale = nn.Parameter(torch.ones(1, dtype=torch.float64))

        def forward(self, ids):
            return self.table[ids] * self.scale

    book = Codebook()
    optimizer = torch.optim.SGD(book.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        book(torch.tensor([1, 2])).square().sum().backward()
        optimizer.step()

Near miss: a value that is derived in the forward pass
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.log_scale = nn.Parameter(torch.zeros(4))

        def forward(self, rows):
            self.scale = self.log_scale.exp()
            return rows * self.scale

    net = Scaled()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).square().sum().backward()
        optimizer.step()

Near miss: the move changes nothing, and gives the Parameter back
    import torch
    from torch import nn

    class Shift(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(4)).to("cpu")

        def forward(self, rows):
            return rows + self.shift

    net = Shift()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(2, 4)).square().sum().backward()
        optimizer.step()

Blind spots:
    It takes a backward call through the tensor to see what it was made from.

Source:
    torch.nn.Module and torch.nn.Parameter in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import outermost, replacement
from backprobe.rules.analysis.source.syntax import (
    method_called,
    parts_of,
    region_in,
    site_of,
    statement,
    text_in,
    value_of,
)
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="parameter-lost-on-move",
    code="BP111",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("module", "binding", "snapshot", "node", "optimizer"),
    explains=("parameters-not-in-optimizer",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per attribute."""
    classes = {row.cls.rpartition(".")[2] for row in record.modules if row.user_code}
    found: dict[tuple[int, str], list[tuple[Binding, int]]] = {}
    for binding in record.bindings:
        owner = binding.function.rpartition(".")[0].rpartition(".")[2]
        if binding.name.startswith("self.") and owner in classes:
            leaf = _lost(record, binding.tensor)
            if leaf is not None:
                found.setdefault((binding.site, binding.name), []).append((binding, leaf))
    for some in found.values():
        yield _finding(record, some)


def _lost(record: Record, tensor: int) -> int | None:
    """The only leaf that a computed tensor comes from: a Parameter without a name, an owner or an optimizer."""
    index = lookup(record)
    made = index.node_of.get(tensor)
    behind = frozenset[int]() if made is None else leaves_behind(record, made.node)
    if len(behind) != 1:
        return None
    (leaf,) = behind
    row = index.tensors[leaf]
    is_nobodys = row.cls == "Parameter" and row.fqn is None and leaf not in in_optimizers(record)
    return leaf if is_nobodys else None


def _finding(record: Record, some: list[tuple[Binding, int]]) -> Finding:
    binding, leaf = some[0]
    site = site_of(record, binding.site)
    how = outermost(value_of(statement(record, site)))
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{binding.name}` holds what {how} made of a Parameter: a plain tensor; the Parameter is nobody's.",
            "The module does not register it: no optimizer trains it, and no `state_dict` saves it.",
            "Make the tensor as it is to be, and wrap it in `nn.Parameter` last.",
        ),
        binding=binding.name,
        moments=[one.moment for one, _leaf in some],
        evidence={"is_leaf": False, "parameter": leaf, "made_by": lookup(record).tensors[binding.tensor].created_how},
        fixes=tuple(_fixes(record, site)),
        tensors=[leaf for _binding, leaf in some],
    )


def _fixes(record: Record, site: Site) -> Iterator[Fix]:
    """`nn.Parameter(t).to(d)` as `nn.Parameter(t.to(d))`."""
    value = value_of(statement(record, site))
    wrapped = [one for one in parts_of(value) if isinstance(one, ast.Call) and method_called(one) == "Parameter"]
    if value is None or len(wrapped) != 1 or not wrapped[0].args:
        return
    whole, call, inner = (
        text_in(record, site.source, region_in(record, site.source, one))
        for one in (value, wrapped[0], wrapped[0].args[0])
    )
    inner = f"({inner})" if isinstance(wrapped[0].args[0], ast.BinOp | ast.UnaryOp) else inner
    text = f"{ast.unparse(wrapped[0].func)}({whole.replace(call, inner)})"
    edit = replacement(record, site, region_in(record, site.source, value), text)
    yield Fix(title="Wrap it last", safety="unsafe", edits=(edit,))
