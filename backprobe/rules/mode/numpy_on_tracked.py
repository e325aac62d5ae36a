"""BP610 numpy-on-tracked: an array is asked of a tensor that requires grad.

What it finds:
    `.numpy()`, `np.asarray` or a function of NumPy was handed a tensor with a history, and raised. The finding stands
    at that expression.

Why it matters:
    The program ends there. An array would share the tensor's memory and have no history, so torch asks for a decision.

What PyTorch does:
    It raises "Can't call numpy() on Tensor that requires grad". Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(1, 1)
    curve = model(torch.linspace(0, 1, 5).unsqueeze(1))
    values = curve.squeeze(1).numpy()  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(1, 1)
    curve = model(torch.linspace(0, 1, 5).unsqueeze(1))
    values = curve.squeeze(1).detach().numpy()

Near miss: a tensor without a history
    import torch

    curve = torch.linspace(0, 1, 5)
    print(curve.numpy().max())

Blind spots:
    An exception that the program catches is its decision: it is a note.

Source:
    torch.Tensor.numpy in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="numpy-on-tracked",
    code="BP610",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "site"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "numpy-of-tracked"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _asked(node: ast.stmt | None) -> ast.Call | None:
    """The only `.numpy()` of a statement; None if there is none, or more than one."""
    found = [
        part
        for part in (ast.walk(node) if node is not None else ())
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "numpy"
    ]
    return found[0] if len(found) == 1 else None


def _finding(record: Record, raised: Raised, site: Site) -> Finding:
    asked = _asked(statement(record, site))
    fixes: list[Fix] = []
    what = "A tensor of this statement"
    if asked is not None and isinstance(asked.func, ast.Attribute):
        what = f"`{ast.unparse(asked.func.value)}`"
        inner = region_in(record, site.source, asked.func.value)
        edit = insertion(record, site, inner.end_line, inner.end_col, ".detach()")
        fixes.append(Fix(title="Detach it first", safety="safe", edits=(edit,)))
    return told(
        record,
        RULE,
        site.site,
        (
            f"{what} requires grad, so it cannot become an array.",
            "An array has no history: what is computed from it would get no gradient, and torch asks for a decision.",
            "Call `.detach()` before, for a plot or a metric; keep torch's own functions on the way to a loss.",
        ),
        binding=site.reads[0] if site.reads else what.strip("`"),
        moments=[raised.moment or 0],
        region=None if asked is None else region_in(record, site.source, asked),
        evidence={"raised": raised.type, "requires_grad": True},
        fixes=fixes,
        level=level_of(record, raised),
    )
