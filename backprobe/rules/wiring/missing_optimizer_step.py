"""BP706 missing-optimizer-step: gradients reach an optimizer's parameters again and again, and nothing ever steps.

What it finds:
    An optimizer exists, backward calls fill the gradients of its parameters in at least two turns, and neither it nor
    the program ever changes them. The finding stands at the backward call.

Why it matters:
    The loss is computed, its gradients too, and the model stays as it was.

What PyTorch does:
    A backward call computes gradients; only a step applies them. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()

Near miss: gradients are looked at, and there is no optimizer
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    for _ in range(3):
        model.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        print(model.weight.grad.norm().item())

Near miss: the program updates by hand
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad

Near miss: all outputs are made before the first backward call, so that no step may stand between
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for out in [model(torch.randn(8, 4)) for _ in range(3)]:
        optimizer.zero_grad()
        out.pow(2).mean().backward()

Blind spots:
    A run that ended early proves nothing: the step may have been to come.

Source:
    torch.optim.Optimizer.step in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import grad_spans
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion, line_after
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.source.uncalled_methods import named_only
from backprobe.rules.analysis.training.updates import updates
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Optimizer, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="missing-optimizer-step",
    code="BP706",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="safe",
    needs=("grad-life", "optimizer", "version"),
)

LEAST_CALLS: Final = 2
"""Backward calls that filled them: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer that never steps."""
    if record.end is None or record.end.exit_code != 0:
        return
    stepped = {event.optimizer for event in record.optimizer_events if event.kind in ("step", "scaler_step")}
    written = {event.tensor for event in record.inplace_events}
    written |= {tensor for update in updates(record) for tensor in update.tensors}
    for optimizer in record.optimizers:
        held = {row.tensor for row in optimizer.tensors}
        if optimizer.optimizer in stepped or None in stepped or held & written or not held:
            continue
        arrivals = [
            row
            for tensor in sorted(held)
            for span in grad_spans(record).get(tensor, ())
            for row in span.arrivals
            if row.moment > optimizer.moment
        ]
        read = any(span.reads for tensor in held for span in grad_spans(record).get(tensor, ()))
        calls = {row.call for row in arrivals if row.call is not None}
        if len({row.call for row in arrivals}) >= LEAST_CALLS and not read and not _a_step_would_raise(record, calls):
            yield from _finding(record, optimizer, sorted(arrivals, key=lambda row: row.moment))


def _a_step_would_raise(record: Record, calls: set[int]) -> bool:
    """What the later calls walk was computed before the first one: no step between them is meant, or possible."""
    index = lookup(record)
    first, *later = sorted(calls) or (-1,)
    numbers = {
        call: [
            number
            for row in index.passes_of_call[call]
            if row.position is not None and (number := index.nodes[row.node].seq) is not None
        ]
        for call in (first, *later)
    }
    last = max(numbers[first], default=-1)
    if not later or not all(numbers[call] and min(numbers[call]) < last for call in later):
        return False
    met = {row.node for row in index.passes_of_call[first]} - _leaves(record)
    return not any(row.node in met for call in later for row in index.passes_of_call[call])


@table
def _leaves(record: Record) -> frozenset[int]:
    return frozenset(lookup(record).accumulator_of.values())


def _finding(record: Record, optimizer: Optimizer, arrivals: list[LeafGrad]) -> Iterator[Finding]:
    site = (_of_its_own(record, optimizer, arrivals) or arrivals)[-1].site
    if site is None:
        return
    who = optimizer.binding or optimizer.cls
    tensors = sorted({row.tensor for row in arrivals})
    named = next((one for one in named_only(record, "step") if ast.unparse(one[1].value) == who), None)
    yield told(
        record,
        RULE,
        site if named is None else named[0].site,
        (
            f"`{who}` never steps: this backward call fills {together(record, tensors)}, and nothing applies it."
            if named is None
            else f"This names the method `{who}.step` and does not call it: `{who}` never steps.",
            "Gradients alone change nothing; the model stays as it was made.",
            f"Call `{who}.step()` after it." if named is None else f"Write `{who}.step()`.",
        ),
        binding=who,
        moments=sorted({row.moment for row in arrivals}),
        related=(
            (f"`{who}` is built here", optimizer.site),
            ("gradients arrive from here", None if named is None else site),
        ),
        evidence={"tensors": tensors[:16], "backward_calls": len({row.call for row in arrivals}), "steps": 0},
        fixes=_fixes(record, optimizer, site) if named is None else [_called(record, *named)],
        tensors=tensors,
        optimizers=(optimizer.optimizer,),
    )


def _of_its_own(record: Record, optimizer: Optimizer, arrivals: list[LeafGrad]) -> list[LeafGrad]:
    """The arrivals of calls that bring nothing to what other optimizers hold: the step belongs after such a call."""
    own = {row.tensor for row in optimizer.tensors}
    others = {row.tensor for other in record.optimizers for row in other.tensors} - own
    shared = {row.call for leaf in others for span in grad_spans(record).get(leaf, ()) for row in span.arrivals}
    return [row for row in arrivals if row.call not in shared]


def _called(record: Record, site: Site, part: ast.Attribute) -> Fix:
    region = region_in(record, site.source, part)
    edit = insertion(record, site, region.end_line, region.end_col, "()")
    return Fix(title="Call it", safety="safe", edits=(edit,))


def _fixes(record: Record, optimizer: Optimizer, number: int) -> Iterator[Fix]:
    site = site_of(record, number)
    node = statement(record, site)
    scope = None if optimizer.site is None else lookup(record).sites[optimizer.site].function
    if node is None or not optimizer.binding or (scope != site.function and not optimizer.binding.startswith("self.")):
        return
    added = line_after(record, site, node, f"{optimizer.binding}.step()")
    if added is not None:
        yield Fix(title=f"Step `{optimizer.binding}`", safety="safe", edits=(added,))
