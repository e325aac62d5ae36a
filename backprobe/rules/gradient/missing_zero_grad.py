"""BP210 missing-zero-grad: gradients of a step that was taken are added to those of the next one.

What it finds:
    A leaf's gradient was used by an update, the next backward call added to it, and the next update used the sum.
    Clipping, a gradient scaler, and a mean or a limit by hand behind the backward call change nothing of that. The
    finding stands at a clear that is named and not called, or that hit another optimizer, or a module that has nothing
    to clear, in its place; at one that stands outside of the loop whose turns add up; else at the step, if several
    backward calls outside of it feed one; else at the backward call, which is the one behind another optimizer's step.

Why it matters:
    Every step uses the sum of all gradients so far: training drifts, or blows up slowly, and nothing is said.

What PyTorch does:
    A backward call adds to `.grad`; nothing empties it but the program. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()  # <- here
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        loss = model(torch.randn(4, 3)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: several backward calls feed one step, which is then cleared
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        (model(torch.randn(4, 3)).pow(2).mean() / 2).backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()

Near miss: the module is cleared, not the optimizer
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()
        model.zero_grad(set_to_none=False)

Near miss: the gradient is a momentum that is scaled by hand
    import torch

    w = torch.ones(3, requires_grad=True)
    for _ in range(4):
        (w * w).sum().backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
            w.grad *= 0.9

Blind spots:
    A program with one update shows nothing. One that clears every second step is found, though it may mean it.

Source:
    torch.optim.Optimizer.zero_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans
from backprobe.rules.analysis.gradients.grad_writes import is_mean_or_limit, is_of_torch, scaler_steps
from backprobe.rules.analysis.source.expressions import line_after, line_before
from backprobe.rules.analysis.source.naming import capital, optimizer_name, receiver, together
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import (
    method_called,
    parts_of,
    site_at,
    site_of,
    statement,
    statement_at,
    tree_of,
    value_of,
)
from backprobe.rules.analysis.source.uncalled_methods import named_only
from backprobe.rules.analysis.training.updates import updates_of
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Record, Site
    from backprobe.rules.analysis.training.updates import Update
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="missing-zero-grad",
    code="BP210",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="safe",
    needs=("grad-life", "optimizer", "version"),
    explains=("divergence", "exploding-gradient"),
)


@dataclass(frozen=True, slots=True)
class _Sum:
    """Between two updates of a leaf that used one gradient: what arrived, and how many calls brought it.

    Attributes:
        own: The first that arrived since another optimizer stepped: what came before was for that one.
    """

    tensor: int
    first: Update
    second: Update
    arrival: LeafGrad
    arrivals: int
    own: LeafGrad


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer, or per leaf that is updated by hand."""
    groups: dict[tuple[int | None, int | None], list[_Sum]] = {}
    for tensor, spans in grad_spans(record).items():
        sums = [one for span in spans if span.added and len(span.updates) > 1 for one in _sums(record, span)]
        if len(sums) > 1 or (sums and len(updates_of(record)[tensor]) == 2):
            key = (sums[0].second.optimizer, None if sums[0].second.optimizer is not None else sums[0].arrival.site)
            groups.setdefault(key, []).extend(sums)
    for found in groups.values():
        finding = _finding(record, sorted(found, key=lambda one: one.arrival.moment))
        if finding is not None:
            yield finding


def _sums(record: Record, span: Span) -> Iterator[_Sum]:
    for first, second in zip(span.updates, span.updates[1:], strict=False):
        between = [row for row in span.added if first.moment < row.moment < second.moment]
        if between and not _is_rescaled(record, span, first, second, between) and first.optimizer == second.optimizer:
            others = (
                row.moment
                for row in record.optimizer_events
                if row.kind == "step" and row.optimizer != second.optimizer and row.moment < between[-1].moment
            )
            since = max(others, default=0)
            own = next(row for row in between if row.moment > since)
            yield _Sum(span.tensor, first, second, between[0], len(between), own)


def _is_rescaled(record: Record, span: Span, first: Update, second: Update, between: list[LeafGrad]) -> bool:
    """The program changed what was left, as momentum is scaled: what torch clips once more was added does not count.

    Nor does a mean or a limit that is laid on the sum behind the last backward call.
    """
    return any(
        not (row.moment > between[0].moment and is_of_torch(record, row))
        and not (row.moment > between[-1].moment and is_mean_or_limit(record, row))
        for row in span.changed
        if first.moment <= row.moment < second.moment
    )


def _finding(record: Record, found: list[_Sum]) -> Finding | None:
    first = found[0]
    tensors = sorted({one.tensor for one in found})
    wrong = _clear_not_called(record, first) or _clear_of_another(record, first) or _clear_without_effect(record, first)
    wrong = wrong or _clear_of_others(record, first, tensors) or _clear_outside(record, first)
    many = first.arrivals > 1 and not _is_inside_the_step(record, first)
    among = first.own.site if first.own.moment != first.arrival.moment else first.second.site
    site = wrong.site if wrong is not None else among if many else first.arrival.site
    if site is None:
        return None
    who = optimizer_name(record, first.second.optimizer)
    moments = sorted({one.second.moment for one in found})
    cleared = "" if wrong is None else wrong.text
    return told(
        record,
        RULE,
        site,
        (
            f"The gradients that `{who}` has used are never cleared{cleared}.",
            f"{capital(together(record, tensors))} go into the next step with the sum of all steps before.",
            "Clear them before each backward call, or after each step: `zero_grad()`.",
        ),
        binding=who,
        moments=moments,
        related=(
            ("this update used the gradient", first.first.site),
            ("this backward call added to it", first.arrival.site if site != first.arrival.site else None),
            ("and this update used the sum", first.second.site if first.second.site != first.first.site else None),
        ),
        evidence={"tensors": tensors[:16], "sums": len(moments)},
        fixes=_fixes(record, first, wrong),
        tensors=tensors,
        optimizers=() if first.second.optimizer is None else (first.second.optimizer,),
    )


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A clear that stands where the missing one belongs; text: what is wrong with it."""

    site: int | None
    text: str


def _clear_of_others(record: Record, found: _Sum, tensors: list[int]) -> _Wrong | None:
    """The last clear by hand, or of a module, of another leaf of the same backward call and updates."""
    own = found.second.optimizer
    rows = [
        (span.cleared, tensor)
        for tensor, spans in grad_spans(record).items()
        for span in spans
        if tensor not in tensors
        and span.cleared is not None
        and span.cleared.call is None
        and found.first.moment < span.cleared.moment < found.second.moment
        and any(row.site == found.arrival.site for row in span.arrivals)
        and all(one.optimizer == own for one in updates_of(record).get(tensor, ()))
    ]
    if not rows:
        return None
    last = max(cleared.moment for cleared, _tensor in rows)
    cleared = next(one for one, _tensor in rows if one.moment == last)
    others = sorted({tensor for one, tensor in rows if one.moment == last})
    return _Wrong(cleared.site, f": only that of {together(record, others)} is cleared here")


def _clear_outside(record: Record, found: _Sum) -> _Wrong | None:
    """A clear of the same gradients that ran before the loop whose turns add to them: one loop too far out."""
    arrival = None if found.arrival.site is None else site_of(record, found.arrival.site)
    rows = [
        (event.moment, event.site)
        for event in record.optimizer_events
        if event.kind == "zero_grad" and event.optimizer == found.second.optimizer
    ]
    cleared = (span.cleared for span in grad_spans(record)[found.tensor] if span.cleared is not None)
    rows += [(row.moment, row.site) for row in cleared if row.call is None]
    for _moment, number in sorted(rows, key=lambda one: one[0]):
        site = None if number is None else site_of(record, number)
        if site is not None and arrival is not None and _is_outside(site, arrival):
            return _Wrong(number, " in the loop that adds to them, only here")
    return None


def _is_outside(clear: Site, arrival: Site) -> bool:
    """It stands in another loop than the backward call, further up, or in another function."""
    if clear.function != arrival.function or clear.source != arrival.source:
        return True
    return clear.loop_line != arrival.loop_line and clear.line < arrival.line


def _clear_not_called(record: Record, found: _Sum) -> _Wrong | None:
    """A statement beside the backward call or the step that names `zero_grad` and does not call it."""
    beside = [*_beside(record, found.arrival.site), *_beside(record, found.second.site)]
    for site, part in named_only(record, "zero_grad"):
        if statement(record, site) in beside:
            return _Wrong(site.site, f": this names the method `{ast.unparse(part)}` and does not call it")
    return None


def _clear_of_another(record: Record, found: _Sum) -> _Wrong | None:
    """A clear between the two updates of an optimizer that holds none of it, and that was cleared there already."""
    own = found.second.optimizer
    clears = [
        event
        for event in record.optimizer_events
        if event.kind == "zero_grad" and found.first.moment < event.moment < found.second.moment
    ]
    if own is None or any(event.optimizer == own for event in clears):
        return None
    counts = [event.optimizer for event in clears]
    twice = [event for event in clears if counts.count(event.optimizer) > 1]
    # else the only clear in the turn, and its optimizer does not step there
    stepped = {row.optimizer for row in record.optimizer_events if row.kind == "step"}
    event = twice[-1] if twice else next((event for event in clears if event.optimizer not in stepped), None)
    if event is None:
        return None
    return _Wrong(event.site, f"; `{optimizer_name(record, event.optimizer)}` is cleared here in its place")


def _clear_without_effect(record: Record, found: _Sum) -> _Wrong | None:
    """A `module.zero_grad()` beside the backward call or the step that never in the run cleared a gradient."""
    clears = {event.site for event in record.optimizer_events if event.kind == "zero_grad"}
    clears |= {row.site for row in record.leaf_grads if row.call is None and row.kind != "untouched"}
    for node in (*_beside(record, found.arrival.site), *_beside(record, found.second.site)):
        site, value = site_at(record, node), value_of(node)
        if site is not None and site.site not in clears and value is not None and method_called(value) == "zero_grad":
            name = receiver(record, site.site, "zero_grad") or "another module"
            return _Wrong(site.site, f"; `{name}` is cleared here in its place")
    return None


def _beside(record: Record, site: int | None) -> list[ast.stmt]:
    """The statements that run whenever this one does: those of the `with`, loop or function around it."""
    node, tree = statement_at(record, site), None if site is None else tree_of(record, site_of(record, site))
    above = None if node is None or tree is None else tree.parents.get(node)
    body: list[ast.stmt] = getattr(above, "body", [])
    return body if node in body else []


def _is_inside_the_step(record: Record, found: _Sum) -> bool:
    """The optimizer calls the closure that walks the graph: the clear belongs there, not beside the step."""
    if found.arrival.site is None:
        return False
    walks = site_of(record, found.arrival.site).function.rpartition(".")[2]
    calls = (part for part in parts_of(statement_at(record, found.second.site)) if method_called(part) == "step")
    given = (one for call in calls if isinstance(call, ast.Call) for one in (*call.args, *call.keywords))
    return any(
        isinstance(part, ast.Name | ast.Attribute) and last_name(part) == walks
        for one in given
        for part in ast.walk(one)
    )


def _fixes(record: Record, found: _Sum, wrong: _Wrong | None) -> Iterator[Fix]:
    held = _optimizer(record, found)
    arrival, step = found.own.site, found.second.site
    if held is None or arrival is None or step is None or wrong is not None:
        return
    site, steps = site_of(record, arrival), site_of(record, step)
    node, last = statement(record, site), statement(record, steps)
    if node is None or last is None or steps.function != site.function:
        return
    if found.arrivals > 1 and site.loop_line != steps.loop_line:  # several turns of a loop feed the step
        added, where = line_after(record, steps, last, f"{held}.zero_grad()"), "after the step"
    else:
        added, where = line_before(record, site, node, f"{held}.zero_grad()"), "before the backward call"
    if added is not None:
        yield Fix(title=f"Clear the gradients {where}", safety="safe", edits=(added,))


def _optimizer(record: Record, found: _Sum) -> str | None:
    """What steps, as written: also of `scaler.step(optimizer)`."""
    if found.second.site not in scaler_steps(record):
        return receiver(record, found.second.site, "step")
    calls = (part for part in parts_of(statement_at(record, found.second.site)) if method_called(part) == "step")
    given = next((call.args[0] for call in calls if isinstance(call, ast.Call) and call.args), None)
    return ast.unparse(given) if isinstance(given, ast.Name | ast.Attribute) else None
