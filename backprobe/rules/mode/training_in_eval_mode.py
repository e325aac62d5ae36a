"""BP611 training-in-eval-mode: a module is trained while `eval()` is in force.

What it finds:
    A module with dropout or batch norm was called with `training` false, and updates used the gradients of that call.
    The program switched it with `eval()` itself, or trains it in training mode elsewhere. The finding stands at the
    first such call; where a function of its own leaves the mode that the program had switched on, at its `eval()`. If
    that function was given the module, or is a method, and the program says `train()` once before the loop that calls
    it, that stands one loop too far out, and the finding there.

Why it matters:
    Dropout does nothing and batch norm uses old statistics that no longer follow the weights: training goes on another
    way than the first epoch did, and nothing says so. Often a validation function calls `eval()` and nobody calls
    `train()` again.

What PyTorch does:
    `eval()` holds until `train()` is called. It has nothing to do with gradients. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for _ in range(2):
            loss = net(torch.randn(8, 6)).pow(2).mean()  # <- here
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            print(net(torch.randn(8, 6)).mean())

Use instead:
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        net.train()
        for _ in range(2):
            loss = net(torch.randn(8, 6)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            print(net(torch.randn(8, 6)).mean())

Near miss: batch norm alone is put into eval mode, for small batches
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 2))
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(8, 6)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: an attack in eval mode, whose gradients are cleared before the step
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 6, requires_grad=True)
        net.eval()
        net(x).pow(2).mean().backward()
        harder = (x + 0.1 * x.grad.sign()).detach()
        net.train()
        loss = net(harder).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a frozen part in eval mode
    import torch
    from torch import nn

    trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)).requires_grad_(False).eval()
    head = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        loss = head(trunk(torch.randn(8, 6))).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A model that a library hands out in eval mode, and that is never switched by the program, is left alone. So is one
    of which less than half of the parameters are trained. Modules of the program's own that act by `training` are not
    known.

Source:
    torch.nn.Module.eval in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import line_before
from backprobe.rules.analysis.source.syntax import (
    region_in,
    site_of,
    statement,
)
from backprobe.rules.analysis.training.mode_switches import left_by, train_outside
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Mode, ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="training-in-eval-mode",
    code="BP611",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("module", "node", "grad-life", "optimizer"),
)
_LEAST = 2
"""Updates that were hurt: once is no pattern."""


@dataclass(frozen=True, slots=True)
class _Hurt:
    """Calls of one module in eval mode that updates used the gradients of."""

    calls: list[ModuleCall]
    backward: list[int]
    updates: set[int]


def check(record: Record) -> Iterator[Finding]:
    """One finding per module that is trained in eval mode."""
    hurt: dict[int, _Hurt] = {}
    seen: set[int] = set()
    modules = modules_of(record, DROPOUTS | NORMS)
    for call in record.module_calls if modules else ():
        if call.training or not call.grad_mode or call.module not in modules:
            continue
        top = outermost_in_mode(record, call)
        if top.module_call in seen or top.module in modules:
            continue
        seen.add(top.module_call)
        _add(record, top, hurt)
    for module, found in hurt.items():
        switch = _switch(record, module, found)
        if len(found.updates) >= _LEAST and (switch is not None or _trains_elsewhere(record, module)):
            yield _finding(record, found, switch)


def _add(record: Record, top: ModuleCall, hurt: dict[int, _Hurt]) -> None:
    """Note the updates of at least half of the parameters behind a call that its own gradients went into."""
    parameters = parameters_in(record, top)
    for number in walked_in(record).get(top.module_call, ()):
        used = used_by_updates(record).get(number, {})
        trained = {leaf: moments for leaf, moments in used.items() if leaf in parameters}
        if trained and 2 * len(trained) >= len(parameters):
            one = hurt.setdefault(top.module, _Hurt([], [], set()))
            one.calls.append(top)
            one.backward.append(number)
            one.updates.update(moment for moments in trained.values() for moment in moments)


def _switch(record: Record, module: int, found: _Hurt) -> Mode | None:
    """The last `eval()` of the program before these backward calls on the module, or on one that holds it."""
    around, until = (
        {found.calls[0].module, module},
        max(lookup(record).calls[one].moment_before for one in found.backward),
    )
    rows = [row for row in record.modes if row.kind == "training" and row.after == "False" and row.site is not None]
    rows = [row for row in rows if row.moment is not None and row.moment <= until]
    own = [row for row in rows if row.module in around]
    return (own or rows or [None])[-1]


def _trains_elsewhere(record: Record, module: int) -> bool:
    """Another call of it ran in training mode, and a backward call went through that one."""
    calls = (call for call in record.module_calls if call.module == module and call.training)
    return any(call.module_call in walked_in(record) for call in calls)


def _finding(record: Record, found: _Hurt, switch: Mode | None) -> Finding:
    first = found.calls[0]
    name, written = receiver_of(record, first), written_call(record, first)
    kinds = sorted(
        {
            module.cls
            for one in inside(record, first)
            if is_of(record, one, DROPOUTS | NORMS) and (module := module_of(record, one))
        }
    )
    site = first.site or 0
    calls = sorted(set(found.backward))
    fixes: list[Fix] = []
    node = statement(record, site_of(record, site))
    evaluates = any(call.site == first.site and not call.grad_mode for call in record.module_calls)  # in one function
    if node is not None and written is not None and not evaluates and name.replace(".", "").replace("_", "").isalnum():
        edit = line_before(record, site_of(record, site), node, f"{name}.train()")
        fixes = [] if edit is None else [Fix(title="Switch to training mode before it", safety="unsafe", edits=(edit,))]
    verb = "acts" if len(kinds) == 1 else "act"
    left = None if switch is None else left_by(record, switch, site, name)
    outside = None if left is None or switch is None else train_outside(record, switch, site, name)
    if outside is not None:
        left = outside
    many = f"{len(found.updates)} steps use the gradients"
    return told(
        record,
        RULE,
        site if left is None else left,
        (
            f"`{name}` is called in eval mode here, and {many}."
            if left is None
            else f"This leaves `{name}` in eval mode: {many} of calls in it."
            if outside is None
            else f"This holds until `{name}` is evaluated in the loop below: {many} of later calls in eval mode.",
            f"Its {' and '.join(kinds)} {verb} as in evaluation. Assumed: this is training.",
            f"Call `{name}.train()` before the training loop of each epoch."
            if left is None
            else f"Call `{name}.train()` before each epoch, or switch back here."
            if outside is None
            else "Say it in that loop, at the beginning of each iteration.",
        ),
        binding=name,
        moments=[lookup(record).calls[call].moment_before for call in calls],
        region=None if written is None or left is not None else region_in(record, written[0], written[1]),
        related=(
            ("eval mode was switched on here", None if switch is None or switch.site == left else switch.site),
            (f"`{name}` is trained in eval mode here", None if left is None else site),
        ),
        evidence={"training": False, "classes": kinds, "updates": len(found.updates), "backward_calls": calls[:16]},
        fixes=fixes,
        calls=calls,
    )
