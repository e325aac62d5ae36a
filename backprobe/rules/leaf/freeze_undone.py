"""BP113 freeze-undone: what one statement freezes, another makes trainable again before anything is trained.

What it finds:
    A statement sets `requires_grad` of some parameters to False. Before the first backward call, and before any of them
    is used, another statement sets it to True for each of them. The finding stands at that second statement.

Why it matters:
    The layers that were to stay as they are get gradients and are trained.

What PyTorch does:
    The flag is what was written last. A loop over all parameters, as one that sorts them into groups for an optimizer,
    reaches the frozen ones too. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    for weight in model[0].parameters():
        weight.requires_grad = False
    decay, rest = [], []
    for weight in model.parameters():
        weight.requires_grad = True  # <- here
        (decay if weight.ndim > 1 else rest).append(weight)
    optimizer = torch.optim.SGD([{"params": decay, "weight_decay": 0.01}, {"params": rest}], lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    for weight in model[0].parameters():
        weight.requires_grad = False
    decay, rest = [], []
    for weight in model.parameters():
        if weight.requires_grad:
            (decay if weight.ndim > 1 else rest).append(weight)
    optimizer = torch.optim.SGD([{"params": decay, "weight_decay": 0.01}, {"params": rest}], lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: all is frozen, and then the head is not
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))
    model.requires_grad_(False)
    model[2].requires_grad_(True)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: two networks take turns
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 4), nn.Linear(4, 1)
    judge.requires_grad_(False)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for real in torch.randn(4, 8, 4):
        judge.requires_grad_(True)
        second.zero_grad()
        fake = maker(torch.randn(8, 2))
        (judge(real) - judge(fake.detach()) - 1).pow(2).mean().backward()
        second.step()
        judge.requires_grad_(False)
        first.zero_grad()
        (judge(maker(torch.randn(8, 2))) - 1).pow(2).mean().backward()
        first.step()

Blind spots:
    A flag that one helper sets to either value, by an argument, is not judged; nor is a later phase that thaws.

Source:
    torch.Tensor.requires_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.training.trained_parameters import parameters
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="freeze-undone",
    code="BP113",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("module", "snapshot", "site", "grad-life", "backward"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flip:
    """A parameter that was switched off, and on again unless `on` is None: statements and moments."""

    tensor: int
    off: int
    off_at: int
    on: int | None
    on_at: int


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that thaws all that another one had frozen."""
    if not record.backward_calls:
        return
    first = record.backward_calls[0].moment_before
    by_site: dict[int, list[_Flip]] = {}
    for tensor in parameters(record):
        flip = _flip(record, tensor, first)
        if flip is not None:
            by_site.setdefault(flip.off, []).append(flip)
    for flips in by_site.values():
        sites = {flip.on for flip in flips}
        (site,) = sites if len(sites) == 1 else (None,)
        if site is None or site == flips[0].off or _is_used_between(record, flips):
            continue
        if all(flip.tensor in grad_lives(record) for flip in flips):
            yield _finding(record, site, flips)


@table
def _once_off(record: Record) -> frozenset[int]:
    """The tensors that were ever seen without the flag."""
    return frozenset(row.tensor for row in record.snapshots if not row.requires_grad)


def _flip(record: Record, tensor: int, first: int) -> _Flip | None:
    """How the flag of a parameter went before the first backward call; None if it stayed, or goes on changing later."""
    if tensor not in _once_off(record):
        return None
    history, moments = lookup(record).snapshots_of[tensor], lookup(record).moments
    if any(not row.requires_grad for row in history if row.moment >= first):
        history = [row for row in history if row.moment < first]
        if history and history[-1].requires_grad:
            return None
    before = [row for row in history if row.moment < first]
    found: _Flip | None = None
    for row, following in pairwise(before):
        site = moments[following.moment].site
        if row.requires_grad and not following.requires_grad and site is not None:
            found = _Flip(tensor=tensor, off=site, off_at=following.moment, on=None, on_at=first)
        elif found is not None and following.requires_grad and not row.requires_grad:
            found = _Flip(tensor=tensor, off=found.off, off_at=found.off_at, on=site, on_at=following.moment)
    return found


def _is_used_between(record: Record, flips: list[_Flip]) -> bool:
    """A module ran, or the program computed with tensors, between the two statements: a phase of its own."""
    start, end = max(flip.off_at for flip in flips), min(flip.on_at for flip in flips)
    moments = (row for row in record.moments if start < row.moment < end)
    ran = any(row.module_call is not None for row in moments)
    inside = (row for row in record.operations if row.moment is not None and start <= row.moment < end)
    return ran or any(row.result == "tensor" and row.shape and (row.operands or row.inner) for row in inside)


def _finding(record: Record, site: int, flips: list[_Flip]) -> Finding:
    tensors = sorted(flip.tensor for flip in flips)
    verb = "was" if len(tensors) == 1 else "were"
    return told(
        record,
        RULE,
        site,
        (
            f"This makes {together(record, tensors)} trainable again, which {verb} frozen before and not used since.",
            "The freeze has no effect: they get gradients.",
            "Leave out here what is frozen; or drop the freeze, if all is to be trained.",
        ),
        binding="requires_grad",
        moments=[flips[0].on_at],
        related=(("frozen here", flips[0].off),),
        evidence={"tensors": tensors[:16], "assumed": "what is frozen before training is to stay so"},
        tensors=tensors,
    )
