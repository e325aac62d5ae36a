"""Leaves that steps do not change as they should: equal values, gradients of zero, rows that stay equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import is_zero
from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.invariants.coverage_facts import REPEATED, Breach, steps
from backprobe.rules.analysis.invariants.equal_rows import equal_rows
from backprobe.rules.analysis.invariants.stopping_hooks import has_unseen_hook, hook_before
from backprobe.rules.analysis.invariants.unreached_leaves import owners, site_of_zero
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at, step_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers

if TYPE_CHECKING:
    from backprobe.record import Module, OptimizerEvent, Record, Statistics

_SMALLEST_CHANGE: Final = 1e-4
"""Share of a parameter's norm that learning rate times gradient must exceed before an equal value is a breach.
Statistics are float32, whose relative precision is 6e-8; the rest is a margin for many elements."""


_ROUNDING: Final = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-24, "float64": 2**-53}
"""Half the distance to the next number of a dtype, as a share of the number: what is added below it is lost."""


def find_unchanged(record: Record) -> Breach | None:
    """Leaves that were stepped on with a gradient that is not zero, and whose values are the same afterwards."""
    lost = find_lost(record)
    if lost is not None:
        return lost
    for optimizer in record.optimizers:
        found: dict[int, tuple[int, ...]] = {}
        events = [event for event in steps(record) if event.optimizer == optimizer.optimizer]
        for row in optimizer.tensors if optimizer.cls != "LBFGS" else ():
            looked_at = [(event.moment, _is_unchanged(record, row.tensor, row.group, event)) for event in events]
            equal = [same for _moment, same in looked_at if same is not None]
            if len(equal) >= REPEATED and (all(equal[-REPEATED:]) or all(equal[:REPEATED])):
                found[row.tensor] = tuple(moment for moment, same in looked_at if same)
        loads = [
            event.site
            for event in record.optimizer_events
            if event.kind == "load_state_dict" and event.optimizer == optimizer.optimizer
        ]
        site = loads[0] if loads and loads[0] is not None else optimizer.site
        if found and site is not None:
            return Breach("not-changed", site, tuple(found), optimizer.optimizer, next(iter(found.values())))
    return None


def find_lost(record: Record) -> Breach | None:
    """Leaves that each step of their optimizer left as they were, though they had a gradient that is not zero."""
    for optimizer in record.optimizers:
        events = [
            event for event in steps(record) if event.optimizer == optimizer.optimizer and event.unchanged is not None
        ]
        if optimizer.cls == "LBFGS" or len(events) < REPEATED:
            continue
        left = Counter(tensor for event in events for tensor in event.unchanged or ())
        groups = {row.tensor: row.group for row in optimizer.tensors}
        found = [
            tensor
            for tensor, group in groups.items()
            if left[tensor] == len(events)
            and _has_rate(events, group)
            and not all(_is_below_rounding(record, tensor, group, event) for event in events)
            and not _is_taken_back(record, tensor, events)
        ]
        site = events[-1].site
        if found and site is not None:
            moments = tuple(event.moment for event in events)
            return Breach("not-written", site, tuple(found), optimizer.optimizer, moments)
    return None


def _has_rate(events: Sequence[OptimizerEvent], group: int) -> bool:
    """Each of these steps had a learning rate above 0 for a group, as far as that is known."""
    return all(event.learning_rates[group] > 0 for event in events if group < len(event.learning_rates))


def _rate(event: OptimizerEvent, group: int) -> float:
    return event.learning_rates[min(group, len(event.learning_rates) - 1)] if event.learning_rates else 0


def _is_below_rounding(record: Record, tensor: int, group: int, step: OptimizerEvent) -> bool:
    """The learning rate times the gradient changes no value, as where a batch norm takes a bias away again."""
    before, old = state_at(record, tensor, step.moment - 1), _value_before(record, tensor, step)
    gradient = None if before is None or before.grad_stats is None else before.grad_stats.norm
    rounding = _ROUNDING.get(lookup(record).tensors[tensor].dtype or "")
    if gradient is None or old is None or old.norm is None or rounding is None:
        return False
    return _rate(step, group) * gradient <= rounding * old.norm


def _is_taken_back(record: Record, tensor: int, events: Sequence[OptimizerEvent]) -> bool:
    """Return whether the values changed and became what they were, within each step: a limit holds them."""
    history = [(row.moment, row.value) for row in lookup(record).snapshots_of[tensor] if row.value is not None]
    return all(
        len({_numbers(value) for moment, value in history if last.moment < moment <= event.moment}) > 1
        for last, event in pairwise(events)
    )


def _value_before(record: Record, tensor: int, step: OptimizerEvent) -> Statistics | None:
    rows = reversed(lookup(record).snapshots_of[tensor])
    return next((row.value for row in rows if row.moment < step.moment and row.value), None)


def _is_unchanged(record: Record, tensor: int, group: int, step: OptimizerEvent) -> bool | None:
    """Return whether a step left the values as they were; None if not measured, or if the step was too small."""
    before = state_at(record, tensor, step.moment - 1)
    history = lookup(record).snapshots_of[tensor]
    old = _value_before(record, tensor, step)
    following = next((event.moment for event in steps(record) if event.moment > step.moment), None)
    new = next(
        (
            row.value
            for row in history
            if row.moment >= step.moment and row.value and (following is None or row.moment < following)
        ),
        None,
    )
    if before is None or before.grad != "present" or before.grad_stats is None or old is None or new is None:
        return None
    rate = _rate(step, group)
    gradient = before.grad_stats.norm
    if not old.norm or not gradient or (rate and rate * gradient <= _SMALLEST_CHANGE * old.norm):
        return None
    return _numbers(old) == _numbers(new)


def _numbers(measured: Statistics) -> tuple[float | None, ...]:
    return measured.norm, measured.sum, measured.min, measured.max


def find_zero_gradients(record: Record) -> Breach | None:
    """Leaves of optimizers whose gradient is zero in every element whenever it was measured."""
    found: list[int] = []
    for tensor in grad_lives(record):
        measured = [
            (row.moment, row.grad_stats) for row in lookup(record).snapshots_of[tensor] if row.grad == "present"
        ]
        rows = [(moment, stats) for moment, stats in measured if stats is not None]
        times = len({step_of(record, moment) for moment, _stats in rows})
        is_always_zero = all(is_zero(stats) for _moment, stats in rows)
        if in_optimizers(record).get(tensor) and is_always_zero and times >= REPEATED:
            found.append(tensor)
    hook = hook_before(record, found) if found else None
    if hook is not None and hook.site is not None:
        return Breach("zeroed-by-hook", hook.site, tuple(found), None)
    if has_unseen_hook(record, found):
        return None
    site = site_of_zero(record) if found else None  # without one, gradients that are not zero cancel in a sum
    if site is None:
        return None
    modules = [module for tensor in found if (module := owners(record).get(tensor)) is not None]
    if not any(_is_within(module, found) for module in modules):
        return None  # the formula of a loss may give one bias a gradient of zero
    return Breach("zero-gradient", site, tuple(found), None)


def _is_within(module: Module, tensors: Container[int]) -> bool:
    return all(row.tensor is None or row.tensor in tensors for row in module.parameters)


def find_equal_rows(record: Record) -> Breach | None:
    """Weights of whose units each step changes all in the same way."""
    found = equal_rows(record)
    return Breach("rows-equal", next(iter(found.values())), tuple(found), None) if found else None
