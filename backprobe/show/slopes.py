"""Backward calls of one statement whose counts differ from call to call, told by how they grow.

Nodes met 3, 6, 9 ... 600 are `3 to 600 nodes, +3 a call`; 5, 4, 9 are `4 to 9 nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.show.amounts import count_noun, format_bytes

if TYPE_CHECKING:
    from backprobe.show.backward_calls import CallRow

MOST_APART: Final = 3
"""Different calls of one statement that are shown by themselves; more are one row with its slope."""


def slope_text(rows: Sequence[CallRow]) -> str:
    """Write what two or more calls of one statement ran, freed and left, from the first to the last."""
    met = _range([row.nodes_met for row in rows], _plain, "nodes")
    freed = _range([row.freed_bytes for row in rows], format_bytes, "saved", verb="freed ")
    kept = _range([row.kept_bytes for row in rows], format_bytes, "", verb="still held: ")
    return f"{count_noun(len(rows), 'call')}: {met}; {freed}; {kept}"


def _range(amounts: Sequence[int], shown: Callable[[int], str], noun: str, verb: str = "") -> str:
    tail = f" {noun}" if noun else ""
    low, high = min(amounts), max(amounts)
    if low == high:
        return f"{verb}{shown(low)}{tail} each"
    steps = [after - before for before, after in pairwise(amounts)]
    if min(steps) >= 0 or max(steps) <= 0:
        mean = (amounts[-1] - amounts[0]) / len(steps)
        about = "" if len(set(steps)) == 1 else "about "
        sign = "+" if mean > 0 else "-"
        each = shown(round(abs(mean))) if abs(mean) >= 1 else f"{abs(mean):.1g}"
        return f"{verb}{shown(amounts[0])} to {shown(amounts[-1])}{tail}, {about}{sign}{each} a call"
    return f"{verb}{shown(low)} to {shown(high)}{tail}"


def _plain(count: int) -> str:
    return f"{count:,}"
