"""BP722 clip-without-gradient: gradients are clipped where there are none.

What it finds:
    Every call of a `clip_grad_norm_` or `clip_grad_value_` finds no gradient: `.grad` is None, or zero, in all
    parameters that it is given. It stands before the backward call, after a clear, or has another model's
    parameters. Where it is given a `filter`, a generator or a `parameters()` that was walked before, as by the
    optimizer, the finding stands where that got its name: there it must become a list.

Why it matters:
    Nothing is clipped. A batch with a huge gradient moves the parameters by all of it.

What PyTorch does:
    Clipping leaves out parameters without a gradient, and returns a norm of 0 if all are. Nothing is said. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

Near miss: only the first call finds none
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()

Near miss: nothing is trained
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    for _ in range(3):
        print(nn.utils.clip_grad_norm_(model.parameters(), 1.0))

Near miss: a list of them serves the optimizer and the clipping
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    trained = list(filter(lambda p: p.requires_grad, model.parameters()))
    optimizer = torch.optim.SGD(trained, lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()

Blind spots:
    Parameters with gradients that no step uses are not told from those that are only measured. A
    `clip_grad_value_` that finds no gradient leaves no event.

Source:
    torch.nn.utils.clip_grad_norm_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.clips import Clip, clips
from backprobe.rules.analysis.optimizers.spent_iterators import Once, made_once, used_up_at
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import method_called, parts_of, region_in, site_of, statement_at, text_in
from backprobe.rules.edits.statement_moves import moved
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="clip-without-gradient",
    code="BP722",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("optimizer", "grad-life"),
)

LEAST: Final = 2
"""Calls: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that never clips anything."""
    by_site: dict[int, list[Clip]] = {}
    for clip in clips(record):
        by_site.setdefault(clip.site, []).append(clip)
    trains = any(event.kind == "step" and event.with_grad for event in record.optimizer_events)
    for site, found in by_site.items():
        if trains and len(found) >= LEAST and all(_finds_none(clip) for clip in found):
            spent = _spent(record, site, found)
            yield _finding(record, site, found) if spent is None else _finding_spent(record, site, found, spent)


def _finds_none(clip: Clip) -> bool:
    """The call changed no gradient, and its parameters have none or its norm is 0."""
    event = clip.event
    return not clip.spans and (event.with_grad == 0 or event.total_norm == 0)


def _spent(record: Record, site: int, found: list[Clip]) -> Once | None:
    """What the calls were given, where that was walked before: none of them got a single parameter."""
    if any(clip.event.with_grad or clip.event.without_grad for clip in found):
        return None
    calls = (part for part in parts_of(statement_at(record, site)) if method_called(part) == found[0].name)
    for call in calls:
        if isinstance(call, ast.Call):
            given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "parameters")]
            return made_once(record, site_of(record, site), given[0]) if given else None
    return None


def _finding_spent(record: Record, site: int, found: list[Clip], spent: Once) -> Finding:
    first, place = found[0], spent.site
    region = region_in(record, place.source, spent.value)
    text = text_in(record, place.source, region)
    what = f"`{text}`" if len(text) <= 40 and "\n" not in text else "This"
    edit = replacement(record, place, region, f"list({text})")
    return told(
        record,
        RULE,
        place.site,
        (
            f"{what} gives its parameters once, and `{first.name}` comes second: it finds none in {len(found)} calls.",
            "Nothing is clipped, so the steps use the gradients as they are.",
            "Keep a list: `list(...)`.",
        ),
        binding=first.name,
        moments=[clip.event.moment for clip in found],
        region=region,
        related=(
            ("this walks it", used_up_at(record, spent, site_of(record, site))),
            ("nothing is left for this", site),
        ),
        evidence={"calls": len(found), "with_grad": 0, "limit": first.event.limit, "walked_before": True},
        fixes=(Fix(title="Keep a list of them", safety="unsafe", edits=(edit,)),),
    )


def _finding(record: Record, site: int, found: list[Clip]) -> Finding:
    first = found[0]
    after = next((one.site for one in record.backward_calls if one.moment_before > first.event.moment), None)
    is_misplaced = after is not None and first.event.optimizer is not None  # its parameters are trained: by that one
    edits = moved(record, site, after, after=True) if is_misplaced and after is not None else ()
    return told(
        record,
        RULE,
        site,
        (
            f"`{first.name}` finds no gradient to clip, in any of its {len(found)} calls.",
            "`.grad` is None or zero in all parameters that it is given, so the steps use unclipped gradients.",
            "Clip the parameters that are trained, between `backward()` and the step.",
        ),
        binding=first.name,
        moments=[clip.event.moment for clip in found],
        related=(("the gradients come only here", after),),
        evidence={"calls": len(found), "with_grad": 0, "limit": first.event.limit},
        fixes=(Fix(title="Clip after the backward call", safety="unsafe", edits=edits),) if edits else (),
    )
