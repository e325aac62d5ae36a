"""BP612 evaluating-in-train-mode: a model is evaluated while dropout drops and batch norm learns.

What it finds:
    A module that is trained elsewhere is called in training mode, with dropout or batch norm in it; what comes out is
    shown or counted and goes into no loss. With gradients on, it must be compared with something and come out as a
    number, in two steps or more or behind the last one. Or a teacher that was trained or loaded before, and is not
    written since, gives the targets of another module with its dropout on. The finding stands at that call.

Why it matters:
    Dropout makes the number noisy and too low, and batch norm takes the test data into its statistics: the model that
    is saved has seen them.

What PyTorch does:
    `no_grad` switches gradients off and nothing else; `eval()` switches the modules. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            print(net(torch.randn(8, 6)).argmax(1))  # <- here

Use instead:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net.train()
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            print(net(torch.randn(8, 6)).argmax(1))

Near miss: the same input passes several times, to measure what dropout does
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = torch.randn(8, 6)
    with torch.no_grad():
        print(torch.stack([net(x) for _ in range(5)]).std(0))

Near miss: what comes out is the target of a loss
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 6)
        with torch.no_grad():
            goal = net(x + 0.1 * torch.randn(8, 6)).softmax(1)
        loss = nn.functional.cross_entropy(net(x), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: batch norm is fed with data to renew its statistics
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(8, 6))

Blind spots:
    With gradients on, a result that is only looked at and not compared is not judged: a generator's pictures are often
    drawn so. A value of which only the spread is asked, by `std()` as in a check for collapse, is no evaluation; nor is
    a loss that is left out of the training now and then.

Source:
    torch.nn.Module.eval in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.losses.handed_losses import ways_to_roots
from backprobe.rules.analysis.losses.spread_measures import is_only_measured_for_spread
from backprobe.rules.analysis.modules.evaluations import is_fixed_teacher, measured
from backprobe.rules.analysis.modules.training_modes import (
    DROPOUTS,
    NORMS,
    inside,
    is_of,
    module_of,
    modules_of,
    outermost_in_mode,
    parameters_in,
    receiver_of,
    used_by_updates,
    walked_in,
    written_call,
)
from backprobe.rules.analysis.rows.lookup import bindings_named
from backprobe.rules.analysis.source.data_flow import Step
from backprobe.rules.analysis.source.scopes import names
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, tree_of
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="evaluating-in-train-mode",
    code="BP612",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "mode", "node", "grad-life", "optimizer"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per expression that evaluates a trained module in training mode."""
    for (site, module), calls in (*_calls(record, tracked=False).items(), *_calls(record, tracked=True).items()):
        if _is_evaluated(record, module, calls) or is_fixed_teacher(record, calls):
            yield _finding(record, site, calls)


def _is_evaluated(record: Record, module: int, calls: list[ModuleCall]) -> bool:
    """It is trained elsewhere, and nothing is trained on what comes out here."""
    if not _is_trained(record, module):
        return False
    untracked = not calls[0].grad_mode
    shown = untracked and _is_only_shown(record, calls[0]) and not _is_repeated(record, calls)
    return shown or measured(record, calls)


def _calls(record: Record, *, tracked: bool) -> dict[tuple[int, int], list[ModuleCall]]:
    """The calls in training mode of modules with dropout or batch norm that no backward call walks, by place.

    Args:
        tracked: Those with gradients on; else those with gradients off.
    """
    found: dict[tuple[int, int], list[ModuleCall]] = {}
    seen: set[int] = set()
    modules = modules_of(record, DROPOUTS | NORMS)
    for call in record.module_calls if modules else ():
        if call.module not in modules or not call.training or call.grad_mode != tracked or call.recompute:
            continue
        top = outermost_in_mode(record, call)
        if top.module_call in seen or top.grad_mode != tracked or top.site is None:
            continue
        seen.add(top.module_call)
        if not tracked or top.module_call not in walked_in(record):
            found.setdefault((top.site, top.module), []).append(top)
    return found


def _is_trained(record: Record, module: int) -> bool:
    """A backward call went through another call of it, in training mode, and an update used what it brought."""
    trained = (call for call in record.module_calls if call.module == module and call.grad_mode and call.training)
    walked = (number for call in trained for number in walked_in(record).get(call.module_call, ()))
    return any(number in used_by_updates(record) for number in walked)


def _is_only_shown(record: Record, call: ModuleCall) -> bool:
    """The value is used, for more than a look at its spread, and goes into no backward call."""
    found = written_call(record, call)
    if found is None:
        return False
    node, tree = statement(record, site_of(record, call.site or 0)), tree_of(record, site_of(record, call.site or 0))
    if isinstance(node, ast.Expr) and node.value is found[1]:
        return False
    if tree is None or is_only_measured_for_spread(names(record)[found[0]], found[1]):
        return False
    return not ways_to_roots(record, [Step(part=found[1], source=found[0])])


def _is_repeated(record: Record, calls: list[ModuleCall]) -> bool:
    """Between two updates the same tensors went in more than once: randomness is what is asked for."""
    found = written_call(record, calls[0])
    seen: set[tuple[int, tuple[int | None, ...]]] = set()
    for call in calls:
        moment = _moment(record, call)
        given = found[1].args if found is not None and isinstance(found[1], ast.Call) else []
        held = tuple(_held(record, ast.unparse(one), call, moment) for one in given)
        if None in held or not held:
            continue
        key = (step_of(record, moment), held)
        if key in seen:
            return True
        seen.add(key)
    return False


def _moment(record: Record, call: ModuleCall) -> int:
    """The last moment before the statement of the call ended: the k-th one there."""
    own = [row.moment for row in record.moments if row.site == call.site]
    same = [one for one in record.module_calls if one.site == call.site and one.module == call.module]
    at = next((at for at, one in enumerate(same) if one.module_call == call.module_call), 0)
    return own[min(at, len(own) - 1)] if own else 0


def _held(record: Record, name: str, call: ModuleCall, moment: int) -> int | None:
    function = site_of(record, call.site or 0).function
    rows = [
        row for row in bindings_named(record)[name] if row.moment <= moment and row.function in (function, "<module>")
    ]
    return rows[-1].tensor if rows else None


def _finding(record: Record, site: int, calls: list[ModuleCall]) -> Finding:
    first = calls[0]
    name, written = receiver_of(record, first), written_call(record, first)
    kinds = sorted({_cls(record, one) for one in inside(record, first) if is_of(record, one, DROPOUTS | NORMS)})
    verb = "acts" if len(kinds) == 1 else "act"
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is evaluated here in training mode: its {' and '.join(kinds)} {verb} as in training.",
            "Nothing of the result goes into a loss, so this is assumed to be an evaluation. Its numbers are off.",
            f"Call `{name}.eval()` before it, and `{name}.train()` before training goes on.",
        ),
        binding=name,
        moments=[_moment(record, call) for call in calls],
        region=None if written is None else region_in(record, written[0], written[1]),
        evidence={"training": True, "grad_mode": first.grad_mode, "classes": kinds, "calls": len(calls)},
        tensors=sorted(parameters_in(record, first))[:64],
    )


def _cls(record: Record, call: ModuleCall) -> str:
    module = module_of(record, call)
    return "" if module is None else module.cls
