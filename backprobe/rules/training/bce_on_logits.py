"""BP805 bce-on-logits: `binary_cross_entropy` is given values outside 0 and 1.

What it finds:
    `binary_cross_entropy` raised "all elements of input should be between 0 and 1": its first argument holds
    logits, or a distance, or NaN.

Why it matters:
    The program stops, at the first batch with such a value.

What PyTorch does:
    The loss takes logarithms of its input and of 1 minus its input, and refuses what is outside [0, 1].
    `binary_cross_entropy_with_logits` takes any real numbers. Seen in torch 2.13 on the CPU.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    logits = model(torch.randn(8, 4) * 5)
    loss = nn.functional.binary_cross_entropy(logits, torch.ones(8, 1))  # <- here
    loss.backward()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    logits = model(torch.randn(8, 4) * 5)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, torch.ones(8, 1))
    loss.backward()

Near miss: probabilities
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    nn.functional.binary_cross_entropy(model(torch.randn(8, 4)).sigmoid(), torch.ones(8, 1)).backward()

Near miss: the program catches the exception
    import torch
    from torch import nn

    try:
        nn.functional.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))
    except RuntimeError as error:
        print(error)

Blind spots:
    Logits that happen to lie between 0 and 1 raise nothing and are not seen.

Source:
    torch.nn.BCELoss in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.losses.loss_calls import argument_text, callee, region_of_call, tensor_given, values_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, WatchedCall
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="bce-on-logits",
    code="BP805",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "call"),
)

_LOSS = "torch.nn.functional.binary_cross_entropy"


def check(record: Record) -> Iterator[Finding]:
    """One finding per call that raised."""
    for raised in raised_as(record, "probabilities-out-of-range"):
        call = _failed(record, raised)
        if call is not None and "input" in raised.message:
            yield _finding(record, raised, call)


def _failed(record: Record, raised: Raised) -> WatchedCall | None:
    """The call of the loss that ended with this exception: the last one at its statement."""
    found = [one for one in record.watched_calls if one.function == _LOSS and one.raised and one.site == raised.site]
    return found[-1] if found and raised.site is not None else None


def _finding(record: Record, raised: Raised, call: WatchedCall) -> Finding:
    given, text = tensor_given(call, "input"), argument_text(record, call, 0, "input")
    stats = None if given is None or raised.moment is None else values_of(record, given, raised.moment)
    measured = stats is not None and stats.min is not None and stats.max is not None
    values = f"from {stats.min:.3g} to {stats.max:.3g}" if measured and stats is not None else "outside 0 and 1"
    made = None if given is None else lookup(record).tensors[given].site
    name = callee(record, call)
    return told(
        record,
        RULE,
        raised.site or 0,
        (
            f"`{name}` wants probabilities, and `{text}` holds values {values}.",
            "It takes their logarithms, so it refuses what is outside 0 and 1.",
            "Use `binary_cross_entropy_with_logits` (`nn.BCEWithLogitsLoss`), or apply a sigmoid first.",
        ),
        binding=text,
        moments=[raised.moment or 0],
        region=region_of_call(record, call),
        related=((f"`{text}` is computed here", made if made != raised.site else None),),
        evidence={"raised": raised.message, "values": values},
        tensors=() if given is None else (given,),
        level=level_of(record, raised),
    )
