"""Gradient scalers: which backward calls had a scaled root, and which steps went through a scaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.walks import op
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import is_same_statement
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record


def scales(event: OptimizerEvent) -> bool:
    """The scaler of an event is switched on, and its factor changes something."""
    return event.scale_before not in (None, 1.0)


@table
def scaled_calls(record: Record) -> dict[int, OptimizerEvent]:
    """The backward calls whose root a scaler had multiplied, with the last `scale` of theirs."""
    index = lookup(record)
    events = [event for event in record.optimizer_events if event.kind == "scaler_scale" and scales(event)]
    found: dict[int, OptimizerEvent] = {}
    for call in record.backward_calls if events else ():
        products = {index.nodes[node].site for node in reaches(record)[call.call].met if op(index.nodes[node]) == "Mul"}
        for event in events:
            before = event.moment <= call.moment_before
            if before and any(site == event.site or is_same_statement(record, site, event.site) for site in products):
                found[call.call] = event
    return found


@table
def scaler_steps(record: Record) -> dict[int, OptimizerEvent]:
    """The optimizer steps that a scaler made: the number of the step's event -> the scaler's."""
    found: dict[int, OptimizerEvent] = {}
    events = record.optimizer_events
    for at, event in enumerate(events):
        if event.kind == "scaler_step":
            earlier = (one for one in reversed(events[:at]) if one.optimizer == event.optimizer)
            step = next(earlier, None)
            if step is not None and step.kind == "step" and step.site == event.site:
                found[step.n] = event
    return found


def unscaled_between(record: Record, optimizer: int | None, start: int, end: int) -> OptimizerEvent | None:
    """The first `unscale_` of an optimizer between two moments."""
    for event in record.optimizer_events:
        if event.kind == "scaler_unscale" and event.optimizer == optimizer and start <= event.moment <= end:
            return event
    return None
