"""BP501 nonfinite-forward: the first NaN or infinity comes out of this statement, from finite values.

What it finds:
    A value that goes on to the root of a backward call holds NaN or an infinity, and everything that it was computed
    from is finite. The finding stands at that statement, not at the loss where it is noticed.

Why it matters:
    One such value makes every gradient NaN, the next update makes every parameter NaN, and the run is lost.

What PyTorch does:
    It follows IEEE 754: `log(0)` is -inf, `0 / 0` and `inf - inf` are NaN, `std` of one value is NaN, and all go on
    without a word. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Linear(3, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        share = net(torch.randn(8, 3)).mul(200).softmax(1)
        surprise = -torch.log(share)  # <- here
        loss = surprise.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net = nn.Linear(3, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        surprise = -net(torch.randn(8, 3)).log_softmax(1)
        loss = surprise.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a mask of -inf in front of a softmax whose rows keep an entry
    import torch
    from torch import nn

    net = nn.Linear(3, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    closed = torch.tensor([False, False, True, False, True])
    for _ in range(3):
        scores = net(torch.randn(8, 3)).masked_fill(closed, float("-inf"))
        loss = scores.softmax(1)[:, 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Inside a library's module the finding stands at the statement that called it. Where parts of one statement give the
    value, the deep tier names the op.

Source:
    IEEE 754-2019, section 7; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.tensors.bad_values import bad_since
from backprobe.rules.analysis.tensors.birth_findings import births_of, name_of, told_birth
from backprobe.rules.analysis.tensors.births import held_by_reads
from backprobe.rules.analysis.tensors.written_masks import masked_at
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.tensors.births import Birth
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="nonfinite-forward",
    code="BP501",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("stats", "node", "backward", "parents", "grad-life"),
)

MOST_NAMES: Final = 3
"""Operands that are named one by one."""

_EDGE: Final = "Keep its input away from the edge: clamp it, or add an eps."
_BY_OPERATION: Final = {
    "/": "Keep the divisor away from zero: add an eps, or clamp it.",
    "log": "Keep the logarithm's input above zero: clamp it, add an eps, or use the combined function (log_softmax).",
    "sqrt": "Keep the root's input from falling below zero: clamp it.",
    "exp": "Keep the exponent small: clamp it, or subtract the largest one first.",
}
"""What to change, by the operation that gives the first value which is not finite."""

_OPERATIONS: Final = {
    **dict.fromkeys(("div", "true_divide", "reciprocal", "rsqrt", "/", "/="), "/"),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "xlogy", "logit"), "log"),
    **dict.fromkeys(("sqrt", "norm"), "sqrt"),
    **dict.fromkeys(("exp", "exp2", "expm1", "pow", "**", "square", "cosh", "sinh"), "exp"),
}
_MASK: Final = "Mask with a large finite number (-1e9), or keep one entry of each row open."


def check(record: Record) -> Iterator[Finding]:
    """One finding at most: what comes after the first is its consequence."""
    for birth in births_of(record, "forward"):
        name = name_of(record, birth)
        mask = masked_at(record, birth) if birth.what == "NaN" else None
        yield told_birth(
            record,
            RULE,
            birth,
            f"`{name}` is the first value with {birth.what}: {_finite(record, birth)} finite.",
            _advice(record, birth) if mask is None else _MASK,
            at=mask,
            born="NaN comes out here, of what the mask makes `-inf`",
        )

    for birth in births_of(record, "step"):
        leaf = lookup(record).tensors[birth.tensor or 0]
        yield told_birth(
            record,
            RULE,
            birth,
            f"This step makes {together(record, [leaf.tensor])} {birth.what}: the gradients that it used are finite.",
            "In float16 an `eps` below 6e-8 is 0: keep the parameters in float32, or give the optimizer a larger `eps`."
            if leaf.dtype == "float16"
            else "Check the learning rate and the other options that the optimizer has at this step.",
        )


def _advice(record: Record, birth: Birth) -> str:
    """What to change: at the first operation of the statement that gave such a value, or at its only one that can."""
    rows = [row for row in record.operations if row.statement == birth.site]
    gave = [row.function for row in rows if row.tensor is not None and row.tensor in bad_since(record)]
    kinds = [_kind(name) for name in gave[:1]]
    if kinds in ([], [None]):
        kinds = sorted({kind for row in rows if (kind := _kind(row.function)) is not None})
    return _BY_OPERATION.get(kinds[0] or "", _EDGE) if len(kinds) == 1 else _EDGE


def _kind(function: str) -> str | None:
    return _OPERATIONS.get(function.rpartition(".")[2].removesuffix("_"))


def _finite(record: Record, birth: Birth) -> str:
    """What the statement reads, by its names: of three at most, since a longer list is not read."""
    held = held_by_reads(record, birth.site, birth.moment)
    held = {name: one for name, one in held.items() if one not in bad_since(record)}
    names = [f"`{name}`" for name, one in held.items() if "float" in lookup(record).tensors[one].dtype]
    if not 0 < len(names) <= MOST_NAMES:
        return "everything that this statement reads is"
    return f"{' and '.join(names)}, which this statement reads, {'is' if len(names) == 1 else 'are'}"
