"""BP408 out-argument-on-tracked: `out=` is given to an operation on tensors that require grad.

What it finds:
    A call with `out=` was refused, as one of its operands, or the buffer, is tracked. The finding stands at that call.

Why it matters:
    The program stops. A result written into a given buffer has no history.

What PyTorch does:
    `RuntimeError: mm(): functions with out=... arguments don't support automatic differentiation, but one of the
    arguments requires grad`. Under `torch.no_grad()` it is allowed. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, 3, requires_grad=True)
    buffer = torch.empty(2, 3)
    torch.mm(torch.ones(2, 3), weight, out=buffer)  # <- here

Use instead:
    import torch

    weight = torch.ones(3, 3, requires_grad=True)
    buffer = torch.mm(torch.ones(2, 3), weight)
    buffer.sum().backward()

Near miss: nothing is tracked there
    import torch

    weight = torch.ones(3, 3, requires_grad=True)
    buffer = torch.empty(2, 3)
    with torch.no_grad():
        torch.mm(torch.ones(2, 3), weight, out=buffer)
    print(buffer)

Blind spots:
    An exception that the program catches itself outside a backward call is not recorded.

Source:
    "In-place operations with autograd" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import insertion, keyword, without_keyword
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Finding, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site

RULE = Rule(
    name="out-argument-on-tracked",
    code="BP408",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused call with `out=`."""
    for raised in raised_as(record, "out-argument"):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _finding(record: Record, raised: Raised, site: Site) -> Finding:
    call = _call(record, site)
    given = None if call is None else keyword(call, "out")
    buffer = "its buffer" if given is None else f"`{ast.unparse(given.value)}`"
    tracked = _tracked(record, raised, site)
    name = called(record, tracked) if tracked is not None else None
    why = "one of its operands requires grad" if name is None else f"`{name}` requires grad"
    region: Region | None = None if call is None else region_in(record, site.source, call)
    fix = None if call is None else _fix(record, site, call)
    return told(
        record,
        RULE,
        site.site,
        (
            f"This call writes its result into {buffer} with `out=`, and {why}.",
            "Torch refuses it: a result written into a given tensor has no history.",
            "Assign the result instead of giving `out=`; or write under `torch.no_grad()`.",
        ),
        binding=buffer.strip("`"),
        moments=[raised.moment or 0],
        region=region,
        evidence={"tracked": name},
        fixes=[] if fix is None else [fix],
        tensors=[] if tracked is None else [tracked],
        level=level_of(record, raised),
    )


def _call(record: Record, site: Site) -> ast.Call | None:
    node = statement(record, site)
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)] if node is not None else []
    given = [call for call in calls if keyword(call, "out") is not None]
    return given[0] if len(given) == 1 else None


def _tracked(record: Record, raised: Raised, site: Site) -> int | None:
    """The first tensor that the statement reads and that requires grad."""
    moment = raised.moment or 0
    for name in site.reads:
        tensor = tensor_named(record, name, site, moment)
        state = None if tensor is None else state_at(record, tensor, moment)
        if tensor is not None and state is not None and state.requires_grad:
            return tensor
    return None


def _fix(record: Record, site: Site, call: ast.Call) -> Fix | None:
    """`torch.mm(a, b, out=c)` as `c = torch.mm(a, b)`, where the call is a whole statement."""
    node, given = statement(record, site), keyword(call, "out")
    dropped = without_keyword(record, site, call, "out")
    if dropped is None or given is None or not isinstance(node, ast.Expr) or node.value is not call:
        return None
    region = region_in(record, site.source, call)
    assigned = insertion(record, site, region.start_line, region.start_col, f"{ast.unparse(given.value)} = ")
    return Fix(title="Assign the result", safety="safe", edits=(assigned, dropped))
