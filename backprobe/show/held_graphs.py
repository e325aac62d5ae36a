"""What outlives its step, and the steps that went wrong, as short lines: growth, held graphs, anomalies.

1. Silence where nothing grows, nothing is held by a name that was searched for, and every step was well.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.locations import line_of
from backprobe.show.amounts import count_noun, format_bytes, number
from backprobe.show.plain_text import cut, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backprobe.record import Growth, Record, Retention, Step

_RISES: Final = 3
"""Calls in a row with more alive each before a graph is said to grow: one or two may be a warm-up."""

_MOST: Final = 5
_ANOMALY: Final = {
    "non-finite": "the norm of its gradients is {norm}",
    "exception": "it raised an exception",
    "warning": "torch warned",
    "none-read": "a `.grad` that was read was None",
    "gradient-stopped": "a gradient that came before did not come",
}


def held_lines(record: Record) -> list[str]:
    """Write a line for each statement whose graphs grow, and for each graph that a name still holds at the end."""
    return _growing(record) + _still_held(record)


def _growing(record: Record) -> list[str]:
    of_site: dict[int | None, list[Growth]] = defaultdict(list)
    for row in record.growth:
        of_site[row.site].append(row)
    lines: list[str] = []
    for site, rows in of_site.items():
        rising = _longest_rise(rows)
        if len(rising) <= _RISES or 2 * len(rising) < len(rows):
            continue
        count, first, last = count_noun(len(rising) - 1, "call"), rising[0].live_nodes, rising[-1].live_nodes
        told = f"line {_line(record, site)}  the graph grew from {first:,} to {last:,} nodes in {count}"
        lines.append(f"  {told}{_kept_by(record, {row.moment for row in rows})}")
    return lines[:_MOST]


def _longest_rise(rows: list[Growth]) -> list[Growth]:
    """Find the longest run of calls that each left more nodes alive than the one before."""
    best, start = rows[:1], 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at].live_nodes <= rows[at - 1].live_nodes:
            best, start = max(best, rows[start:at], key=len), at
    return best


def _kept_by(record: Record, moments: set[int]) -> str:
    """Write the names that were found when the growth was first seen."""
    first = {moment + 1 for moment in moments} | moments
    rows = [row for row in record.retentions if row.moment in first and row.holders and row.call is None]
    names = dict.fromkeys(path for row in rows for path in row.holders)
    return f"; {_holder_words(list(names))}" if names else ""


def _still_held(record: Record) -> list[str]:
    groups: dict[tuple[int | None, str], list[Retention]] = defaultdict(list)
    for row in record.retentions:
        if row.call is None and row.holders and row.state in ("held", "partly-freed") and _is_last(record, row):
            groups[row.site, re.sub(r"\d+", "0", row.holders[0])].append(row)
    lines: list[str] = []
    for (site, _pattern), rows in groups.items():
        row = max(rows, key=lambda held: (held.held_bytes, held.root))
        times = f" \u00d7{len(rows)}" if len(rows) > 1 else ""
        name = cut(plain(row.name or "a tensor"), 32) + times
        nodes, size = count_noun(row.held_nodes, "node"), format_bytes(row.held_bytes)
        lines.append(
            f"  line {_line(record, site)}  `{name}` is still held with {nodes}, {size}; {_holder_words(row.holders)}"
        )
    if len(lines) > _MOST:
        lines[_MOST:] = [f"  ... and {count_noun(len(lines) - _MOST, 'more graph')}: `--format json` has them all"]
    return lines


def _is_last(record: Record, row: Retention) -> bool:
    """Return whether the row is of the run's end."""
    return bool(record.moments) and row.moment == record.moments[-1].moment


def _holder_words(holders: Sequence[str]) -> str:
    more = f" and {len(holders) - 1} more" if len(holders) > 1 else ""
    return f"held by `{plain(holders[0])}`{more}"


def _line(record: Record, site: int | None) -> str:
    line = None if site is None else line_of(record, site)
    return "?" if line is None else str(line)


def step_lines(record: Record) -> list[str]:
    """Write a line for each step that went wrong, at most five."""
    wrong = [row for row in record.steps if row.anomaly is not None]
    lines = [f"  step {row.step}  {_anomaly(record, row)}" for row in wrong[:_MOST]]
    if len(wrong) > _MOST:
        lines.append(f"  ... and {count_noun(len(wrong) - _MOST, 'more step')}: `--format json` has them all")
    return lines


def _anomaly(record: Record, row: Step) -> str:
    norm = "not finite" if row.grad_norm is None else number(row.grad_norm)
    told = _ANOMALY.get(row.anomaly or "", "it went wrong").format(norm=norm)
    if row.anomaly == "non-finite" and row.loss is not None and not math.isfinite(row.loss):
        told = f"its loss is {number(row.loss)}"
    tensor = None if row.tensor is None else lookup(record).tensors[row.tensor].fqn
    told = f"{told}: `{plain(tensor)}`" if tensor is not None else told
    return told if row.sampled else f"{told}; it was not looked at"
