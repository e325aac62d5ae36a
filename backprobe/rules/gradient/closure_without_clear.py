"""BP267 closure-without-clear: the closure of LBFGS does not clear the gradients that its last call left.

What it finds:
    One step of LBFGS called its closure several times, each call added its gradients to those of the calls before, and
    no clear stands in the closure. The finding stands at the closure's backward call.

Why it matters:
    From the second call on LBFGS gets the sum of gradients at different points for the gradient at one: its directions
    and its line search are wrong.

What PyTorch does:
    `LBFGS.step` evaluates the closure up to `max_iter` times or more, and changes the parameters in between. A backward
    call adds to `.grad`. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()  # <- here
        return loss

    for _ in range(3):
        optimizer.zero_grad()
        optimizer.step(closure)

Use instead:
    import torch
    from torch import nn

    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - 1).pow(2).mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)

Near miss: the closure clears by the module and sums over parts of the data
    import torch
    from torch import nn

    model, x = nn.Linear(3, 1), torch.randn(8, 3)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)

    def closure():
        model.zero_grad()
        for part in x.split(4):
            loss = (model(part) - 1).pow(2).sum()
            loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)

Blind spots:
    A closure whose backward call stands in a loop of its own is not judged. Gradients that no clear ever empties are
    left to BP210.

Source:
    "optimizer.step(closure)" in the documentation of torch.optim; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans
from backprobe.rules.analysis.source.expressions import line_before
from backprobe.rules.analysis.source.naming import optimizer_name, receiver, together
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Optimizer, Record
    from backprobe.rules.analysis.training.updates import Update
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="closure-without-clear",
    code="BP267",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("grad-life", "optimizer", "backward"),
)

_CLASS: Final = "LBFGS"
LEAST: Final = 2
"""Steps in which the closure added up: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer and backward statement of its closure."""
    for optimizer in record.optimizers:
        if optimizer.cls != _CLASS:
            continue
        steps: dict[int, dict[int, tuple[Update, list[LeafGrad], Span]]] = {}
        for row in optimizer.tensors:
            for span in grad_spans(record).get(row.tensor, ()):
                _sort_in(steps, span, optimizer.optimizer)
        for site, found in steps.items():
            if len(found) >= LEAST and _is_in_closure(record, site):
                yield _finding(record, optimizer, site, found)


def _sort_in(steps: dict[int, dict[int, tuple[Update, list[LeafGrad], Span]]], span: Span, optimizer: int) -> None:
    """The arrivals of one statement that were added up for one step, by the statement and the step's moment.

    A gradient that several steps used is one that nothing ever clears, and no matter of the closure alone.
    """
    if len(span.updates) != 1 or span.updates[0].optimizer != optimizer:
        return
    update = span.updates[0]
    inside = [row for row in span.arrivals if row.moment <= update.moment and row.site is not None]
    if len(inside) > 1 and len({row.site for row in inside}) == 1:
        steps.setdefault(inside[0].site or 0, {}).setdefault(update.moment, (update, inside, span))


def _is_in_closure(record: Record, site: int) -> bool:
    """The statement stands in a function, in no loop of that function, and no clear ever ran in it."""
    row = site_of(record, site)
    clears = (event.site for event in record.optimizer_events if event.kind == "zero_grad")
    sites = [*clears, *(one.site for one in record.leaf_grads if one.call is None and one.kind != "untouched")]
    inside = any(site_of(record, one).function == row.function for one in sites if one is not None)
    return row.function != "<module>" and row.loop_line is None and not inside


def _finding(
    record: Record, optimizer: Optimizer, site: int, found: dict[int, tuple[Update, list[LeafGrad], Span]]
) -> Finding:
    update, rows, span = next(iter(found.values()))
    who, place = optimizer_name(record, optimizer.optimizer), site_of(record, site)
    held, node = receiver(record, update.site, "step"), statement(record, place)
    edit = None if held is None or node is None else line_before(record, place, node, f"{held}.zero_grad()")
    return told(
        record,
        RULE,
        site,
        (
            f"One step of `{who}` runs this {len(rows)} times, and no call clears what the one before left.",
            f"From the second call on {together(record, [span.tensor])} holds a sum of gradients at different points.",
            f"Clear in the closure, before this: `{held or who}.zero_grad()`.",
        ),
        binding=who,
        moments=sorted(found),
        related=(("this step calls the closure", update.site),),
        evidence={"calls_in_one_step": len(rows), "steps": len(found)},
        fixes=() if edit is None else (Fix(title="Clear in the closure", safety="safe", edits=(edit,)),),
        tensors=(span.tensor,),
        optimizers=(optimizer.optimizer,),
    )
