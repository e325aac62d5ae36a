"""BP712 learning-rate-zero: the learning rate is 0 at every step.

What it finds:
    Every group of an optimizer has a learning rate of 0 at each of its steps, though gradients arrive. The finding
    stands at the schedule that sets it to 0, or in the function that the schedule is given; at the statement that sets
    it to 0; else where the optimizer is built. It is a note at the step if the program has a statement that computes
    the rate, or that would set another one and did not run.

Why it matters:
    Nothing is trained: the loss goes up and down with the batches only.

What PyTorch does:
    A step multiplies by the rate and subtracts: with 0 every parameter is written with its own value. Schedules
    such as `LambdaLR` set the rate to whatever their function returns. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step // 1000)  # <- here
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / 1000)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Near miss: a warm-up begins at 0
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 1000)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Near miss: the program sets the rate by itself
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for step, x in enumerate(torch.randn(4, 8, 3)):
        optimizer.param_groups[0]["lr"] = 0.1 * (step + 1)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: one of two groups rests
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.0}], lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    A group that rests beside others that move counts as a decision.

Source:
    torch.optim.lr_scheduler.LambdaLR in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.rate_writes import RateWrite, rate_writes
from backprobe.rules.analysis.optimizers.schedules import schedules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import method_called, number_at, parts_of, site_of, statement, tree_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="learning-rate-zero",
    code="BP712",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer", "snapshot", "stats"),
)

LEAST: Final = 3
"""Steps with a gradient: the first ones of a warm-up may have a rate of 0."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    for optimizer in record.optimizers:
        own = [event for event in record.optimizer_events if event.optimizer == optimizer.optimizer]
        steps = [event for event in own if event.kind == "step" and event.with_grad]
        if len(steps) < LEAST or optimizer.site is None:
            continue
        rates = [rate for event in steps for rate in event.learning_rates]
        if not rates or any(rates):
            continue
        if not any(_moved(record, row.tensor, steps[0].moment) for row in optimizer.tensors):
            yield _finding(record, optimizer, optimizer.site, steps)


def _moved(record: Record, tensor: int, start: int) -> bool:
    """Its values are not the same at every measurement since a moment; also where none was taken."""
    rows = [row for row in lookup(record).snapshots_of[tensor] if row.value is not None]
    since = [*[row for row in rows if row.moment < start][-1:], *(row for row in rows if row.moment >= start)]
    values = (row.value for row in since)
    seen = {(value.norm, value.sum, value.min, value.max) for value in values if value is not None}
    return not any(row.moment >= start for row in lookup(record).snapshots_of[tensor]) or len(seen) != 1


def _only_schedule(record: Record) -> int | None:
    """The statement that builds the one schedule of torch in the program; None where there is none, or several."""
    found: set[int | None] = set()
    for site in record.sites:
        node = statement(record, site)
        if isinstance(node, ast.Assign | ast.Return | ast.Expr) and site.kind != "enter":
            called = [dotted(record, site, part.func) or "" for part in parts_of(node) if isinstance(part, ast.Call)]
            if any(full.startswith("torch.optim.lr_scheduler.") for full in called):
                found.add(number_at(record, node))
    return found.pop() if len(found) == 1 else None


def _factor_given(record: Record, number: int) -> int | None:
    """The one `return` of the function that a schedule is given for its factor."""
    tree, node = tree_of(record, site_of(record, number)), statement(record, site_of(record, number))
    calls = (part for part in parts_of(node) if isinstance(part, ast.Call) and method_called(part) in _BY_FUNCTION)
    for call in calls:
        given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "lr_lambda")]
        names = {one.id for one in given if isinstance(one, ast.Name)}
        functions = [] if tree is None else [one for one in tree.nodes if isinstance(one, ast.FunctionDef)]
        named = [one for one in functions if one.name in names]
        returned = [part for one in named for part in ast.walk(one) if isinstance(part, ast.Return)]
        return number_at(record, returned[0]) if len(named) == 1 and len(returned) == 1 else None
    return None


_BY_FUNCTION: Final = frozenset({"LambdaLR", "MultiplicativeLR"})


def _raising(record: Record) -> RateWrite | None:
    """Return a statement that may set a rate above 0 in another step or run."""
    return next(
        (row for row in rate_writes(record) if row.constant is None or (row.constant and not row.has_run)), None
    )


def _finding(record: Record, optimizer: Optimizer, built: int, steps: list[OptimizerEvent]) -> Finding:
    writes = [row for row in rate_writes(record) if row.has_run and row.constant == 0]
    raising = _raising(record)
    if raising is not None or writes:
        return _finding_of_write(record, optimizer, steps, writes[0] if raising is None else raising)
    who = optimizer_name(record, optimizer.optimizer)
    schedule = next(iter(schedules(record, optimizer)), None)
    only = _only_schedule(record) if schedule is None else None
    at = (built if only is None else only) if schedule is None else schedule.site
    loads = [row for row in record.optimizer_events if row.kind == "load_state_dict"]
    loaded = [row.site for row in loads if row.optimizer == optimizer.optimizer and row.moment < steps[0].moment]
    if schedule is None and loaded and loaded[-1] is not None:
        return _finding_of_load(record, optimizer, loaded[-1], steps)
    factor = _factor_given(record, at)
    by = "" if schedule is None else f": `{schedule.name}` sets it to that"
    return told(
        record,
        RULE,
        at if factor is None else factor,
        (
            f"The learning rate of `{who}` is 0 at each of its {len(steps)} steps{by}.",
            "Every parameter is written with the value that it had.",
            "Give a rate above 0."
            if schedule is None and only is None
            else "Let the schedule begin, or at least go on, above 0.",
        ),
        binding=who if schedule is None else schedule.name,
        moments=[event.moment for event in steps],
        related=(
            ("this schedule takes it", None if factor is None else at),
            (f"`{who}` is built here", None if schedule is None and only is None else built),
            ("it steps here", steps[0].site),
        ),
        evidence={"optimizer": who, "rate": 0.0, "steps": len(steps), "assumed": "the optimizer is meant to train"},
        optimizers=(optimizer.optimizer,),
    )


def _finding_of_write(record: Record, optimizer: Optimizer, steps: list[OptimizerEvent], write: RateWrite) -> Finding:
    """Build the finding where the program sets rates itself: to 0, or to what may be above 0 in other steps."""
    who, is_zero = optimizer_name(record, optimizer.optimizer), write.constant == 0
    return told(
        record,
        RULE,
        write.site if is_zero else steps[0].site or write.site,
        (
            f"The learning rate of `{who}` is 0 at each of its {len(steps)} steps.",
            "Every parameter is written with the value that it had.",
            "This statement sets a rate to 0: set one above 0."
            if is_zero
            else f"Line {site_of(record, write.site).line} sets rates, perhaps to one above 0 in another step or run.",
        ),
        binding=who,
        moments=[event.moment for event in steps],
        related=(
            (f"`{who}` is built here", optimizer.site),
            ("rates are set here", write.site),
            ("it steps here", steps[0].site),
        ),
        evidence={"optimizer": who, "rate": 0.0, "steps": len(steps), "assumed": "the optimizer is meant to train"},
        tensors=[row.tensor for row in optimizer.tensors][:16],
        optimizers=(optimizer.optimizer,),
        level=None if is_zero else "note",
    )


def _finding_of_load(record: Record, optimizer: Optimizer, load: int, steps: list[OptimizerEvent]) -> Finding:
    who = optimizer_name(record, optimizer.optimizer)
    return told(
        record,
        RULE,
        load,
        (
            f"The state that `{who}` loads here has a learning rate of 0: so has each of its {len(steps)} steps.",
            "Every parameter is written with the value that it had.",
            'Set the rate again after the load: `for group in optimizer.param_groups: group["lr"] = ...`.',
        ),
        binding=who,
        moments=[event.moment for event in steps],
        related=((f"`{who}` is built here", optimizer.site), ("it steps here", steps[0].site)),
        evidence={"optimizer": who, "rate": 0.0, "steps": len(steps), "assumed": "the optimizer is meant to train"},
        optimizers=(optimizer.optimizer,),
    )
