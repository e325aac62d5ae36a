"""BP769 scheduler-past-its-end: a schedule of a fixed length is stepped once more than that.

What it finds:
    A step of `OneCycleLR` raised, since the schedule has made all the steps that it was built for. Often it is built
    for the epochs and stepped for the batches. The finding stands at the length that it is built with, else at the
    step.

Why it matters:
    The program stops in the middle of training. Before that it ran through the whole cycle far too early.

What PyTorch does:
    `OneCycleLR` knows its number of steps, `total_steps` or `epochs * steps_per_epoch`, and raises a ValueError: "Tried
    to step 5 times. The specified number of total steps is 4". Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model, epochs = nn.Linear(3, 1), 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs)  # <- here
    for epoch in range(epochs):
        for x in torch.randn(3, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

Use instead:
    import torch
    from torch import nn

    model, epochs = nn.Linear(3, 1), 2
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=3 * epochs)
    for epoch in range(epochs):
        for x in torch.randn(3, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

Near miss: a schedule without an end
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Blind spots:
    Schedules that go on beyond their length in silence are judged by BP768, as far as it can tell.

Source:
    torch.optim.lr_scheduler.OneCycleLR in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.naming import receiver
from backprobe.rules.analysis.source.syntax import method_called, number_at, region_in, trees
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_with_text
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding, Region

RULE = Rule(
    name="scheduler-past-its-end",
    code="BP769",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised",),
)

_TEXT: Final = "The specified number of total steps is "
_NUMBERS: Final = re.compile(r"Tried to step (\d+) times.*total steps is (\d+)", re.DOTALL)


def check(record: Record) -> Iterator[Finding]:
    """One finding per step that raised."""
    for raised in raised_with_text(record, _TEXT):
        numbers = _NUMBERS.search(raised.message)
        length = "the steps that it was built for" if numbers is None else f"the {numbers[2]} steps it was built for"
        name = receiver(record, raised.site, "step") or "the schedule"
        built = _length_given(record)
        yield told(
            record,
            RULE,
            raised.site or 0 if built is None else built[0],
            (
                f"`{name}` has made {length}, and is stepped again.",
                "It raises, and the cycle that was meant for the whole training is over.",
                "Build it for all calls of `step()`, epochs times batches, or step it once per epoch.",
            ),
            binding=name,
            moments=[raised.moment or 0],
            region=None if built is None else built[1],
            related=(("raised here", None if built is None else raised.site),),
            evidence={"raised": raised.message, "total_steps": None if numbers is None else int(numbers[2])},
            level=level_of(record, raised),
        )


def _length_given(record: Record) -> tuple[int, Region] | None:
    """Where the one schedule of that kind in the program is told its length."""
    found: list[tuple[int, Region]] = []
    for source, tree in trees(record).items():
        for call in (part for part in tree.nodes if method_called(part) == "OneCycleLR"):
            around = next((one for one in tree.ancestors(call) if isinstance(one, ast.stmt)), None)
            number = number_at(record, around)
            if isinstance(call, ast.Call) and number is not None:
                told_so = next((one for name in _LENGTHS for one in call.keywords if one.arg == name), None)
                found.append((number, region_in(record, source, told_so or call)))
    return found[0] if len(found) == 1 else None


_LENGTHS: Final = ("total_steps", "steps_per_epoch", "epochs")
