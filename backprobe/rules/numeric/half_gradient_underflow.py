"""BP510 half-gradient-underflow: float16 gradients round to zero on their way, and no scaler lifts them.

What it finds:
    In three backward calls, a float16 operation got a gradient that is zero in more than half of its elements, although
    what was sent to it, by plain arithmetic or a cast, was not. No GradScaler is used. The finding stands at the
    statement that made the parameters float16; else at the backward call.

Why it matters:
    What is zero does not learn. It hits the small gradients of the early layers first, and the loss falls all the same.

What PyTorch does:
    float16 ends at 6e-8; below that a value becomes 0 without a word. `GradScaler` multiplies the loss so that
    gradients stay above it. bfloat16 has the range of float32. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(16, 8).half()  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 32, 16).half():
        loss = (model(x).float() * 1e-6).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(16, 8).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 32, 16).bfloat16():
        loss = (model(x).float() * 1e-6).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a ReLU makes the zeros
    import torch
    from torch import nn

    model = nn.Linear(16, 8).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 32, 16).half():
        loss = (model(x) - 1).relu().float().pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Gradients that are lost inside a library's fused operation are not seen.

Source:
    IEEE 754-2019, binary16: the least positive number is 2**-24. Micikevicius and others, Mixed precision training,
    2018, section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.value_origins import half_cast
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.locations import line_words
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, NodePass, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="half-gradient-underflow",
    code="BP510",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("stats", "node", "backward", "optimizer"),
    thresholds={"zeros": 0.5, "before": 0.1},
)
_LEAST = 3
"""Backward calls in which gradients are lost: thrice is a pattern."""

_PLAIN = ("ToCopyBackward", "MulBackward", "DivBackward", "MeanBackward", "PowBackward", "SubBackward", "AddBackward")
"""Nodes that send a zero only for a zero, or by rounding, where they are handed no zero factor."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward statement whose float16 gradients are lost."""
    if any(row.kind.startswith("scaler") for row in record.optimizer_events) or not _has_half(record):
        return
    lost: dict[int, list[tuple[BackwardCall, NodePass, float]]] = {}
    for call in record.backward_calls:
        found = _lost(record, call)
        if found is not None and call.site is not None:
            lost.setdefault(call.site, []).append((call, *found))
    for site, rows in lost.items():
        if len(rows) >= _LEAST:
            yield _finding(record, site, rows)


def _has_half(record: Record) -> bool:
    """Some node's output is float16; a record without one, the usual kind, is not looked through call by call."""
    return any(one.dtype == "float16" for row in record.nodes for one in row.outputs)


def _lost(record: Record, call: BackwardCall) -> tuple[NodePass, float] | None:
    """The first float16 operation of a call that gets mostly zeros from one that did not, and their share."""
    index = lookup(record)
    ran = {row.node: row for row in index.passes_of_call[call.call] if row.position is not None}
    for row in sorted(ran.values(), key=lambda row: row.position or 0):
        outputs = index.nodes[row.node].outputs
        if row.output_nr >= len(outputs) or not outputs[row.output_nr].dtype.endswith("float16"):
            continue
        if outputs[row.output_nr].dtype.endswith("bfloat16") or _zeros(row) <= threshold(RULE, "zeros"):
            continue
        senders = [edge.node for node in ran for edge in index.edges_of[node] if edge.to_node == row.node]
        plain = all(index.nodes[node].type.startswith(_PLAIN) for node in senders)
        if senders and plain and all(_zeros(ran[node]) < threshold(RULE, "before") for node in senders):
            return row, _zeros(row)
    return None


def _zeros(row: NodePass) -> float:
    """The share of zeros in a gradient that arrived; 0 where it was not measured."""
    measured = row.grad_output
    return 0.0 if measured is None or not measured.counted else measured.zeros / measured.counted


def _finding(record: Record, site: int, rows: list[tuple[BackwardCall, NodePass, float]]) -> Finding:
    call, row, share = rows[0]
    made = lookup(record).nodes[row.node].site
    root = next((one.name for one in call.roots if one.name), None) or "the loss"
    cast = half_cast(record, call.moment_before)
    line = "" if made is None else f" at {line_words(record, made, site if cast is None else cast)}"
    advice = "Use `torch.amp.GradScaler`, or bfloat16."
    if cast is not None:
        advice = "Keep the parameters in float32 and use `torch.autocast` with a `GradScaler`, or bfloat16."
    return told(
        record,
        RULE,
        site if cast is None else cast,
        (
            f"{100 * share:.0f} % of a float16 gradient{line} round to zero, and no scaler lifts it.",
            f"It was sent as other numbers; float16 ends at 6e-8 (limit {100 * threshold(RULE, 'zeros'):g} % zeros).",
            advice,
        ),
        binding=root,
        moments=[one.moment_before for one, _row, _share in rows],
        related=(
            ("the gradient that arrives here is lost", made),
            ("this backward call loses it", None if cast is None else site),
        ),
        evidence={"zeros": round(share, 4), "limit": threshold(RULE, "zeros"), "calls": len(rows)},
        calls=[one.call for one, _row, _share in rows],
    )
