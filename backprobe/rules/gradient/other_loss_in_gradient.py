"""BP213 other-loss-in-gradient: the gradient of another loss is still there when a network's own is added.

What it finds:
    A backward call leaves gradients in the parameters of two optimizers; the one that it is meant for steps. The other
    one's parameters keep theirs, their own backward call adds to it, and their optimizer steps on the sum. The finding
    stands at that second call, or at the clear that ran before the first one in the same function; or, where the first
    loss took in what the other network made and needs no gradient beyond that, at the expression that takes it in. A
    loss that is the other network's own output, and is walked back beside that network's own loss before it steps, is
    such a call too.

Why it matters:
    A discriminator is trained on the generator's wish as well: each step is partly the wrong way.

What PyTorch does:
    A backward call fills every leaf that its graph reaches, whosever optimizer holds it. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(3):
        first.zero_grad()
        judge(maker(torch.randn(4, 2))).mean().backward()
        first.step()
        judge(torch.randn(4, 3)).pow(2).mean().backward()  # <- here
        second.step()
        second.zero_grad()

Use instead:
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(3):
        first.zero_grad()
        judge(maker(torch.randn(4, 2))).mean().backward()
        first.step()
        second.zero_grad()
        judge(torch.randn(4, 3)).pow(2).mean().backward()
        second.step()

Near miss: one joint loss, then both step
    import torch
    from torch import nn

    maker, judge = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(maker.parameters(), lr=0.1)
    second = torch.optim.SGD(judge.parameters(), lr=0.1)
    for _ in range(3):
        judge(maker(torch.randn(4, 2))).pow(2).mean().backward()
        judge(torch.randn(4, 3)).pow(2).mean().backward()
        first.step()
        second.step()
        first.zero_grad()
        second.zero_grad()

Near miss: what the second call leaves in the first network is stepped on too
    import torch
    from torch import nn

    quick, slow = nn.Linear(2, 3), nn.Linear(3, 1)
    first = torch.optim.SGD(quick.parameters(), lr=0.1)
    second = torch.optim.SGD(slow.parameters(), lr=0.1)
    for turn in range(8):
        first.zero_grad()
        slow(quick(torch.randn(4, 2))).pow(2).mean().backward()
        first.step()
        if turn % 4 == 3:
            second.step()
            second.zero_grad()

Blind spots:
    Two losses that are meant to add up, with the other network's step between them, look the same: the finding says
    what it assumes.

Source:
    torch.autograd.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.call_stacks import calls
from backprobe.rules.analysis.gradients.grad_spans import Span, cleared_above, grad_spans
from backprobe.rules.analysis.graph.reach import leaves_behind, reaches
from backprobe.rules.analysis.modules.critics import scored_again
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion, line_before
from backprobe.rules.analysis.source.naming import capital, optimizer_name, receiver, together
from backprobe.rules.analysis.source.syntax import parts_of, region_in, site_of, statement
from backprobe.rules.analysis.training.updates import Update, updates
from backprobe.rules.framework.finding import Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="other-loss-in-gradient",
    code="BP213",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="unsafe",
    needs=("grad-life", "optimizer"),
)

LEAST: Final = 2
"""Times it must happen: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per place of the second call."""
    groups: dict[int, list[_Mixed]] = {}
    if len({update.optimizer for update in updates(record)}) < LEAST:
        return  # one optimizer has no other's loss in its gradients
    for spans in grad_spans(record).values():
        found = [mixed for span in spans if span.added and (mixed := _mixed(record, span)) is not None]
        if len(found) >= LEAST and found[0][2].site is not None:
            groups.setdefault(found[0][2].site, []).extend(found)
    yield from (_finding(record, site, found) for site, found in groups.items())
    for site, rows in scored_again(record).items():
        if not groups and len({row.call for _span, row, _own in rows}) >= LEAST:
            yield _finding_scored(record, site, rows)


def _finding_scored(record: Record, site: int, rows: list[tuple[Span, LeafGrad, LeafGrad]]) -> Finding:
    span, row, own = rows[0]
    tensors = sorted({one.tensor for one, _row, _own in rows})
    held = optimizer_name(record, span.updates[0].optimizer)
    return told(
        record,
        RULE,
        site,
        (
            f"This loss is the output of the module that holds {together(record, tensors)}: it adds to their gradient.",
            f"That also holds the gradient of their own loss, and `{held}` steps on the sum of both.",
            f"Step `{held}` before this call, or call `{held}.zero_grad()` and its own backward call after it.",
        ),
        binding=held,
        moments=sorted({one.moment for _span, one, _own in rows}),
        related=(
            ("their own loss is walked back here", own.site),
            (f"`{held}` steps on the sum", span.updates[0].site),
        ),
        evidence={"tensors": tensors[:16], "assumed": "each optimizer steps on its own loss"},
        tensors=tensors,
        calls=() if row.call is None else (row.call,),
        optimizers=(span.updates[0].optimizer,) if span.updates[0].optimizer is not None else (),
    )


_Mixed = tuple["Span", "Update", "LeafGrad"]
"""A gradient of two losses, the step on the first of them, and what the second brought."""


def _mixed(record: Record, span: Span) -> _Mixed | None:
    """Between two calls that filled a gradient, an optimizer stepped that the first was for and that lacks the leaf."""
    if not span.updates or span.updates[0].optimizer is None:
        return None
    for before, after in zip(span.arrivals, span.arrivals[1:], strict=False):
        if before.call is None or after.moment > span.updates[0].moment:
            return None
        for update in updates(record):
            others = update.optimizer is not None and span.tensor not in update.tensors
            if others and before.moment < update.moment < after.moment:
                meant = reaches(record)[before.call].leaves & update.tensors
                if meant and not _is_used(record, after, update.tensors):
                    return span, update, after
    return None


def _is_used(record: Record, arrival: LeafGrad, tensors: frozenset[int]) -> bool:
    """What the call of this arrival left in those leaves was stepped on: it is their loss too.

    A generator's loss always goes through the critic; what it leaves there is cleared unread.
    """
    reached = frozenset[int]() if arrival.call is None else reaches(record)[arrival.call].leaves & tensors
    for tensor in reached:
        for span in grad_spans(record).get(tensor, ()):
            stepped = any(update.moment > arrival.moment for update in span.updates)
            if stepped and any(row.call == arrival.call for row in span.arrivals):
                return True
    return False


def _taken_in(record: Record, mixed: _Mixed) -> tuple[Operation, int] | None:
    """The operation by which the first loss takes in what the leaf made, and that tensor.

    The innermost function that had called `backward` and has such an operation is the place: there it is handed in.
    Nothing that goes in has a leaf of the first optimizer behind it, and what comes out has: a critic, given a sample
    of the generator. A generator's loss that goes through the critic has none such.
    """
    span, update, _after = mixed
    index, call = lookup(record), span.filled.call
    found: list[tuple[Operation, int]] = []
    for row in record.operations if call is not None else ():
        made = index.node_of.get(row.tensor) if row.tensor is not None else None
        if made is None or call is None or made.node not in reaches(record)[call].met:
            continue
        if not leaves_behind(record, made.node) & update.tensors:
            continue
        below = {one: leaves_behind(record, index.node_of[one].node) for one in row.operands if one in index.node_of}
        given = [one for one, leaves in below.items() if span.tensor in leaves]
        if given and not any(leaves & update.tensors for leaves in below.values()):
            found.append((row, given[0]))
    functions = [] if call is None else _functions_around(record, call)
    inside = [(index.sites[row.statement].function, row, given) for row, given in found]
    common = ((row, given) for outer in functions for function, row, given in inside if function == outer)
    return next(common, found[0] if found else None)


def _functions_around(record: Record, call: int) -> list[str]:
    """The functions that were running at a backward call, the innermost first."""
    index = lookup(record)
    moment, own = index.moments.get(index.calls[call].moment_before), index.calls[call].site
    callers = () if moment is None or moment.stack is None else calls(record, moment.stack)
    first = [] if own is None else [index.sites[own].function]
    return first + [site.function for site in callers]


def _detached(record: Record, row: Operation, tensor: int) -> Iterator[Fix]:
    """`.detach()` behind the name that is handed in."""
    site = site_of(record, row.statement)
    bound = {one.name for one in lookup(record).bindings_of[tensor]}
    for part in parts_of(statement(record, site)):
        if isinstance(part, ast.Call) and region_in(record, site.source, part) == _region(row):
            for argument in part.args:
                if isinstance(argument, ast.Name) and argument.id in bound:
                    end = region_in(record, site.source, argument)
                    edit = insertion(record, site, end.end_line, end.end_col, ".detach()")
                    yield Fix(title="Detach what the other network made", safety="unsafe", edits=(edit,))


def _region(row: Operation) -> Region:
    return Region(start_line=row.line, start_col=row.col, end_line=row.end_line, end_col=row.end_col)


def _entering(record: Record, found: list[_Mixed], row: Operation, tensor: int) -> Finding:
    """The finding where the first loss takes in what the other network made."""
    span, update, after = found[0]
    own, other = optimizer_name(record, span.updates[0].optimizer), optimizer_name(record, update.optimizer)
    tensors = sorted({one.tensor for one, _update, _after in found})
    function = site_of(record, row.statement).function
    bound = sorted(lookup(record).bindings_of[tensor], key=lambda binding: binding.function == function)
    name = f"`{bound[-1].name}`" if bound else "What is handed in"
    return told(
        record,
        RULE,
        row.statement,
        (
            f"{name} is tracked here: the loss of `{other}` leaves gradients in {together(record, tensors)} too.",
            f"They are not cleared before their own backward call: `{own}` steps on the sum of both.",
            "Hand it in with `.detach()`.",
        ),
        binding=bound[-1].name if bound else own,
        moments=sorted({one.moment for _span, _update, one in found}),
        region=_region(row),
        related=(
            ("this call leaves the gradients", span.filled.site),
            ("their own call adds to them", after.site),
            (f"`{own}` steps on the sum", span.updates[0].site),
        ),
        evidence={"tensors": tensors[:16], "assumed": "each optimizer steps on its own loss"},
        fixes=_detached(record, row, tensor),
        tensors=tensors,
        calls=() if after.call is None else (after.call,),
        optimizers=(span.updates[0].optimizer,) if span.updates[0].optimizer is not None else (),
    )


def _finding(record: Record, site: int, found: list[_Mixed]) -> Finding:
    span, update, after = found[0]
    entry = _taken_in(record, found[0])
    if entry is not None:
        return _entering(record, found, *entry)
    own, other = optimizer_name(record, span.updates[0].optimizer), optimizer_name(record, update.optimizer)
    tensors = sorted({one.tensor for one, _update, _after in found})
    already = "already hold" if len(tensors) > 1 else "already holds"
    subject = f"{capital(together(record, tensors))} {already}"
    early = _early_clear(record, span, site)
    return told(
        record,
        RULE,
        site if early is None else early,
        (
            f"This clear runs before the backward call that `{other}` steps on, and that fills again what it emptied.",
            f"{capital(together(record, tensors))}: their own call adds to that, and `{own}` steps on the sum of both.",
            f"Call `{own}.zero_grad()` between the two.",
        )
        if early is not None
        else (
            f"{subject} the gradient of the loss that `{other}` stepped on.",
            f"This backward call adds to it, and `{own}` steps on the sum of both.",
            f"Call `{own}.zero_grad()` before it.",
        ),
        binding=own,
        moments=sorted({row.moment for _span, _update, row in found}),
        related=(
            ("this call left a gradient here too", span.filled.site),
            (f"`{other}` steps on it", update.site),
            ("their own call adds to it", None if early is None else site),
            (f"`{own}` steps on the sum", span.updates[0].site),
        ),
        evidence={"tensors": tensors[:16], "assumed": "each optimizer steps on its own loss"},
        fixes=_fixes(record, span, after),
        tensors=tensors,
        calls=() if after.call is None else (after.call,),
        optimizers=(span.updates[0].optimizer,) if span.updates[0].optimizer is not None else (),
    )


def _early_clear(record: Record, span: Span, site: int) -> int | None:
    """The clear above the other loss's backward call, where all stand in one function."""
    first = None if span.filled.site is None else site_of(record, span.filled.site)
    if first is None or first.function != site_of(record, site).function:
        return None
    return cleared_above(record, span, first)


def _fixes(record: Record, span: Span, after: LeafGrad) -> Iterator[Fix]:
    step = span.updates[0].site
    held = receiver(record, step, "step")
    if held is None or after.site is None or step is None:
        return
    site = site_of(record, after.site)
    node = statement(record, site)
    if node is not None and lookup(record).sites[step].function == site.function:
        added = line_before(record, site, node, f"{held}.zero_grad()")
        if added is not None:
            yield Fix(title="Clear before its own backward call", safety="unsafe", edits=(added,))
