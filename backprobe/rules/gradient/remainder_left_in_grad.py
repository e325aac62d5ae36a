"""BP270 remainder-left-in-grad: what an epoch leaves over of its last window goes into the first step of the next one.

What it finds:
    A step under an `if`, or behind a `continue`, takes the same number of backward calls each time, but once in each
    epoch after the first it takes more: those too that the epoch before left over, which were too few for a step of
    their own. The finding stands at that `if`, else at the step.

Why it matters:
    That step adds more losses than the others, each divided for fewer, with gradients that belong to older weights
    and to another epoch. What the last epoch leaves over is never used.

What PyTorch does:
    Backward calls add to `.grad` until something clears it; a new turn of a loop over a loader does not. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for i, x in enumerate(torch.randn(7, 8, 3)):
            model(x).pow(2).mean().div(3).backward()
            if (i + 1) % 3 == 0:  # <- here
                optimizer.step()
                optimizer.zero_grad()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        batches = torch.randn(7, 8, 3)
        for i, x in enumerate(batches):
            model(x).pow(2).mean().div(3).backward()
            if (i + 1) % 3 == 0 or i + 1 == len(batches):
                optimizer.step()
                optimizer.zero_grad()

Near miss: the count goes on from epoch to epoch
    import torch
    from torch import nn

    model, waiting = nn.Linear(3, 1), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x in torch.randn(7, 8, 3):
            model(x).pow(2).mean().div(3).backward()
            waiting += 1
            if waiting == 3:
                optimizer.step()
                optimizer.zero_grad()
                waiting = 0

Near miss: windows that become larger
    import torch
    from torch import nn

    model, waiting = nn.Linear(3, 1), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(torch.randn(22, 8, 3)):
        every = 2 if i < 4 else 3
        (model(x).pow(2).mean() / every).backward()
        waiting += 1
        if waiting == every:
            optimizer.step()
            optimizer.zero_grad()
            waiting = 0

Blind spots:
    Epochs of unequal length are not judged, nor what is left over and thrown away: BP268 is told of that.

Source:
    Observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.call_stacks import calls
from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans, stepped_by
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.source.scopes import Function
from backprobe.rules.analysis.source.syntax import number_at, site_of, statement_at, tree_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="remainder-left-in-grad",
    code="BP270",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("grad-life", "optimizer", "backward"),
)

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
LEAST: Final = 2
"""Backward calls for a step, and windows that are too large: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    for optimizer in record.optimizers:
        for row in optimizer.tensors:
            spans = grad_spans(record).get(row.tensor, ())
            larger = _larger(record, spans, optimizer.optimizer)
            site = _condition(record, larger[0]) if larger else None
            if site is not None:
                yield _finding(record, optimizer, spans, larger, site)
                break


def _larger(record: Record, spans: tuple[Span, ...], optimizer: int) -> list[Span]:
    """The windows that took what was left over, if they are those with which epochs of one length begin."""
    used = stepped_by(record, spans[0].tensor, optimizer) if spans else []
    rest = spans[len(used) :]
    if len(rest) > 1 or [*used, *rest] != list(spans) or any(len(span.updates) > 1 for span in used):
        return []
    sizes = [len(span.arrivals) for span in used]
    at = [place for place, size in enumerate(sizes) if size != sizes[0]]
    if not at or sizes[0] < LEAST or {row.site for span in spans for row in span.arrivals} - {used[0].filled.site}:
        return []
    excess, left = sizes[at[0]] - sizes[0], len(rest[0].arrivals) if rest else 0
    is_one_size = 0 < excess < sizes[0] and {sizes[place] for place in at} == {sizes[at[0]]}
    begins = at == list(range(at[0], len(sizes), at[0]))
    is_left_again = bool(rest) and left == excess and rest[0].cleared is None
    enough = is_left_again if at[0] == 1 else len(at) + is_left_again >= LEAST
    larger = [used[place] for place in at]
    return larger if is_one_size and begins and enough and not _is_rescaled(record, larger) else []


def _is_rescaled(record: Record, spans: list[Span]) -> bool:
    """The program writes the gradient itself, other than by clipping or unscaling: it may count what is in it."""
    return any(row.moment not in _clips(record) for span in spans for row in span.changed)


@table
def _clips(record: Record) -> frozenset[int]:
    rows = (row for row in record.optimizer_events if row.kind.startswith(("clip", "scaler")))
    return frozenset(row.moment for row in rows)


def _condition(record: Record, span: Span) -> int | None:
    """Return the innermost `if` around the step, else the step itself if the backward call stands in the same loop.

    None: another loop makes the backward calls of a step, so that a larger window can be meant.
    """
    step, call = _where_it_is_called(record, span), span.filled.site
    if step is None or call is None:
        return None
    node, tree = statement_at(record, step), tree_of(record, site_of(record, step))
    if node is None or tree is None:
        return None
    for above in tree.ancestors(node):
        if isinstance(above, ast.If):
            return number_at(record, above) or step
        if isinstance(above, _LOOPS):
            return step if above is _loop_around(record, call) else None
        if isinstance(above, Function):
            return None
    return None


def _where_it_is_called(record: Record, span: Span) -> int | None:
    """Return the statement of the step; in the backward call's function the one that led to it, if a method steps."""
    step, call, sites = span.updates[0].site, span.filled.site, lookup(record).sites
    moment = lookup(record).moments.get(span.updates[0].moment)
    if step is None or call is None or moment is None or moment.stack is None:
        return step
    if sites[step].function == sites[call].function:
        return step
    led = (site.site for site in calls(record, moment.stack) if site.function == sites[call].function)
    return next(led, step)


def _loop_around(record: Record, site: int) -> ast.AST | None:
    """Return the innermost loop around a statement; None: there is none in its function."""
    node, tree = statement_at(record, site), tree_of(record, site_of(record, site))
    around = () if node is None or tree is None else tree.ancestors(node)
    found = next((above for above in around if isinstance(above, (*_LOOPS, Function))), None)
    return found if isinstance(found, _LOOPS) else None


def _finding(record: Record, optimizer: Optimizer, spans: tuple[Span, ...], larger: list[Span], site: int) -> Finding:
    first, who, usual = larger[0], optimizer_name(record, optimizer.optimizer), len(spans[0].arrivals)
    step = first.updates[0].site
    left = len(first.arrivals) - usual
    calls = "One backward call" if left == 1 else f"{left} backward calls"
    trained = together(record, [first.tensor])
    return told(
        record,
        RULE,
        site,
        (
            f"A step of `{who}` takes {usual} backward calls, but {len(first.arrivals)} where an epoch begins.",
            f"{calls} left by the epoch before {'is' if left == 1 else 'are'} in the gradient of {trained} there.",
            "Step at the last batch of an epoch too, or let the count go on over epochs.",
        ),
        binding=who,
        moments=[span.updates[0].moment for span in larger],
        related=(
            ("this step takes the remainder too", None if step == site else step),
            ("this backward call leaves it", first.filled.site),
        ),
        evidence={"usual": usual, "taken": len(first.arrivals), "windows": len(larger)},
        tensors=(first.tensor,),
        optimizers=(optimizer.optimizer,),
    )
