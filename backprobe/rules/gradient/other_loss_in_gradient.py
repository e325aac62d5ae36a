"""BP213 other-loss-in-gradient: the gradient of another loss is still there when a network's own is added.

What it finds:
    A backward call leaves gradients in the parameters of two optimizers; the one that it is meant for steps. The other
    one's parameters keep theirs, their own backward call adds to it, and their optimizer steps on the sum. The finding
    stands at that second call.

Why it matters:
    A discriminator is trained on the generator's wish as well: each step is partly the wrong way.

What PyTorch does:
    A backward call fills every leaf that its graph reaches, whosever optimizer holds it. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(3):
        first.zero_grad()
        judge(maker(torch.randn(4, 2))).mean().backward()
        first.step()
        judge(torch.randn(4, 3)).pow(2).mean().backward()  # <- here
        second.step()
        second.zero_grad()

Use instead:
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(3):
        first.zero_grad()
        judge(maker(torch.randn(4, 2))).mean().backward()
        first.step()
        second.zero_grad()
        judge(torch.randn(4, 3)).pow(2).mean().backward()
        second.step()

Near miss: one joint loss, then both step
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(3):
        judge(maker(torch.randn(4, 2))).mean().backward()
        judge(torch.randn(4, 3)).pow(2).mean().backward()
        first.step()
        second.step()
        first.zero_grad()
        second.zero_grad()

Blind spots:
    Two losses that are meant to add up, with the other network's step between them, look the same: the finding says
    what it assumes.

Source:
    torch.autograd.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.expressions import line_before
from backprobe.rules.finding import Fix
from backprobe.rules.grad_spans import Span, grad_spans
from backprobe.rules.lookup import lookup
from backprobe.rules.naming import capital, optimizer_name, receiver, together
from backprobe.rules.reach import reaches
from backprobe.rules.rule import Rule
from backprobe.rules.syntax import site_of, statement
from backprobe.rules.told import told
from backprobe.rules.updates import Update, updates

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Record
    from backprobe.rules.finding import Finding

RULE = Rule(
    name="other-loss-in-gradient",
    code="BP213",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("grad-life", "optimizer"),
)

LEAST: Final = 2
"""Times it must happen: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per place of the second call."""
    groups: dict[int, list[tuple[Span, Update, LeafGrad]]] = {}
    if len({update.optimizer for update in updates(record)}) < LEAST:
        return  # one optimizer has no other's loss in its gradients
    for spans in grad_spans(record).values():
        found = [mixed for span in spans if span.added and (mixed := _mixed(record, span)) is not None]
        if len(found) >= LEAST and found[0][2].site is not None:
            groups.setdefault(found[0][2].site, []).extend(found)
    for site, found in groups.items():
        yield _finding(record, site, found)


def _mixed(record: Record, span: Span) -> tuple[Span, Update, LeafGrad] | None:
    """Between two calls that filled a gradient, an optimizer stepped that the first was for and that lacks the leaf."""
    if not span.updates or span.updates[0].optimizer is None:
        return None
    for before, after in zip(span.arrivals, span.arrivals[1:], strict=False):
        if before.call is None or after.moment > span.updates[0].moment:
            return None
        for update in updates(record):
            others = update.optimizer is not None and span.tensor not in update.tensors
            if others and before.moment < update.moment < after.moment:
                meant = reaches(record)[before.call].leaves & update.tensors
                if meant and not (after.call is not None and reaches(record)[after.call].leaves & update.tensors):
                    return span, update, after
    return None


def _finding(record: Record, site: int, found: list[tuple[Span, Update, LeafGrad]]) -> Finding:
    span, update, after = found[0]
    own, other = optimizer_name(record, span.updates[0].optimizer), optimizer_name(record, update.optimizer)
    tensors = sorted({one.tensor for one, _update, _after in found})
    already = "already hold" if len(tensors) > 1 else "already holds"
    subject = f"{capital(together(record, tensors))} {already}"
    return told(
        record,
        RULE,
        site,
        (
            f"{subject} the gradient of the loss that `{other}` stepped on.",
            f"This backward call adds to it, and `{own}` steps on the sum of both.",
            f"Call `{own}.zero_grad()` before it.",
        ),
        binding=own,
        moments=sorted({row.moment for _span, _update, row in found}),
        related=(
            ("this call left a gradient here too", span.filled.site),
            (f"`{other}` steps on it", update.site),
            (f"`{own}` steps on the sum", span.updates[0].site),
        ),
        evidence={"tensors": tensors[:16], "assumed": "each optimizer steps on its own loss"},
        fixes=_fixes(record, span, after),
        tensors=tensors,
        calls=() if after.call is None else (after.call,),
        optimizers=(span.updates[0].optimizer,) if span.updates[0].optimizer is not None else (),
    )


def _fixes(record: Record, span: Span, after: LeafGrad) -> Iterator[Fix]:
    step = span.updates[0].site
    held = receiver(record, step, "step")
    if held is None or after.site is None or step is None:
        return
    site = site_of(record, after.site)
    node = statement(record, site)
    if node is not None and lookup(record).sites[step].function == site.function:
        added = line_before(record, site, node, f"{held}.zero_grad()")
        if added is not None:
            yield Fix(title="Clear before its own backward call", safety="unsafe", edits=(added,))
