"""BP502 nonfinite-gradient: the forward pass is finite, and this operation's gradient is not.

What it finds:
    In a backward call whose root is finite, one node gets a finite gradient and sends NaN or an infinity. The finding
    stands at the statement that made that node; where that met `-inf`, at the mask that wrote it, or at the
    one statement that gives `-inf` a name.

Why it matters:
    The loss looks right once more; after the update the parameters are NaN, and the loss of the next step is too. The
    line where NaN is seen is far from the line that made it.

What PyTorch does:
    The derivative of `sqrt` and of a norm at 0, of `acos` at 1 and of a power below 1 at 0 is infinite; times a zero
    from the chain rule it is NaN. Seen in torch 2.13; `detect_anomaly` raises there.

Example:
    import torch
    from torch import nn

    offset = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([offset], lr=0.1)
    for _ in range(2):
        radius = offset.pow(2).sum().sqrt()  # <- here
        loss = (radius - 1).pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    offset = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([offset], lr=0.1)
    for _ in range(2):
        radius = (offset.pow(2).sum() + 1e-8).sqrt()
        loss = (radius - 1).pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the program looks at the gradient and leaves the step out
    import torch
    from torch import nn

    offset = nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([offset], lr=0.1)
    for step in range(3):
        shifted = offset + step
        loss = (shifted.pow(2).sum().sqrt() - 1).pow(2)
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(offset.grad).all():
            optimizer.step()

Blind spots:
    A node of a library's module stands at the statement that called the module.

Source:
    Derivatives of sqrt, acos and pow at the edges of their domain; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import operation_name
from backprobe.rules.analysis.tensors.birth_findings import births_of, name_of, told_birth
from backprobe.rules.analysis.tensors.written_masks import infinity_named, masked_at
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="nonfinite-gradient",
    code="BP502",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("stats", "node", "backward", "parents", "grad-life"),
)


_ADVICE: Final = {
    "Sqrt": "Add an eps inside the root: `(x + 1e-8).sqrt()`.",
    "Rsqrt": "Add an eps inside the root: `(x + 1e-8).rsqrt()`.",
    "Pow": "Keep the base away from 0 where the exponent is below 1: add an eps, or clamp it.",
    "Acos": "Keep the argument inside (-1, 1): clamp it to 1 - 1e-6.",
    "Asin": "Keep the argument inside (-1, 1): clamp it to 1 - 1e-6.",
    "LinalgVectorNorm": "Add an eps before the norm, or take the root of a sum with an eps.",
    "Norm": "Add an eps before the norm, or take the root of a sum with an eps.",
}


_OF_LOGARITHMS: Final = frozenset({"Logaddexp", "Logaddexp2", "Logsumexp", "Logcumsumexp", "LogSoftmax", "Softmax"})
"""Of nothing but `-inf` their derivative is `inf - inf`."""


def check(record: Record) -> Iterator[Finding]:
    """One finding at most: what comes after the first is its consequence."""
    for birth in births_of(record, "gradient"):
        kind = "this operation" if birth.node is None else birth.node.type.partition("Backward")[0]
        advice = next((text for name, text in _ADVICE.items() if kind == name), "Keep its input away from the edge.")
        operation = kind if birth.node is None else f"`{operation_name(birth.node.type)}`"
        what = "an infinite gradient" if birth.what == "inf" else "NaN"
        mask = masked_at(record, birth) if birth.what == "NaN" else None
        if birth.what == "NaN" and (mask is not None or kind in _OF_LOGARITHMS):
            constant = infinity_named(record, birth.site if mask is None else mask)
            mask = mask if constant is None else constant.site
        first = f"`{name_of(record, birth)}` is finite, and its gradient is not: {operation} sends {what} here."
        if mask is not None:
            first = f"`-inf` is written here: the gradient of {operation} turns it into NaN, though the loss is finite."
        yield told_birth(
            record,
            RULE,
            birth,
            first,
            advice if mask is None else "Mask with a large finite number (-1e9), or after this operation.",
            at=mask,
            born="NaN comes out here, of what is `-inf`",
        )
