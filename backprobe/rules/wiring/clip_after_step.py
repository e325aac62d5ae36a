"""BP720 clip-after-step: gradients are clipped after the optimizer has used them.

What it finds:
    A call of `clip_grad_norm_` or `clip_grad_value_` that stands between the optimizer's step and the clearing of the
    gradients: the step has used them as they were, and nothing uses them afterwards.

Why it matters:
    Nothing is clipped. A batch with a huge gradient moves the parameters by all of it.

What PyTorch does:
    Clipping scales `.grad` in place; a step reads `.grad` as it is at that moment. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

Near miss: the norm is only measured
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        print(nn.utils.clip_grad_norm_(model.parameters(), float("inf")))

Near miss: a second optimizer steps on what was clipped
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    first = torch.optim.SGD([model.bias], lr=0.1)
    second = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        second.zero_grad()
        model(x).pow(2).mean().backward()
        first.step()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        second.step()

Blind spots:
    A call whose limit is never reached and whose result is used counts as a measurement. One such call in the whole run
    is not judged: once is no pattern.

Source:
    torch.nn.utils.clip_grad_norm_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.clips import Clip, clips, only_measures
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.training.updates import Update
from backprobe.rules.edits.statement_moves import moved
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="clip-after-step",
    code="BP720",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("optimizer", "grad-life"),
    explains=("divergence",),
)

LEAST: Final = 2
"""Calls in the wrong place: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that always clips too late."""
    by_site: dict[int, list[Clip]] = {}
    for clip in clips(record):
        by_site.setdefault(clip.site, []).append(clip)
    for site, found in by_site.items():
        late = [(clip, update) for clip in found if (update := _used_before(clip)) is not None]
        always = len(late) >= LEAST and len(late) == len(found)
        if always and not only_measures(record, site, [clip.event for clip in found]):
            yield _finding(record, site, late)


def _used_before(clip: Clip) -> Update | None:
    """The last update that used the clipped gradients, if none uses them afterwards."""
    at = clip.event.moment
    before = [update for span in clip.spans for update in span.updates if update.moment < at]
    after = [update for span in clip.spans for update in span.updates if update.moment > at]
    return max(before, key=lambda update: update.moment) if before and not after else None


def _finding(record: Record, site: int, late: list[tuple[Clip, Update]]) -> Finding:
    clip, update = late[0]
    who = optimizer_name(record, update.optimizer)
    tensors = sorted({span.tensor for span in clip.spans})
    edits = () if update.site is None else moved(record, site, update.site)
    return told(
        record,
        RULE,
        site,
        (
            f"`{clip.name}` comes after `{who}` has stepped: it scales gradients that nothing uses any more.",
            f"The step used the gradients of {together(record, tensors)} unclipped.",
            f"Clip between `backward()` and `{who}.step()`.",
        ),
        binding=who,
        moments=[one.event.moment for one, _update in late],
        related=((f"`{who}` has used the gradients here", update.site),),
        evidence={
            "limit": clip.event.limit,
            "norm": clip.event.total_norm,
            "tensors": tensors[:16],
            "calls": len(late),
        },
        fixes=(Fix(title="Clip before the step", safety="safe", edits=edits),) if edits else (),
        tensors=tensors,
        optimizers=() if update.optimizer is None else (update.optimizer,),
    )
