"""BP848 noise-drawn-again: a model is asked for noise that never went into what it was given.

What it finds:
    The target of a regression is drawn at random and used nowhere else, while the model's input holds another draw of
    the same size, mixed with the data.

Why it matters:
    The answer cannot be known from the input. The best guess is the mean, zero, and that is all that is learnt.

What PyTorch does:
    Each call of `randn_like` draws anew. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.arange(96.0).view(3, 8, 4):
        noise = torch.randn_like(x)
        mixed = 0.8 * x + 0.6 * torch.randn_like(x)  # <- here
        loss = nn.functional.mse_loss(model(mixed), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.arange(96.0).view(3, 8, 4):
        noise = torch.randn_like(x)
        mixed = 0.8 * x + 0.6 * noise
        loss = nn.functional.mse_loss(model(mixed), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: clean data are the target
    import torch
    from torch import nn

    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(8, 4)
        loss = nn.functional.mse_loss(model(x + 0.1 * torch.randn_like(x)), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Losses that are written out, and noise that library code draws, are not judged.

Source:
    J. Ho et al.: Denoising diffusion probabilistic models, algorithm 1; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_calls import LossCall, loss_calls, tensor_given
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.operation_chains import argument_of, behind, is_draw, last_name_of, takers
from backprobe.rules.analysis.tensors.parents import made_by
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="noise-drawn-again",
    code="BP848",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("call", "node", "backward", "parents"),
)

LEAST: Final = 2
"""Losses: once is no pattern."""
_MIXING: Final = frozenset({"+", "add", "lerp", "addcmul"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement in which the noise of the input is mixed in."""
    found: dict[int, list[tuple[LossCall, Operation]]] = {}
    for one in loss_calls(record, "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
        target = tensor_given(one.call, "target")
        drawn = None if target is None else made_by(record).get(target)
        if target is None or drawn is None or not is_draw(drawn) or _is_used(record, target, one):
            continue
        mixed = _mixed(record, one, drawn)
        if mixed is not None:
            found.setdefault(_given_out(record, mixed), []).append((one, drawn))
    for site, ones in found.items():
        if len(ones) >= LEAST:
            yield _finding(record, site, ones)


def _is_used(record: Record, target: int, one: LossCall) -> bool:
    """Something but the loss takes the target in, and gives a tensor of its size."""
    shape = lookup(record).tensors[target].shape
    return any(
        row.tensor not in one.call.outputs and (row.result != "tensor" or row.shape == shape)
        for row in takers(record).get(target, ())
    )


def _mixed(record: Record, one: LossCall, drawn: Operation) -> Operation | None:
    """The sum behind the model's input in which another draw of the target's size stands."""
    given = argument_of(record, one.call, 0, "input")
    for row in () if given is None else behind(record, given):
        if isinstance(row, int) or last_name_of(row) not in _MIXING or row.requires_grad or row.shape != drawn.shape:
            continue
        inside = [part for part in behind(record, row) if is_draw(part)]
        if any(not isinstance(part, int) and part.shape == drawn.shape and part is not drawn for part in inside):
            return row
    return None


def _given_out(record: Record, mixed: Operation) -> int:
    """The statement of the caller that the sum is handed to, or its own."""
    return mixed.statement if mixed.tensor is None else _last(record).get(mixed.tensor, mixed.statement)


@table
def _last(record: Record) -> dict[int, int]:
    """The statement of the last operation that gave, or handed on, each tensor."""
    return {row.tensor: row.statement for row in record.operations if row.tensor is not None}


def _finding(record: Record, site: int, ones: list[tuple[LossCall, Operation]]) -> Finding:
    first, drawn = ones[0]
    target = tensor_given(first.call, "target")
    bound = [] if target is None else lookup(record).bindings_of[target]
    name = bound[0].name if bound else "the target"
    return told(
        record,
        RULE,
        site,
        (
            f"The model is asked for `{name}`, which was drawn for the loss alone; its input holds another draw.",
            "The answer cannot be known from the input: what is learnt is to say zero.",
            f"Mix `{name}` itself into the input.",
        ),
        binding=name,
        moments=[one.moment for one, _drawn in ones],
        related=(("the target is drawn here", drawn.statement), ("the loss", first.site)),
        evidence={"losses": len(ones), "assumed": "the noise that is mixed in is what the model is to find"},
    )
