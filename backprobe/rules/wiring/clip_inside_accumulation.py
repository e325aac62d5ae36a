"""BP766 clip-inside-accumulation: gradients are clipped after each backward call though several feed one step.

What it finds:
    `clip_grad_norm_` or `clip_grad_value_` cut a gradient to which the same backward statement then adds more before
    the optimizer steps, in at least two steps.

Why it matters:
    The limit holds for the sums so far, not for the gradient of the step: earlier micro-batches are scaled down again
    and again, the last one counts most, and the sum may exceed the limit.

What PyTorch does:
    Clipping scales `.grad` in place, with all that has been accumulated in it. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(torch.randn(6, 8, 3)):
        (model(x) - 5).pow(2).mean().div(2).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # <- here
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(torch.randn(6, 8, 3)):
        (model(x) - 5).pow(2).mean().div(2).backward()
        if i % 2 == 1:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad()

Near miss: the gradient of one loss is limited before another one's is added
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        (model(x) - 5).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        model(x).abs().mean().backward()
        optimizer.step()

Near miss: the limit is infinite, the norm is only measured
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(torch.randn(6, 8, 3)):
        (model(x) - 5).pow(2).mean().div(2).backward()
        print(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))
        if i % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()

Blind spots:
    Gradients that are scaled by hand, without a function of `torch.nn.utils`, are not judged.

Source:
    torch.nn.utils.clip_grad_norm_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.clips import Clip, clips, only_measures
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.source.scopes import Function, scope_of
from backprobe.rules.analysis.source.syntax import (
    method_called,
    number_at,
    parts_of,
    site_of,
    statement_at,
    tree_of,
)
from backprobe.rules.analysis.training.enclosing_loops import called_from
from backprobe.rules.analysis.training.updates import Update
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Record
    from backprobe.rules.analysis.gradients.grad_spans import Span
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="clip-inside-accumulation",
    code="BP766",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("optimizer", "grad-life", "backward"),
)

_HELPERS: Final = 4
"""Callers that are followed."""

_ORDERED: Final = frozenset({"backward", "step"})

LEAST: Final = 2
"""Updates whose gradient was clipped too early: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that clips while gradients are still being summed."""
    by_site: dict[int, list[Clip]] = {}
    for clip in clips(record):
        by_site.setdefault(clip.site, []).append(clip)
    for site, found in by_site.items():
        early = [(clip, one[0], one[1]) for clip in found if (one := _added_later(clip)) is not None]
        steps = {update.moment for _clip, _added, update in early}
        if len(steps) >= LEAST and not only_measures(record, site, [clip.event for clip in found]):
            yield _finding(record, site, early)


def _added_later(clip: Clip) -> tuple[LeafGrad, Update] | None:
    """What the same backward statement added to a gradient after it was clipped, and the update that used the sum."""
    for span in clip.spans:
        found = _in_span(span, clip.event.moment)
        if found is not None:
            return found
    return None


def _in_span(span: Span, at: int) -> tuple[LeafGrad, Update] | None:
    use = next((update for update in span.updates if update.moment > at), None)
    if use is None or span.updates[0] is not use:  # what a step has used before is no sum of micro-batches
        return None
    before = {row.site for row in span.arrivals if row.moment <= at}
    later = [row for row in span.added if at < row.moment < use.moment and row.site in before]
    return (later[0], use) if later else None


def _out_of_order(record: Record, site: int) -> int:
    """The clip, or the call of the helper around it: in a function that neither walks back nor steps it is in order."""
    here = site
    for _ in range(_HELPERS):
        node, tree = statement_at(record, here), tree_of(record, site_of(record, here))
        function = None if node is None or tree is None else scope_of(tree, node)
        if not isinstance(function, Function) or any(method_called(part) in _ORDERED for part in parts_of(function)):
            return here
        above = called_from(record, here)
        called = None if above is None else number_at(record, above)
        if called is None:
            return site
        here = called
    return site


def _finding(record: Record, site: int, early: list[tuple[Clip, LeafGrad, Update]]) -> Finding:
    clip, added, update = early[0]
    who = optimizer_name(record, update.optimizer)
    tensors = sorted({span.tensor for span in clip.spans})
    return told(
        record,
        RULE,
        _out_of_order(record, site),
        (
            f"`{clip.name}` clips here while gradients are still being summed for a step of `{who}`.",
            f"Later backward calls add to {together(record, tensors)}, beyond the limit, and the first count less.",
            f"Clip once, between the last backward call and `{who}.step()`.",
        ),
        binding=who,
        moments=[one.event.moment for one, _added, _update in early],
        related=(("this backward call adds to what was clipped", added.site), ("this step uses the sum", update.site)),
        evidence={"limit": clip.event.limit, "norm": clip.event.total_norm, "calls": len(early)},
        tensors=tensors,
        optimizers=() if update.optimizer is None else (update.optimizer,),
    )
