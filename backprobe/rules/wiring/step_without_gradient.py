"""BP707 step-without-gradient: an optimizer steps while none of its parameters has a gradient.

What it finds:
    `.grad` is None in every tensor that an optimizer holds, at every one of its steps. The finding stands at the step,
    or at a statement of the program that names `backward` without calling it; of plain tensors that never require grad,
    where the first is made.

Why it matters:
    The step does nothing at all. Either the wrong optimizer steps, or no backward call reaches these parameters, or
    their gradients were returned, as `torch.autograd.grad` does, and never given to `.grad`.

What PyTorch does:
    `step` skips what has no gradient, without a word. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        grads = torch.autograd.grad(loss, list(model.parameters()))
        optimizer.step()  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()

Near miss: one step before the first backward call, to please a scheduler
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.step()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    An optimizer of which some parameters have gradients is not judged here.

Source:
    torch.optim.Optimizer.step in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import operations_at
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.analysis.source.uncalled_methods import named_only
from backprobe.rules.analysis.tensors.plain_unknowns import is_flagged_in_text, plain_unknowns
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="step-without-gradient",
    code="BP707",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("optimizer",),
)

_LOOKED_AT: Final = 4
"""Steps whose leaves are looked at: the others repeat them."""

_ARRIVES: Final = frozenset({"populate", "accumulate", "accumulate-new-tensor"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer that never had a gradient when it stepped: at what kept it away, if that is known."""
    for optimizer in record.optimizers:
        steps = [
            event
            for event in record.optimizer_events
            if event.kind == "step" and event.optimizer == optimizer.optimizer
        ]
        lacking = [event for event in steps if event.with_grad == 0 and event.without_grad > 0 and not event.changed]
        if lacking and len(lacking) == len(steps) and lacking[0].site is not None:
            written = _written(record, optimizer, lacking)
            if written is None:
                yield _finding(record, optimizer, lacking, lacking[0].site)
            else:
                yield _of_write(record, optimizer, lacking, written)


def _written(record: Record, optimizer: Optimizer, steps: list[OptimizerEvent]) -> int | None:
    """The statement that writes plain values into all leaves that the loss does reach, before each of the steps.

    What the optimizer holds would have had its gradient through these values: they come from something with a history,
    or from the derivatives by those leaves, as the inner step of a copied learner does.
    """
    own, begin, found = {row.tensor for row in optimizer.tensors}, -1, set[int]()
    asked = _differentiated(record)
    for step in steps[:_LOOKED_AT]:
        reached = {
            row.tensor
            for row in record.leaf_grads
            if row.call is not None and row.kind in _ARRIVES and begin < row.moment <= step.moment
        }
        writes = [
            row
            for row in record.inplace_events
            if row.tensor in reached and row.done_by == "statement" and begin < row.moment <= step.moment
        ]
        if not reached or reached & own or {row.tensor for row in writes} != reached:
            return None
        found |= {row.site for row in writes if row.site is not None and _takes_history(record, row, asked)}
        begin = step.moment
    return found.pop() if len(found) == 1 else None


def _differentiated(record: Record) -> dict[int, int]:
    """What `autograd.grad` was asked a gradient by, with the moment of the first call."""
    found: dict[int, int] = {}
    for row in record.backward_calls:
        for given in () if row.accumulate_grad else row.inputs or ():
            if given.tensor is not None:
                found.setdefault(given.tensor, row.moment_before)
    return found


def _takes_history(record: Record, write: InplaceEvent, asked: dict[int, int]) -> bool:
    """A value with a history is read by the statement, or the gradient by the leaf that it writes to."""
    number = write.site or 0
    if write.tensor in asked and asked[write.tensor] < write.moment:
        return True
    site = site_of(record, number)
    given = {one for row in operations_at(record).get(number, ()) for one in row.operands}
    given |= {one for name in site.reads if (one := tensor_named(record, name, site, write.moment)) is not None}
    states = (state_at(record, one, write.moment) for one in given if one != write.tensor)
    return any(state is not None and state.requires_grad and not state.is_leaf for state in states) or any(
        row.requires_grad for row in operations_at(record).get(number, ())
    )


def _of_write(record: Record, optimizer: Optimizer, steps: list[OptimizerEvent], site: int) -> Finding:
    who = optimizer_name(record, optimizer.optimizer)
    tensors = [row.tensor for row in optimizer.tensors]
    return told(
        record,
        RULE,
        site,
        (
            "This writes plain values into leaves, and the loss reaches these leaves alone: no history goes in.",
            f"`.grad` is None in {together(record, tensors)}: `{who}` steps, and nothing is learnt.",
            "Compute with the value itself: `torch.func.functional_call` takes tensors in the place of parameters.",
        ),
        binding=who,
        moments=[step.moment for step in steps],
        related=((f"`{who}` steps here without a gradient", steps[0].site),),
        evidence={"steps": len(steps), "without_grad": steps[0].without_grad},
        tensors=tensors,
        optimizers=(optimizer.optimizer,),
    )


def _finding(record: Record, optimizer: Optimizer, steps: list[OptimizerEvent], site: int) -> Finding:
    who = optimizer_name(record, optimizer.optimizer)
    tensors = [row.tensor for row in optimizer.tensors]
    plain = plain_unknowns(record, optimizer)
    is_plain = plain == tensors and not any(is_flagged_in_text(record, tensor) for tensor in plain)
    made = lookup(record).tensors[plain[0]].site if is_plain else None
    named = None if record.backward_calls else next(named_only(record, "backward"), None)
    fixes: list[Fix] = []
    advice = "Call `backward()` on a loss that depends on them first, or drop the step."
    if made is not None:
        advice = "None of them requires grad: make them with `requires_grad=True`, or as an `nn.Parameter`."
    if named is not None:
        region = region_in(record, named[0].source, named[1])
        edit = insertion(record, named[0], region.end_line, region.end_col, "()")
        fixes = [Fix(title="Call it", safety="unsafe", edits=(edit,))]
        advice = f"`{ast.unparse(named[1])}` names the method and does not call it: write `{ast.unparse(named[1])}()`."
    at = site if made is None else made
    return told(
        record,
        RULE,
        at if named is None else named[0].site,
        (
            f"`{who}` steps, and not one of its {len(tensors)} tensors has a gradient.",
            f"`.grad` is None in {together(record, tensors)}: the step does nothing.",
            advice,
        ),
        binding=who,
        moments=[event.moment for event in steps],
        fixes=fixes,
        related=(
            (f"`{who}` is built here", optimizer.site),
            ("it steps here", None if named is None and made is None else site),
        ),
        evidence={"tensors": tensors[:16], "with_grad": 0, "steps": len(steps)},
        tensors=tensors,
        optimizers=(optimizer.optimizer,),
    )
