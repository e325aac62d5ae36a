"""Calls that clip gradients, and the gradients that each of them changed."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import Span, grad_spans
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record

KINDS: Final = frozenset({"clip_grad_norm", "clip_grad_value"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """One call.

    Attributes:
        site: Its statement. name: of the function: `clip_grad_norm_`.
        spans: The gradients that it changed, each with what came before and after it.
    """

    event: OptimizerEvent
    site: int
    name: str
    spans: tuple[Span, ...]


@table
def clips(record: Record) -> tuple[Clip, ...]:
    """The calls at a line of the program, in order: torch writes each gradient that it clips, by a factor of 1 too."""
    changed: dict[int, list[Span]] = {}
    for spans in grad_spans(record).values():
        for span in spans:
            for row in span.changed:
                changed.setdefault(row.moment, []).append(span)
    others = {event.moment for event in record.optimizer_events}
    found: list[Clip] = []
    for event in record.optimizer_events:
        if event.kind in KINDS and event.site is not None:
            spans = changed.get(event.moment)
            if spans is None and event.moment + 1 not in others:
                spans = changed.get(event.moment + 1)  # at the end of a function it is seen when that returns
            found.append(Clip(event=event, site=event.site, name=f"{event.kind}_", spans=tuple(spans or ())))
    return tuple(found)


def only_measures(record: Record, site: int, events: list[OptimizerEvent]) -> bool:
    """The calls of a statement clip nothing: no limit, or one that was never reached while the norm is used."""
    if all(event.limit == math.inf for event in events):
        return True
    reached = any(event.total_norm is None or event.limit is None or event.total_norm > event.limit for event in events)
    return not reached and not isinstance(statement(record, site_of(record, site)), ast.Expr)
