"""BP814 micro-batches-not-divided: mean losses of micro-batches are added up, and nothing divides by their number.

What it finds:
    One statement walks back the mean loss of several parts of one batch for each step, or of the batches of a window,
    `if (i + 1) % k == 0`. The root is the loss as it is, and the gradients are not divided either.

Why it matters:
    The step follows k times the mean gradient, as with k times the learning rate; and it changes with k.

What PyTorch does:
    `backward()` adds to `.grad`. A mean over each of k parts adds up to k means, not to the mean over all. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    every = 4
    for batch in torch.randn(3, 32, 4):
        optimizer.zero_grad()
        for x in batch.chunk(every):
            loss = nn.functional.mse_loss(model(x), x[:, :1])
            loss.backward()  # <- here
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    every = 4
    for batch in torch.randn(3, 32, 4):
        optimizer.zero_grad()
        for x in batch.chunk(every):
            loss = nn.functional.mse_loss(model(x), x[:, :1]) / every
            loss.backward()
        optimizer.step()

Near miss: sums are added up, and divided by the number of all
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in torch.randn(3, 32, 4):
        optimizer.zero_grad()
        for x in batch.split(8):
            loss = nn.functional.mse_loss(model(x), x[:, :1], reduction="sum") / len(batch)
            loss.backward()
        optimizer.step()

Near miss: the gradients are divided
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in torch.randn(3, 32, 4):
        optimizer.zero_grad()
        for x in batch.chunk(4):
            nn.functional.mse_loss(model(x), x[:, :1]).backward()
        for weight in model.parameters():
            weight.grad /= 4
        optimizer.step()

Near miss: each task has a loss of its own, and they add up
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        for task in range(3):
            x = torch.randn(8, 4)
            nn.functional.mse_loss(model(x)[:, task], x[:, task]).backward()
        optimizer.step()

Near miss: another optimizer steps on each loss, so that it cannot be divided
    import torch
    from torch import nn

    body, head = nn.Linear(4, 4), nn.Linear(4, 1)
    often = torch.optim.SGD(body.parameters(), lr=0.01)
    seldom = torch.optim.SGD(head.parameters(), lr=0.01)
    for step in range(8):
        often.zero_grad()
        head(body(torch.randn(6, 4))).pow(2).mean().backward()
        often.step()
        if step % 4 == 3:
            seldom.step()
            seldom.zero_grad()

Blind spots:
    Losses that are weighted before they are added are not judged, nor is a learning rate that was divided instead.

Source:
    The chain rule, and torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.batch_windows import window_of
from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans, stepped_by
from backprobe.rules.analysis.graph.walks import op, operands
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement_at
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Optimizer, Record
    from backprobe.rules.analysis.gradients.batch_windows import Window
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="micro-batches-not-divided",
    code="BP814",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("grad-life", "optimizer", "backward", "node", "site"),
)

MEANS: Final = frozenset({
    "Mean", "MseLoss", "NllLoss", "NllLoss2D", "NllLossNd", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy",
    "BinaryCrossEntropyWithLogits", "SoftMarginLoss", "CtcLoss",
})  # fmt: skip
"""Operations that end in a mean, by default."""

LEAST: Final = 2
"""Micro-batches of a step."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer: the first leaf that shows it stands for all."""
    for optimizer in record.optimizers:
        for row in optimizer.tensors:
            spans = stepped_by(record, row.tensor, optimizer.optimizer)
            full = [span for span in spans if _is_summed(record, span)]
            window = window_of(record, full) if full and len(full) >= len(spans) - 1 else None
            if window is not None and not _serves_another_step(record, optimizer, full):
                yield _finding(record, optimizer, full, window)
                break


def _is_summed(record: Record, span: Span) -> bool:
    """Several calls of one statement brought it, each of them from a mean as it is, and nothing changed it."""
    if len(span.arrivals) < LEAST:
        return False
    sites, calls = {row.site for row in span.arrivals}, [row.call for row in span.arrivals]
    if len(sites) != 1 or None in sites or None in calls or len(set(calls)) < len(calls):
        return False
    last, changed = span.updates[-1].moment, {"modified-in-place", "assigned"}
    rows = lookup(record).leaf_grads_of[span.tensor]
    if any(row.kind in changed and span.filled.moment <= row.moment <= last for row in rows):
        return False
    return all(_is_mean(record, call) for call in calls if call is not None)


def _serves_another_step(record: Record, optimizer: Optimizer, spans: list[Span]) -> bool:
    """Another optimizer steps on some of the losses before all are there: for it each is whole as it is."""
    calls = {row.call for row in spans[0].arrivals}
    others = (row.tensor for one in record.optimizers if one.optimizer != optimizer.optimizer for row in one.tensors)
    shorter = (
        {row.call for row in span.arrivals}
        for one in others
        for span in grad_spans(record).get(one, ())
        if span.updates
    )
    return any(part < calls for part in shorter if part)


def _is_mean(record: Record, call: int) -> bool:
    """The root is a mean, or a sum of such of which one at least is."""
    index = lookup(record)
    ran = [row for row in index.passes_of_call[call] if row.position is not None]
    given = any(root.gradient_given for root in index.calls[call].roots)
    if not ran or given or len(index.calls[call].roots) != 1:
        return False
    first = index.nodes[min(ran, key=lambda row: row.position or 0).node]
    return _is_mean_node(record, first) or (
        op(first) == "Add"
        and any(_is_mean_node(record, index.nodes[one]) for one in operands(record, first.node) if one)
    )


def _is_mean_node(record: Record, node: Node) -> bool:
    return op(node) in MEANS and node.site not in _sites_of_other_reductions(record)


@table
def _sites_of_other_reductions(record: Record) -> frozenset[int | None]:
    """The statements that call a loss with another reduction than the mean."""
    kept = ("mean", "'mean'", None)
    return frozenset(row.site for row in record.watched_calls if row.arguments.get("reduction") not in kept)


def _finding(record: Record, optimizer: Optimizer, spans: list[Span], window: Window) -> Finding:
    first, who = spans[0], optimizer_name(record, optimizer.optimizer)
    number = len(first.arrivals)
    divisor = str(number) if window.number is None else f"`{ast.unparse(window.number)}`"
    return told(
        record,
        RULE,
        first.filled.site or 0,
        (
            f"{number} mean losses add up for each step of `{who}`, and nothing divides them.",
            f"The step follows {number} times the mean gradient: as if the learning rate were {number} times as high.",
            f"Divide the loss by {divisor} before it is walked back.",
        ),
        binding=who,
        moments=[span.filled.moment for span in spans],
        related=((f"`{who}` steps on the sum here", first.updates[0].site),),
        evidence={"calls_of_a_step": number, "steps": len(spans), "assumed": "the mean over all parts is meant"},
        fixes=_fixes(record, first, window),
        tensors=(first.tensor,),
        optimizers=(optimizer.optimizer,),
    )


def _fixes(record: Record, span: Span, window: Window) -> Iterator[Fix]:
    site = site_of(record, span.filled.site or 0)
    node = statement_at(record, site.site)
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or window.number is None:
        return
    if call.func.attr != "backward" or not isinstance(window.number, ast.Name | ast.Constant | ast.Attribute):
        return
    root = region_in(record, site.source, call.func.value)
    edits = (
        insertion(record, site, root.start_line, root.start_col, "("),
        insertion(record, site, root.end_line, root.end_col, f" / {ast.unparse(window.number)})"),
    )
    yield Fix(title=f"Divide by `{ast.unparse(window.number)}`", safety="unsafe", edits=edits)
