"""BP952 ledger-broken: an optimizer used something else than the gradients since its last step.

What it finds:
    Each gradient that a backward call adds to `.grad` should be used by one step of the leaf's optimizer, together
    with those that belong to it. The finding names the first place where that is not so, in at least two steps, and
    where no rule explains it: a gradient is used by two steps, is cleared before any step used it, comes from another
    loss, is added after clipping, belongs to a graph that was walked twice, or is left over from a step that was
    skipped.

Why it matters:
    The program runs and the loss falls, but not along the gradient of its loss.

What PyTorch does:
    `backward()` adds to `.grad` and never clears it. `step()` reads `.grad` and never clears it. `zero_grad()` clears
    what its own optimizer holds. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(12):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        if step % 4 == 3:
            losses.append(loss.item())
            continue
        optimizer.step()
        optimizer.zero_grad()  # <- here

Use instead:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for step in range(12):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        if step % 4 == 3:
            losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()

Near miss: gradients of four batches are added on purpose
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(12):
        (model(torch.randn(8, 4)).pow(2).mean() / 4).backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()

Near miss: a second loss in the first step of each epoch
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def losses(batch, step):
        yield model(batch).pow(2).mean()
        if step == 0:
            yield 0.01 * model.weight.pow(2).sum()

    for epoch in range(3):
        for step in range(4):
            for loss in losses(torch.randn(8, 4), step):
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()

Blind spots:
    A run whose steps are sampled is judged up to its first step that was not recorded. Optimizers that call a closure
    several times per step, as LBFGS does, are left out.

Source:
    torch.optim and torch.autograd in PyTorch's documentation: a backward call adds to `.grad`, a step reads it. At
    least two steps: one unusual step can be the last one, or a warm-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.invariants.grad_ledger import first_unseen_step
from backprobe.rules.analysis.invariants.ledger_breaches import Kind, ledger_breaches
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.analysis.training.trained_parameters import parameters
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="ledger-broken",
    code="BP952",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("backward", "optimizer"),
)
EXPLAINED_BY = ("BP2", "BP3", "BP7")
"""Families of rules whose findings explain a breach."""

_WORDS: Final[dict[Kind, tuple[str, str]]] = {
    "used-again": (
        "This backward call adds to gradients of `{name}` that an earlier step has already used.",
        "Clear the gradients after each step, with `zero_grad()` of the optimizer that holds `{name}`.",
    ),
    "only-old": (
        "This step uses gradients of `{name}` that it has already used: no backward call came in between.",
        "Call `step()` once for each backward call, or clear the gradients after it.",
    ),
    "other-loss": (
        "The gradient of `{name}` that a step uses contains what this call added for another optimizer's step.",
        "Clear the gradients of `{name}` before the backward call of its own loss.",
    ),
    "other-loss-before-step": (
        "This call adds another optimizer's loss to the gradient of `{name}` before the step on it.",
        "Step the optimizer of `{name}` before this call, or hand its output in with `.detach()`.",
    ),
    "added-after-clip": (
        "Gradients of `{name}` are clipped here, and a later backward call adds to them before the step.",
        "Clip once, after the last backward call before the step.",
    ),
    "clipped-in-vain": (
        "Gradients of `{name}` are clipped here after the step has used them, and are cleared before the next step.",
        "Clip between the backward call and the step.",
    ),
    "walked-twice": (
        "This call walks through the root of an earlier one: the step uses that part of `{name}`'s gradient twice.",
        "Call `backward()` once, on the sum.",
    ),
    "lost": (
        "Gradients of `{name}` are cleared here before any step used them.",
        "Call `step()` before the gradients are cleared.",
    ),
    "left-over": (
        "A step uses gradients of `{name}` from more backward calls than the other steps do: some were left over.",
        "Clear the gradients also when a step is skipped, and after the last incomplete group of batches.",
    ),
}


def check(record: Record) -> Iterator[Finding]:
    """Yield one finding for each kind of breach of an optimizer's leaves."""
    names = parameters(record)
    for breach in ledger_breaches(record):
        name = names.get(breach.tensors[0]) or f"tensor {breach.tensors[0]}"
        seen, advice = (line.format(name=name) for line in _WORDS[breach.kind])
        more = len(breach.tensors) - 1
        counted = f"Seen {len(breach.moments)} times" + (f", with {more} more parameters." if more else ".")
        yield told(
            record,
            RULE,
            breach.site,
            (seen, counted, advice),
            binding=name,
            moments=breach.moments,
            tensors=breach.tensors,
            optimizers=[breach.optimizer],
            evidence={"breach": breach.kind, "parameters": len(breach.tensors)},
        )


def measure_coverage(record: Record) -> Coverage:
    """Return how many optimizer steps lie before the first one that was not recorded in full."""
    steps = [event for event in record.optimizer_events if event.kind == "step"]
    unseen = first_unseen_step(record)
    checked = sum(unseen is None or step_of(record, event.moment) < unseen for event in steps)
    why = "no optimizer stepped" if not steps else "" if checked else "no step was recorded in full"
    return Coverage(
        checked=checked, total=max(len(steps), *(row.step + 1 for row in record.steps), 0), unit="steps", why=why
    )
