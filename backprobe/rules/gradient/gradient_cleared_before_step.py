"""BP212 gradient-cleared-before-step: gradients are cleared between the backward call and the step.

What it finds:
    A backward call filled the gradients of an optimizer's parameters, they were cleared, unused but for a look, and
    the step that followed found none, or zeros, in all of them. The finding stands at the clear.

Why it matters:
    Nothing is trained. With momentum or weight decay the parameters still move, which hides it.

What PyTorch does:
    A parameter whose `.grad` is None is skipped by `step`; one whose gradient is zero moves by momentum and decay only.
    Neither is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.zero_grad()  # <- here
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

Near miss: a bad batch is skipped with its step
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for turn in range(4):
        model(torch.randn(4, 3)).pow(2).mean().backward()
        if turn == 1:
            optimizer.zero_grad()
            continue
        optimizer.step()
        optimizer.zero_grad()

Near miss: the gradient was looked at
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(4, 3)).pow(2).mean().backward()
    print(model.weight.grad.norm(), model.bias.grad)
    optimizer.zero_grad()
    for _ in range(3):
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

Blind spots:
    A step that finds some gradients and lacks others is not judged here: its parameters may be frozen on purpose.

Source:
    torch.optim.Optimizer.zero_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.training.updates import Update, updates
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="gradient-cleared-before-step",
    code="BP212",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("grad-life", "optimizer"),
    explains=("step-without-gradient",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer and place of the clear."""
    groups: dict[tuple[int | None, int], list[tuple[Update, list[Span]]]] = {}
    start: dict[int | None, int] = {}
    for update in updates(record):
        cleared = _cleared(record, update, start.get(update.optimizer, -1))
        start[update.optimizer] = update.moment
        if cleared:
            row = cleared[0].cleared
            if row is not None and row.site is not None:
                groups.setdefault((update.optimizer, row.site), []).append((update, cleared))
    for (optimizer, site), found in groups.items():
        yield _finding(record, optimizer, site, found)


@table
def _used(record: Record) -> dict[int, frozenset[tuple[int, int | None]]]:
    """By leaf the updates that found a gradient in it, as moment and optimizer."""
    return {
        tensor: frozenset((one.moment, one.optimizer) for span in spans for one in span.updates)
        for tensor, spans in grad_spans(record).items()
    }


def _filled(span: Span) -> int:
    return span.filled.moment


def _cleared(record: Record, update: Update, start: int) -> list[Span]:
    """The gradients that were cleared unread since the last update, if the update found no other at all.

    One that another optimizer used before it was cleared is not lost: a step that wraps another one, as of SAM, ends
    after that one's clear, and an optimizer of the wrong parameters finds what their own has used.
    """
    found: list[Span] = []
    for tensor in sorted(update.tensors):
        spans = grad_spans(record).get(tensor, ())
        if (update.moment, update.optimizer) in _used(record).get(tensor, ()):
            return []
        first = bisect_right(spans, start, key=_filled)
        since = spans[first : bisect_left(spans, update.moment, lo=first, key=_filled)]
        if any(span.cleared is None or (span.reads and _is_written(record, tensor, span, update)) for span in since):
            return []
        if any(span.updates for span in since[-1:]):
            return []
        found += since[-1:]
    return found


def _is_written(record: Record, tensor: int, span: Span, update: Update) -> bool:
    """What was read may have been used: the program wrote the leaf itself before the update."""
    return any(
        row.done_by == "statement" and span.filled.moment < row.moment <= update.moment
        for row in lookup(record).inplace_of[tensor]
    )


def _finding(record: Record, optimizer: int | None, site: int, found: list[tuple[Update, list[Span]]]) -> Finding:
    update, spans = found[0]
    who = optimizer_name(record, optimizer)
    tensors = [span.tensor for span in spans]
    zeroed = spans[0].zeroed
    return told(
        record,
        RULE,
        site,
        (
            f"The gradients are cleared here, before `{who}` steps.",
            f"The step finds {'zeros' if zeroed else 'none'} in {together(record, tensors)}, so nothing is learnt.",
            "Clear after the step, or before the backward call.",
        ),
        binding=who,
        moments=[one.moment for one, _spans in found],
        related=(("this backward call filled them", spans[0].filled.site), ("this step finds nothing", update.site)),
        evidence={"tensors": tensors[:16], "left": "zeros" if zeroed else "None"},
        tensors=tensors,
        optimizers=() if optimizer is None else (optimizer,),
    )
