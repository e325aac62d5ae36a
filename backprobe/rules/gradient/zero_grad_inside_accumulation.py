"""BP211 zero-grad-inside-accumulation: of the gradients that were to add up for one step, all but the last are cleared.

What it finds:
    Several backward calls come to one step, again and again the same number, and each call's gradient is cleared before
    the next one comes. The finding stands at the clear.

Why it matters:
    The step sees the last part of the batch only; the work on the others is lost.

What PyTorch does:
    `zero_grad` empties `.grad` at once; what was in it is gone. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for part in range(6):
        optimizer.zero_grad()  # <- here
        model(torch.randn(4, 3)).pow(2).mean().backward()
        if part % 3 == 2:
            optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for part in range(6):
        (model(torch.randn(4, 3)).pow(2).mean() / 3).backward()
        if part % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()

Near miss: one bad batch is dropped
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for part in range(6):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        if part != 2:
            optimizer.step()

Near miss: the first call is for the input's gradient
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        x = torch.randn(4, 3, requires_grad=True)
        model(x).pow(2).mean().backward()
        attacked = (x + 0.1 * x.grad.sign()).detach()
        optimizer.zero_grad()
        model(attacked).pow(2).mean().backward()
        optimizer.step()

Near miss: the other network's loss went through this one
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(4):
        first.zero_grad()
        judge(maker(torch.randn(4, 2))).mean().backward()
        first.step()
        second.zero_grad()
        judge(torch.randn(4, 3)).pow(2).mean().backward()
        second.step()

Near miss: the optimizer asks for the loss several times in one step
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    x = torch.randn(8, 3)


    def closure():
        optimizer.zero_grad()
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()
        return loss


    for _ in range(3):
        optimizer.step(closure)

Blind spots:
    A number of calls that changes from step to step is taken for a choice of the program.

Source:
    torch.optim.Optimizer.zero_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.training.updates import Update, updates
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="zero-grad-inside-accumulation",
    code="BP211",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("grad-life", "optimizer"),
)

LEAST_STEPS: Final = 2
"""Steps with the same number of lost calls: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    for optimizer in dict.fromkeys(update.optimizer for update in updates(record) if update.optimizer is not None):
        steps = [update for update in updates(record) if update.optimizer == optimizer]
        lost = {tensor: _lost(record, tensor, steps) for tensor in sorted(steps[-1].tensors)}
        lost = {tensor: spans for tensor, spans in lost.items() if spans}
        if lost:
            yield from _finding(record, optimizer, lost)


def _lost(record: Record, tensor: int, steps: list[Update]) -> list[Span]:
    """The gradients of a leaf that were cleared unused, where every step had the same number of them; else none.

    A step before which no gradient was seen is left out: the recorder did not look at it, or the leaf took no part.
    """
    every = grad_spans(record).get(tensor, ())
    found: list[Span] = []
    counts: list[int] = []
    start = -1
    for step in steps:
        inside = [span for span in every if start < span.filled.moment <= step.moment]
        start = step.moment
        if not inside:
            continue
        dropped = [span for span in inside if not span.updates and _is_lost(record, span, inside[-1])]
        if len(inside) < 2 or len(dropped) != len(inside) - 1:
            return []
        counts.append(len(dropped))
        found += dropped
    # the first window may differ from the others: what cleared before it did not follow a step
    later = counts[1:] if len(counts) > LEAST_STEPS else counts
    return found if len(counts) >= LEAST_STEPS and len(set(later)) == 1 else []


def _is_lost(record: Record, span: Span, kept: Span) -> bool:
    """Cleared, never read, and its backward call gave nothing to any other leaf that was used.

    A leaf that adds up the gradients of this call and of the one that is kept is no such use. What an optimizer used
    inside its own step, as LBFGS does between two calls of its closure, is not lost.
    """
    if span.cleared is None or span.cleared.site is None or span.reads or span.filled.call is None:
        return False
    written = (one.moment for one in lookup(record).inplace_of[span.tensor] if one.done_by == "optimizer")
    if any(span.filled.moment < moment <= span.cleared.moment for moment in written):
        return False
    for tensor, others in grad_spans(record).items():
        for other in others:
            if tensor == span.tensor or other.filled.moment > span.filled.moment or not (other.updates or other.reads):
                continue
            calls = [row.call for row in other.arrivals]
            if span.filled.call in calls and kept.filled.call not in calls:
                return False
    return True


def _finding(record: Record, optimizer: int, lost: dict[int, list[Span]]) -> Iterator[Finding]:
    spans = next(iter(lost.values()))
    first = spans[0]
    if first.cleared is None or first.cleared.site is None:
        return
    who = optimizer_name(record, optimizer)
    yield told(
        record,
        RULE,
        first.cleared.site,
        (
            f"`{who}` steps once for several backward calls, and each call's gradient is cleared before the next.",
            f"Of {together(record, list(lost))} only the last part reaches the step.",
            "Clear after the step, not before each part.",
        ),
        binding=who,
        moments=[span.cleared.moment for span in spans if span.cleared is not None],
        related=(
            ("this call's gradient is lost", first.filled.site),
            ("this step sees the last one only", next(u.site for u in updates(record) if u.optimizer == optimizer)),
        ),
        evidence={"lost": len(spans), "tensors": list(lost)[:16]},
        tensors=lost,
        optimizers=(optimizer,),
    )
