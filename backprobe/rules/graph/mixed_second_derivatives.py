"""BP345 mixed-second-derivatives: all first derivatives are summed before they are differentiated once more.

What it finds:
    A gradient by an input with several coordinates is differentiated whole, as a sum or with ones, by the same input,
    and the network mixes the coordinates.

Why it matters:
    What comes back at a coordinate is the sum of a row of the Hessian: u_xx + u_xy, not u_xx. A Laplacian, or the
    residual of a differential equation, that is made of it is another one.

What PyTorch does:
    `autograd.grad` gives the gradient of the sum of what it is handed; a vector-Jacobian product, no diagonal. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    points = torch.rand(20, 2, requires_grad=True)
    first = torch.autograd.grad(field(points).sum(), points, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), points, create_graph=True)[0]  # <- here
    second.sum(1).pow(2).mean().backward()

Use instead:
    import torch
    from torch import nn

    field = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    points = torch.rand(20, 2, requires_grad=True)
    first = torch.autograd.grad(field(points).sum(), points, create_graph=True)[0]
    second = [torch.autograd.grad(first[:, i].sum(), points, create_graph=True)[0][:, i] for i in range(2)]
    sum(second).pow(2).mean().backward()

Near miss: one coordinate
    import torch
    from torch import nn

    field = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    points = torch.rand(20, 1, requires_grad=True)
    first = torch.autograd.grad(field(points).sum(), points, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), points, create_graph=True)[0]
    second.pow(2).mean().backward()

Near miss: element by element, nothing is mixed
    import torch

    x = torch.linspace(0, 1, 6, requires_grad=True)
    first = torch.autograd.grad(torch.sin(3 * x).sum(), x, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), x)[0]
    assert second.shape == x.shape

Near miss: a network that takes one value at a time
    import torch
    from torch import nn

    torch.manual_seed(0)
    field = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    times = torch.rand(6, 5, requires_grad=True)
    values = field(times.unsqueeze(-1)).squeeze(-1)
    first = torch.autograd.grad(values.sum(), times, create_graph=True)[0]
    second = torch.autograd.grad(first.sum(), times, create_graph=True)[0]
    (second + values).pow(2).mean().backward()

Near miss: a random direction, whose product with the Hessian estimates the trace
    import torch
    from torch import nn

    torch.manual_seed(0)
    field = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 1))
    points = torch.randn(20, 3, requires_grad=True)
    score = torch.autograd.grad(field(points).sum(), points, create_graph=True)[0]
    way = torch.randint(0, 2, points.shape).float() * 2 - 1
    turned = torch.autograd.grad(score, points, grad_outputs=way, create_graph=True)[0]
    ((turned * way).sum(1) + 0.5 * score.pow(2).sum(1)).mean().backward()

Blind spots:
    A product of the Hessian with ones that is meant as such.

Source:
    Autograd mechanics in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.input_gradients import InputGradient, input_gradients
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.walks import node_of, op
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="mixed-second-derivatives",
    code="BP345",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("backward", "node", "binding"),
)

_MIXES: Final = frozenset({"Addmm", "Mm", "Bmm", "Baddbmm", "Linear"})
"""Products of matrices: each coordinate that goes in meets all others."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    first = {one.tensor: one for one in input_gradients(record) if one.tensor is not None}
    found: dict[int, list[InputGradient]] = {}
    for one in input_gradients(record):
        before = None if one.root is None else first.get(one.root)
        if before is None or before.by != one.by or one.call.site is None:
            continue
        shape = lookup(record).tensors[one.by].shape
        if shape is None or len(shape) < 2 or shape[-1] < 2 or shape[0] < 2:
            continue
        if _mixes(record, before, prod(shape)) and _is_summed(record, one):
            found.setdefault(one.call.site, []).append(one)
    for site, rows in found.items():
        yield _finding(record, site, rows)


def _mixes(record: Record, first: InputGradient, elements: int) -> bool:
    """Between the input and what was differentiated lies a product of matrices that takes several elements in a row.

    Where it has one row for each element of the input the network was applied to each by itself.
    """
    met = reaches(record)[first.call.call].met if first.call.call in reaches(record) else ()
    nodes = (lookup(record).nodes[node] for node in met)
    return any(
        op(node) in _MIXES and bool(node.outputs) and prod(node.outputs[0].shape[:-1]) < elements for node in nodes
    )


def _is_summed(record: Record, one: InputGradient) -> bool:
    """Each first derivative went in with the same weight: no random or chosen direction."""
    made = None if one.root is None else node_of(record, one.root)
    rows = [] if made is None else lookup(record).passes_of_node[made]
    stats = next((row.grad_output for row in rows if row.call == one.call.call), None)
    return stats is not None and stats.min is not None and stats.min == stats.max


def _finding(record: Record, site: int, rows: list[InputGradient]) -> Finding:
    one = rows[0]
    shape: tuple[int, ...] = lookup(record).tensors[one.by].shape or (0,)
    name = next((row.name for row in one.call.inputs or () if row.name), "the input")
    root = lookup(record).bindings_of[one.root] if one.root is not None else []
    what = f"`{root[-1].name}`" if root else "the gradient"
    row = site_of(record, site)
    return told(
        record,
        RULE,
        site,
        (
            f"{what} holds the {shape[-1]} first derivatives by `{name}`, and is differentiated as one sum.",
            "What comes back at a coordinate is a row of the Hessian summed: mixed derivatives count as well.",
            "Differentiate one column at a time, and keep that column: `grad(first[:, i].sum(), x)[0][:, i]`.",
        ),
        binding=row.targets[0] if row.targets else "",
        moments=[each.call.moment_before for each in rows],
        related=(("the first derivatives are taken here", next(iter(_first_site(record, one)), None)),),
        evidence={"coordinates": shape[-1], "calls": len(rows)},
        calls=[each.call.call for each in rows],
    )


def _first_site(record: Record, one: InputGradient) -> Iterator[int | None]:
    return (each.call.site for each in input_gradients(record) if each.tensor is not None and each.tensor == one.root)
