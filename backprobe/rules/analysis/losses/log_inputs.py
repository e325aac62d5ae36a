"""Losses that want logarithms of probabilities, and were given something else: told by graph or by values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import op
from backprobe.rules.analysis.losses.activations import Place, place_of
from backprobe.rules.analysis.losses.loss_calls import LossCall, argument_text, loss_calls, region_of_call, values_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Region

if TYPE_CHECKING:
    from backprobe.record import Record

ABOVE_ZERO: Final = 0.05
"""What no logarithm of a probability exceeds: log(1 + eps) with eps up to 5e-3, ten times lower, is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLog:
    """A call of a loss whose input is no logarithm of probabilities.

    Attributes:
        place: The softmax that computed it; None if its values tell. greatest: its greatest element, if measured.
        text: How the program writes it. why: in words. region: the call of the loss.
    """

    call: LossCall
    place: Place | None
    greatest: float | None
    text: str
    why: str
    region: Region | None


def not_logarithms(record: Record, function: str) -> dict[int, list[NotLog]]:
    """The calls of a loss that were given no logarithms, by site; where values tell, in every call of the site."""
    calls = loss_calls(record, function)
    times: dict[int, int] = {}
    found: dict[int, list[NotLog]] = {}
    for call in calls:
        times[call.site] = times.get(call.site, 0) + 1
        one = _judged(record, call)
        if one is not None:
            found.setdefault(call.site, []).append(one)
    return {site: ones for site, ones in found.items() if ones[0].place is not None or len(ones) == times[site]}


def _judged(record: Record, call: LossCall) -> NotLog | None:
    stats = values_of(record, call.given, call.moment)
    greatest = None if stats is None else stats.max
    text = argument_text(record, call.call, 0, "input")
    region = region_of_call(record, call.call)
    if call.made_by is not None and op(lookup(record).nodes[call.made_by]) == "Softmax":
        place = place_of(record, call.made_by)
        if place is not None:
            why = "comes from a softmax without a logarithm"
            return NotLog(call=call, place=place, greatest=greatest, text=text, why=why, region=region)
    if greatest is not None and greatest > ABOVE_ZERO:
        why = f"holds values up to {greatest:.3g}, which no logarithm of a probability has"
        return NotLog(call=call, place=None, greatest=greatest, text=text, why=why, region=region)
    return None
