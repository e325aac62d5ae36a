"""BP957 mode-broken: modules run in a mode that does not fit training.

What it finds:
    Every dropout and batch norm of the program runs in eval mode in all calls that backward calls walk through, in two
    training steps at least, though nothing froze them; or the root of a backward call was computed without gradients.

Why it matters:
    Dropout drops nothing and batch norm learns nothing, and no error says so.

What PyTorch does:
    `eval()` sets `training` of all modules below to False, until `train()` is called. Autograd records either way.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
    for module in trunk:
        module.training = False
    heads = [nn.Linear(8, 1) for _ in range(6)]
    optimizer = torch.optim.SGD([p for part in (trunk, *heads) for p in part.parameters()], lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        hidden = trunk(torch.randn(8, 4))  # <- here
        torch.stack([head(hidden) for head in heads]).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
    heads = [nn.Linear(8, 1) for _ in range(6)]
    optimizer = torch.optim.SGD([p for part in (trunk, *heads) for p in part.parameters()], lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        hidden = trunk(torch.randn(8, 4))
        torch.stack([head(hidden) for head in heads]).pow(2).mean().backward()
        optimizer.step()

Near miss: a frozen trunk in eval mode
    import torch
    from torch import nn

    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5)).requires_grad_(False).eval()
    head = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        head(trunk(torch.randn(8, 4))).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Functions that take `training` as an argument, and modules of the program's own that act by their flag.

Source:
    torch.nn.Module.eval in PyTorch's documentation. Two steps: one may be a trial before training begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.modules.module_sites import outermost_call
from backprobe.rules.analysis.modules.training_modes import DROPOUTS, NORMS, is_of, module_of, walked_in
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="mode-broken",
    code="BP957",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("backward", "node", "module"),
)
EXPLAINED_BY = ("BP6",)
"""Families of rules whose findings explain a breach."""

_REPEATED: Final = 2
"""Training steps in which the mode must be seen."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding if all modules that act by their mode are trained in eval mode."""
    calls = _trained_calls(record)
    moments = sorted({lookup(record).calls[number].moment_before for _call, number in calls})
    if not calls or any(call.training for call, _number in calls):
        return
    if not any(is_of(record, call, DROPOUTS) for call, _number in calls):
        return  # batch norm alone is often kept in eval mode on purpose
    if len({step_of(record, moment) for moment in moments}) < _REPEATED:
        return
    first = outermost_call(record, calls[0][0])
    if first.site is None:
        return
    names = sorted({module.cls for call, _number in calls if (module := module_of(record, call)) is not None})
    yield told(
        record,
        RULE,
        first.site,
        (
            f"Training runs through {', '.join(f'`{name}`' for name in names)} in eval mode, in every step.",
            "Dropout drops nothing, and batch norm uses and keeps old statistics.",
            "Call `train()` before the training steps.",
        ),
        binding=names[0],
        moments=moments,
        calls=[number for _call, number in calls],
        evidence={"breach": "trained-in-eval"},
    )


def measure_coverage(record: Record) -> Coverage:
    """Return how many backward calls that store gradients were walked, if any module acts by its mode."""
    calls = [call for call in record.backward_calls if call.accumulate_grad]
    has_modes = any(module.cls in DROPOUTS | NORMS for module in record.modules)
    walked = sum(call.nodes_met > 0 for call in calls) if has_modes else 0
    why = "" if walked else "no module acts by its mode" if not has_modes else "no backward call was walked"
    return Coverage(checked=walked, total=len(calls), unit="backward calls", why=why)


def _trained_calls(record: Record) -> list[tuple[ModuleCall, int]]:
    """Return the calls of dropout and batch norm that backward calls with a step walk through, with the backward call.

    Left out are batch norms whose own parameters are frozen, and calls in whose module chain nothing is trained.
    """
    walked = walked_in(record)
    stores = {call.call for call in record.backward_calls if call.accumulate_grad}
    found: list[tuple[ModuleCall, int]] = []
    for call in record.module_calls:
        module = module_of(record, call)
        if module is None or module.cls not in DROPOUTS | NORMS:
            continue
        numbers = [number for number in walked.get((call.module_call), ()) if number in stores]
        around = [
            number for number in walked.get(call.parent if call.parent is not None else -1, ()) if number in stores
        ]
        if numbers or (module.cls in DROPOUTS and around):
            found.append((call, (numbers or around)[0]))
    return found
