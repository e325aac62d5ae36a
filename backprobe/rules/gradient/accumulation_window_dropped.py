"""BP268 accumulation-window-dropped: the last micro-batches of an epoch are summed and thrown away.

What it finds:
    Several backward calls, always the same number of them, feed each step; but at least twice fewer were left over,
    which no step used: a clear outside of their loop threw them away, or the run ended. The finding stands at that
    clear.

Why it matters:
    These batches are computed and never learnt from, in each epoch the same ones if the data is not shuffled.

What PyTorch does:
    `zero_grad()` empties `.grad` whether it was used or not. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()  # <- here
        for i, x in enumerate(torch.randn(5, 8, 3)):
            model(x).pow(2).mean().div(2).backward()
            if i % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()
        batches = torch.randn(5, 8, 3)
        for i, x in enumerate(batches):
            model(x).pow(2).mean().div(2).backward()
            if i % 2 == 1 or i + 1 == len(batches):
                optimizer.step()
                optimizer.zero_grad()

Near miss: a bad batch is thrown away with its window
    import torch
    from torch import nn

    model, waiting = nn.Linear(3, 1), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(torch.randn(10, 8, 3)):
        model(x).pow(2).mean().div(2).backward()
        waiting += 1
        if i in (2, 7):
            optimizer.zero_grad()
            waiting = 0
        elif waiting == 2:
            optimizer.step()
            optimizer.zero_grad()
            waiting = 0

Near miss: it comes out even
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        optimizer.zero_grad()
        for i, x in enumerate(torch.randn(4, 8, 3)):
            model(x).pow(2).mean().div(2).backward()
            if i % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()

Blind spots:
    What is left over and not cleared goes into the first step of the next epoch: BP270 is told of that.

Source:
    Observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans, stepped_by
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="accumulation-window-dropped",
    code="BP268",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("grad-life", "optimizer", "backward"),
)

LEAST: Final = 2
"""Windows left over, and windows that were stepped: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer and clear."""
    for optimizer in record.optimizers:
        for row in optimizer.tensors:
            found = _left_over(record, grad_spans(record).get(row.tensor, ()), optimizer.optimizer)
            if found:
                yield _finding(record, optimizer, found)
                break


def _left_over(record: Record, spans: tuple[Span, ...], optimizer: int) -> list[Span]:
    """The gradients that were filled by fewer calls than each step used, and that no step used, in order."""
    used = stepped_by(record, spans[0].tensor, optimizer) if spans else []
    usual = {len(span.arrivals) for span in used}
    if len(used) < LEAST or len(usual) != 1 or max(usual) < LEAST:
        return []
    size = max(usual)
    left = [span for span in spans if not span.updates and not span.reads and 0 < len(span.arrivals) < size]
    thrown = [span for span in left if _is_cleared_outside(record, span)]
    at_end = [span for span in left if span.cleared is None]
    return [*thrown, *at_end] if thrown and len(thrown) + len(at_end) >= LEAST and len(left) < len(spans) else []


def _is_cleared_outside(record: Record, span: Span) -> bool:
    """The clear stands outside of the innermost loop around the backward call."""
    if span.cleared is None or span.cleared.site is None or span.filled.site is None:
        return False
    clear, call = site_of(record, span.cleared.site), site_of(record, span.filled.site)
    return (clear.function, clear.loop_line) != (call.function, call.loop_line)


def _finding(record: Record, optimizer: Optimizer, found: list[Span]) -> Finding:
    first, who = found[0], optimizer_name(record, optimizer.optimizer)
    clear = first.cleared
    site = clear.site if clear is not None and clear.site is not None else first.filled.site or 0
    number = len(first.arrivals)
    calls = "one backward call" if number == 1 else f"{number} backward calls"
    return told(
        record,
        RULE,
        site,
        (
            f"This clears what {calls} left for `{who}`, which no step has used.",
            f"The last batches never train {together(record, [first.tensor])}: they are fewer than a step takes.",
            "Step what is left over after the loop, or at its last batch.",
        ),
        binding=who,
        moments=[span.filled.moment for span in found],
        related=(("this backward call was in vain", first.filled.site),),
        evidence={"windows_left_over": len(found), "calls_in_first": number},
        tensors=(first.tensor,),
        optimizers=(optimizer.optimizer,),
    )
