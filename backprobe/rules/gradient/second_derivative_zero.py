"""BP223 second-derivative-zero: a second derivative by an input is all zeros, for the network has none.

What it finds:
    A second `torch.autograd.grad` by an input whose result was zero in every element and every call, through a network
    that bends at `relu`, `abs`, `max` or a clamp only. The finding stands where the program chose that: at the name of
    the module, if one function only says it, or at the call of the function; else where the second derivative is taken.

Why it matters:
    An equation with second derivatives, as a PINN has, is trained without them: the residual is finite, the loss falls,
    and the term is missing.

What PyTorch does:
    The derivative of these functions is constant between their bends, and torch takes its derivative to be 0
    everywhere. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 1))  # <- here
    for _ in range(3):
        place = torch.rand(30, 1, requires_grad=True)
        (slope,) = torch.autograd.grad(net(place).sum(), place, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), place, create_graph=True)
        (bend + place.detach().sin()).square().mean().backward()

Use instead:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
    for _ in range(3):
        place = torch.rand(30, 1, requires_grad=True)
        (slope,) = torch.autograd.grad(net(place).sum(), place, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), place, create_graph=True)
        (bend + place.detach().sin()).square().mean().backward()

Near miss: a gradient penalty is differentiated by the weights
    import torch
    from torch import nn

    critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    for _ in range(3):
        place = torch.rand(30, 2, requires_grad=True)
        (slope,) = torch.autograd.grad(critic(place).sum(), place, create_graph=True)
        (slope.norm(dim=1) - 1).square().mean().backward()

Blind spots:
    A second derivative that is zero in one coordinate only.

Source:
    The derivative of a piecewise linear function; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.calling_statements import statement_calling
from backprobe.rules.analysis.gradients.arrivals import is_zero
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.walks import operation_name
from backprobe.rules.analysis.modules.module_outputs import innermost_call
from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import last_name, scope_of
from backprobe.rules.analysis.source.syntax import number_at, parts_of, region_in, site_of, statement_at, trees
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Node, Record, Statistics, Tensor
    from backprobe.rules.framework.finding import Finding, Region

RULE = Rule(
    name="second-derivative-zero",
    code="BP223",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("backward", "node", "stats"),
)

_BENDS: Final = re.compile(r"(Relu|Threshold|LeakyRelu|Prelu|Abs|Sign|Max|Min|Maximum|Minimum|Clamp|Hardtanh)\w*")


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    places: dict[int, list[BackwardCall]] = {}
    for call in record.backward_calls:
        if not call.accumulate_grad and call.site is not None and _is_second(record, call):
            places.setdefault(call.site, []).append(call)
    for site, calls in places.items():
        given = [one for call in calls for one in _given(record, call)]
        bend = _bend(record, calls[0])
        if bend is not None and given and all(map(is_zero, given)):
            asked = statement_calling(record, site, calls[0].moment_before) if _returns_it(record, site) else None
            yield _finding(record, site if asked is None else asked.site, calls, bend)


def _returns_it(record: Record, site: int) -> bool:
    """The statement returns what it differentiated: `return torch.autograd.grad(...)[0]`."""
    return isinstance(statement_at(record, site), ast.Return)


def _given(record: Record, call: BackwardCall) -> list[Statistics | None]:
    """What came back, as far as it was measured; else what the statement of the call gave a name to."""
    if call.returned_grads is not None:
        return list(call.returned_grads)
    following = (one.moment_before for one in record.backward_calls if one.call > call.call)
    until = next(following, len(record.moments))
    made = [row.tensor for row in record.bindings if row.site == call.site and call.moment_before < row.moment <= until]
    if not made:  # a helper returns it without a name
        rows = _made_at(record).get(call.site or 0, [])
        made = [row.tensor for row in rows if call.moment_before <= row.moment <= until]
    return [row.value for one in made for row in lookup(record).snapshots_of[one][:1]]


@table
def _made_at(record: Record) -> dict[int, list[Tensor]]:
    """The tensors that were met first at each statement."""
    found: dict[int, list[Tensor]] = {}
    for row in record.tensors:
        if row.site is not None:
            found.setdefault(row.site, []).append(row)
    return found


def _is_second(record: Record, call: BackwardCall) -> bool:
    """It differentiates a derivative, by something that is not trained."""
    nodes = lookup(record).nodes
    by = {row.tensor for row in call.inputs or ()}
    return not by & trained(record) and any(nodes[node].grad_order > 0 for node in reaches(record)[call.call].met)


def _bend(record: Record, call: BackwardCall) -> Node | None:
    """The first node that bends, of those that this call and the one before it met."""
    met = {node for one in (call.call - 1, call.call) if one in reaches(record) for node in reaches(record)[one].met}
    found = [row for row in record.nodes if row.node in met and _BENDS.fullmatch(row.type)]
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the program chose what bends: `nn.ReLU` in what builds the network, or the call `F.relu(z)`."""

    site: int
    region: Region


def _chosen_at(record: Record, bend: Node) -> _Place | None:
    """The only function that names the module of the activation, or the call of its function; None: it is not clear."""
    called = innermost_call(record, bend.node)
    module = None if called is None else modules_by_number(record).get(called.module)
    if module is not None and not module.user_code:
        places = [(source, part) for source in trees(record) for part in _naming(record, source, {module.cls})]
    else:
        kind = operation_name(bend.type)
        node, source = statement_at(record, bend.site), None if bend.site is None else site_of(record, bend.site).source
        places = [] if source is None else [(source, one) for one in _naming(record, source, {kind}, node)]
    scopes = {(source, scope_of(trees(record)[source], part)) for source, part in places}
    if len(scopes) != 1:
        return None
    source, part = min(places, key=lambda one: (one[1].lineno, one[1].col_offset))
    tree = trees(record)[source]
    above = next((one for one in tree.ancestors(part) if isinstance(one, ast.stmt)), None)
    site = number_at(record, above)
    return None if site is None else _Place(site, region_in(record, source, part))


def _naming(record: Record, source: int, wanted: set[str], inside: ast.stmt | None = None) -> Iterator[ast.expr]:
    """The expressions of a file, or of a statement, that say one of these names."""
    for part in parts_of(inside or trees(record)[source].module):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load) and last_name(part) in wanted:
            yield part


def _finding(record: Record, site: int, calls: list[BackwardCall], bend: Node) -> Finding:
    row = site_of(record, site)
    name = row.targets[0] if row.targets else "this second derivative"
    by = next((one.name for one in calls[0].inputs or () if one.name), "the input")
    kind = operation_name(bend.type)
    times = "its only call" if len(calls) == 1 else f"all {len(calls)} calls"
    place = _chosen_at(record, bend)
    return told(
        record,
        RULE,
        site if place is None else place.site,
        (
            f"`{name}` is zero in every element, in {times}: the network is made of straight pieces.",
            f"`{kind}` bends only at points: the second derivative by `{by}` is 0, and the loss lacks the term.",
            "Use a smooth activation: tanh, silu, softplus or sin.",
        ),
        binding=name,
        moments=[call.moment_before for call in calls],
        region=None if place is None else place.region,
        related=[("this second derivative is zero", site)]
        if place is not None
        else [(f"`{kind}` is applied here", bend.site)],
        evidence={"calls": len(calls), "node": bend.type},
        calls=[call.call for call in calls],
    )
