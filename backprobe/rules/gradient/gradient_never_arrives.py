"""BP202 gradient-never-arrives: a module runs in every step, and its output is dropped before anything uses it.

What it finds:
    A module whose parameters an optimizer holds is called while gradients are tracked, and each time its result is
    bound to a name that is bound anew before it is read, is never read, or gets no name at all. The finding stands at
    the call.

Why it matters:
    The module is computed and never trained. Nothing raises: `.grad` of its parameters stays None.

What PyTorch does:
    A backward call reaches what its root was computed from. What was computed beside it is not part of that graph. Seen
    in torch 2.13.

Example:
    import torch
    from torch import nn

    trunk, main, side = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*trunk.parameters(), *main.parameters(), *side.parameters()], lr=0.1)
    for _ in range(3):
        hidden = trunk(torch.randn(12, 5)).relu()
        extra = side(hidden)  # <- here
        extra = main(hidden)
        optimizer.zero_grad()
        extra.square().mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    trunk, main, side = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*trunk.parameters(), *main.parameters(), *side.parameters()], lr=0.1)
    for _ in range(3):
        hidden = trunk(torch.randn(12, 5)).relu()
        extra = side(hidden)
        chosen = main(hidden)
        optimizer.zero_grad()
        (chosen.square().mean() + 0.3 * extra.square().mean()).backward()
        optimizer.step()

Near miss: the output is shown
    import torch
    from torch import nn

    trunk, main, side = nn.Linear(5, 8), nn.Linear(8, 3), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*trunk.parameters(), *main.parameters(), *side.parameters()], lr=0.1)
    for _ in range(3):
        hidden = trunk(torch.randn(12, 5)).relu()
        extra = side(hidden)
        print(extra.mean().item())
        optimizer.zero_grad()
        main(hidden).square().mean().backward()
        optimizer.step()

Near miss: no optimizer holds it
    import torch
    from torch import nn

    main, side = nn.Linear(5, 3), nn.Linear(5, 3)
    optimizer = torch.optim.SGD(main.parameters(), lr=0.1)
    for _ in range(3):
        rows = torch.randn(12, 5)
        extra = side(rows)
        optimizer.zero_grad()
        main(rows).square().mean().backward()
        optimizer.step()

Blind spots:
    An output that is returned, stored in an object or handed on, and dropped there. One that is cut off is a cut's.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_tree import above, calls_of_modules, module_keys
from backprobe.rules.analysis.modules.unused_modules import never_met
from backprobe.rules.analysis.rows.completeness import is_whole_run
from backprobe.rules.analysis.source.arithmetic import goes_in
from backprobe.rules.analysis.source.syntax import method_called, site_at, site_of, statement, value_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="gradient-never-arrives",
    code="BP202",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("optimizer", "module", "node", "grad-life"),
)

_LINKS: Final = 4
"""Names that a result may have one after the other, before nothing reads the last one."""
LEAST: Final = 2
"""Calls of the module: once may be a trial."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per module, the outermost of those inside each other."""
    if not is_whole_run(record):
        return
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step" and event.with_grad}
    idle = [key for key in module_keys(record) if never_met(record, key)]
    for key in idle:
        calls = calls_of_modules(record).get(module_keys(record)[key].module, [])
        held = stepped.intersection(in_optimizers(record)[never_met(record, key)[0]])
        if len(calls) < LEAST or not held or any(outer in idle for outer in above(key)):
            continue
        dropped = [_dropped_at(record, call, key) for call in calls]
        if dropped[0] is not None and None not in dropped:
            yield _finding(record, key, calls, dropped[0])


def _dropped_at(record: Record, call: ModuleCall, key: str) -> tuple[Site, str | None] | None:
    """The statement that lets the tracked result of a call go, and the name that it had; None where it does not."""
    if call.site is None or call.hi <= call.lo:
        return None
    node = statement(record, site_of(record, call.site))
    site = None if node is None else site_at(record, node)  # not the one that opens its function
    value, last = value_of(node), key.rpartition(".")[2]
    if site is None or value is None:
        return None
    if isinstance(node, ast.Expr):
        return (site, None) if isinstance(value, ast.Call) and method_called(value) == last else None
    if not goes_in(record, site, lambda part: isinstance(part, ast.Call) and method_called(part) == last):
        return None
    name = site.targets[0] if isinstance(node, ast.Assign) and len(site.targets) == 1 else None
    return None if name is None else _let_go(record, site, name)


def _let_go(record: Record, site: Site, name: str) -> tuple[Site, str | None] | None:
    """The statement whose name nothing reads: this one, or the only one that reads its name, and so on."""
    for _taken_on in range(_LINKS):
        readers = _readers(record, site, name)
        if not readers:
            return site, name
        node = statement(record, next(iter(readers.values())))
        reader = site_at(record, node) if len(readers) == 1 and isinstance(node, ast.Assign) else None
        if reader is None or len(reader.targets) != 1:
            return None
        if not goes_in(record, reader, lambda part, held=name: _reads(part, held)):
            return None
        site, name = reader, reader.targets[0]
    return None


def _reads(part: ast.expr, name: str) -> bool:
    return isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)


def _readers(record: Record, made: Site, name: str) -> dict[int, Site]:
    """The statements that read the name before one of the same function binds it anew, by line."""
    others = [row for row in record.sites if row.source == made.source and row.line != made.line]
    behind = [
        row.line for row in others if name in row.targets and row.line > made.line and row.function == made.function
    ]
    until = min(behind, default=None)
    reads = [row for row in others if name in row.reads]
    return {row.line: row for row in reads if until is None or made.line < row.line <= until}


def _finding(record: Record, key: str, calls: list[ModuleCall], dropped: tuple[Site, str | None]) -> Finding:
    site, name = dropped
    tensors = never_met(record, key)
    what = "is given no name" if name is None else f"is bound to `{name}`, which nothing reads before it is bound again"
    moments = [row.moment for row in record.moments if row.site == site.site]
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{key}` runs here, and its result {what}.",
            f"In {len(calls)} calls nothing used it: its {len(tensors)} parameters never get a gradient.",
            "Let the loss depend on it, or take the call out.",
        ),
        binding=name or key,
        moments=moments or [0],
        evidence={"module": key, "calls": len(calls), "tensors": tensors[:16]},
        tensors=tensors,
    )
