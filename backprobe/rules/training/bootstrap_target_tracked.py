"""BP809 bootstrap-target-tracked: a regression target made from the model's own output is not detached.

What it finds:
    A regression loss compares a model's output with a target that is data plus a constant times the same model's output
    on another input, and gradients flow through both. The finding stands at the statement that computes the target.

Why it matters:
    The target is meant as a fixed number. With gradients through it, the model also learns to move the target towards
    its prediction, which biases the values and often makes Q-learning diverge or stall.

What PyTorch does:
    Both arguments of a loss are differentiated if both are tracked. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    q_net = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-2)
    for _ in range(3):
        state, reward, following = torch.randn(8, 4), torch.randn(8), torch.randn(8, 4)
        value = q_net(state)[:, 0]
        target = reward + 0.9 * q_net(following).max(1).values  # <- here
        loss = nn.functional.mse_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    q_net = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-2)
    for _ in range(3):
        state, reward, following = torch.randn(8, 4), torch.randn(8), torch.randn(8, 4)
        value = q_net(state)[:, 0]
        with torch.no_grad():
            target = reward + 0.9 * q_net(following).max(1).values
        loss = nn.functional.mse_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a symmetric pair
    import torch
    from torch import nn

    embed = nn.Linear(4, 2)
    one, other = embed(torch.randn(8, 4)), embed(torch.randn(8, 4))
    nn.functional.mse_loss(one, other).backward()

Near miss: both sides take a step from data, as in a model of motion
    import torch
    from torch import nn

    field = nn.Linear(4, 4)
    start, end = torch.randn(8, 4), torch.randn(8, 4)
    nn.functional.mse_loss(start + 0.5 * field(start), end - 0.5 * field(end)).backward()

Near miss: the target comes from another network
    import torch
    from torch import nn

    value, model = nn.Linear(4, 1), nn.Linear(4, 1)
    state = torch.randn(8, 4)
    target = torch.randn(8, 1) + 0.9 * model(state)
    nn.functional.mse_loss(value(state), target).backward()

Blind spots:
    Without a factor, or with a factor that is tracked itself, the target is not told from a sum. Residual-gradient
    methods that differentiate the target on purpose look the same.

Source:
    R. Sutton and A. Barto, Reinforcement Learning (2018), section 9.3: semi-gradient methods; V. Mnih et al.,
    Human-level control through deep reinforcement learning (2015); observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import behind_shapes, op, operands, tensors_of
from backprobe.rules.analysis.losses.regressions import Regression, regressions
from backprobe.rules.analysis.modules.module_outputs import call_around, calls_below
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, text_in
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="bootstrap-target-tracked",
    code="BP809",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="safe",
    needs=("node", "module", "backward"),
)

_PICKS: Final = frozenset({"Max", "Amax", "Maximum", "Min", "Amin", "Minimum", "Mean", "Sum", "Logsumexp", "Where"})
"""What may stand between a network's output and the factor of a target: the choice of a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """One target. node: the sum; value: the module call whose output is in it; own: that of the prediction."""

    loss: Regression
    node: int
    value: ModuleCall
    own: ModuleCall


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that computes such a target."""
    by_site: dict[int, list[_Target]] = {}
    for loss in regressions(record):
        for side, other in ((loss.left, loss.right), (loss.right, loss.left)):
            found = _target(record, loss, side, other)
            if found is not None:
                by_site.setdefault(lookup(record).nodes[found.node].site or loss.site, []).append(found)
    for site, found in by_site.items():
        yield _finding(record, site, found)


def _target(record: Record, loss: Regression, side: int, other: int) -> _Target | None:
    total, value = _bootstrapped(record, side)
    if total is None or value is None or _bootstrapped(record, other)[1] is not None:
        return None
    for own in calls_below(record, other).values():
        if own.module == value.module and own.module_call != value.module_call:
            return _Target(loss=loss, node=total, value=value, own=own)
    return None


def _bootstrapped(record: Record, side: int) -> tuple[int | None, ModuleCall | None]:
    """The sum of untracked data and a constant times a module's output, and that module's call; else None."""
    total = _behind(record, side)
    if total is None or op(lookup(record).nodes[total]) not in ("Add", "Sub"):
        return None, None
    wanted = [one for one in operands(record, total) if one is not None]
    if len(wanted) != 1 or len(operands(record, total)) != 2:
        return None, None
    node, factors = behind_shapes(record, wanted[0]), 0
    while node is not None and op(lookup(record).nodes[node]) in {"Mul", *_PICKS}:
        inner = [one for one in operands(record, node) if one is not None]
        is_factor = op(lookup(record).nodes[node]) == "Mul"
        if is_factor and len(inner) != 1:
            return None, None
        factors += is_factor
        node = behind_shapes(record, inner[0]) if inner else None
    return (total, call_around(record, node)) if node is not None and factors else (None, None)


def _behind(record: Record, node: int) -> int | None:
    """Through views, and through a `where` with one tracked side."""
    found = behind_shapes(record, node)
    while found is not None and op(lookup(record).nodes[found]) == "Where":
        wanted = [one for one in operands(record, found) if one is not None]
        found = behind_shapes(record, wanted[0]) if len(wanted) == 1 else None
    return found


def _finding(record: Record, number: int, found: list[_Target]) -> Finding:
    first, index = found[0], lookup(record)
    module = next(one for one in record.modules if one.module == first.value.module)
    net = module.binding or module.fqn or module.cls
    made = tensors_of(record).get(first.node, [])
    name = called(record, made[-1]) if made else "the target"
    target = f"`{name}`" if name not in ("a tensor", "the target") else "The target"
    return told(
        record,
        RULE,
        number,
        (
            f"{target} is data plus a constant times the output of `{net}`, and gradients flow through it.",
            f"`{net}` then also learns to move its target towards its prediction.",
            "Compute the target under `torch.no_grad()`, or detach it.",
        ),
        binding=name,
        moments=[index.nodes[one.node].first_seen for one in found],
        related=(
            (f"this output of `{net}` is in the target", first.value.site if first.value.site != number else None),
            ("this is the prediction", first.own.site),
            ("the loss compares both", first.loss.site),
        ),
        evidence={"module": net, "losses": len(found), "assumed": "the target is meant as a fixed number"},
        fixes=_fixes(record, number),
        tensors=made,
    )


def _fixes(record: Record, number: int) -> Iterator[Fix]:
    site = site_of(record, number)
    node = statement(record, site)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        region = region_in(record, site.source, node.value)
        edit = replacement(record, site, region, f"({text_in(record, site.source, region)}).detach()")
        yield Fix(title="Detach the target", safety="safe", edits=(edit,))
