"""Places for the boxes of a graph: rows from the loss down to the leaves, few crossings, in time O(V + E).

1. The row of a box is the longest way from a root to it, so every edge points down.
2. An edge over several rows gets a bend in each of them, so that it does not run through boxes.
3. `SWEEPS` times, rows are sorted by the mean place of the neighbours above and below (barycentres).
4. Nothing recurses: a graph may be thousands of rows deep.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", 1981.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

SWEEPS: Final = 4
MOST_BENDS: Final = 4000
"""Bends in all; a graph with more long edges draws them straight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where everything stands; the unit is a pixel, the origin the upper left corner.

    Attributes:
        centres: The middle of each box. paths: per edge its points from start to end, the middles of both included.
    """

    centres: dict[str, tuple[float, float]]
    paths: list[list[tuple[float, float]]]
    width: float
    height: float


def place(
    widths: Mapping[str, float], edges: Sequence[tuple[str, str]], *, box_height: float, gap: float, row_gap: float
) -> Placed:
    """Lay a graph out.

    Args:
        widths: The width of each box. edges: (upper, lower) pairs; a graph with a cycle is laid out as far as it has
            rows, what is left in a last row.
        gap: Least distance between boxes of a row; row_gap: between rows.
    """
    row_of = ranks(list(widths), edges)
    chains, wide = _with_bends(row_of, edges, dict(widths))
    rows = _rows(row_of)
    links = [link for chain in chains for link in pairwise(chain)]
    above, below = _neighbours(links)
    for sweep in range(SWEEPS):
        _sort(rows, above if sweep % 2 == 0 else below, downwards=sweep % 2 == 0)
    across = _across(rows, wide, above, below, gap)
    left = min((across[box] - wide[box] / 2 for box in across), default=0.0)
    points = {
        box: (across[box] - left, row * (box_height + row_gap) + box_height / 2)
        for row, boxes in enumerate(rows)
        for box in boxes
    }
    return Placed(
        centres={box: points[box] for box in widths},
        paths=[[points[stop] for stop in chain] for chain in chains],
        width=max((points[box][0] + wide[box] / 2 for box in points), default=0.0),
        height=max(0.0, len(rows) * (box_height + row_gap) - row_gap),
    )


def ranks(boxes: Sequence[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Assign each box a row: the longest way to it from a box that nothing points at."""
    below: dict[str, list[str]] = defaultdict(list)
    waits: dict[str, int] = dict.fromkeys(boxes, 0)
    for upper, lower in edges:
        below[upper].append(lower)
        waits[lower] += 1
    row_of = {box: 0 for box in boxes if waits[box] == 0}
    ready = deque(row_of)
    while ready:
        box = ready.popleft()
        for lower in below[box]:
            row_of[lower] = max(row_of.get(lower, 0), row_of[box] + 1)
            waits[lower] -= 1
            if waits[lower] == 0:
                ready.append(lower)
    last = max(row_of.values(), default=-1) + 1
    return {box: row_of[box] if waits[box] == 0 else last for box in boxes}


def _with_bends(
    row_of: dict[str, int], edges: Sequence[tuple[str, str]], wide: dict[str, float]
) -> tuple[list[list[str]], dict[str, float]]:
    """Each edge as a chain of stops, one per row; bends are added to `row_of` and `wide`."""
    bends = sum(max(0, row_of[lower] - row_of[upper] - 1) for upper, lower in edges)
    chains: list[list[str]] = []
    for number, (upper, lower) in enumerate(edges):
        between = range(row_of[upper] + 1, row_of[lower]) if bends <= MOST_BENDS else ()
        stops = [f"~{number}.{row}" for row in between]
        for stop, row in zip(stops, between, strict=True):
            row_of[stop], wide[stop] = row, 4.0
        chains.append([upper, *stops, lower])
    return chains, wide


def _rows(row_of: Mapping[str, int]) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in range(max(row_of.values(), default=-1) + 1)]
    for box, row in row_of.items():
        rows[row].append(box)
    return rows


def _neighbours(links: Sequence[tuple[str, str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    above: dict[str, list[str]] = defaultdict(list)
    below: dict[str, list[str]] = defaultdict(list)
    for upper, lower in links:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _sort(rows: list[list[str]], neighbours: Mapping[str, list[str]], *, downwards: bool) -> None:
    """Order each row by the mean place of its neighbours in the row before it."""
    order = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
    for row in order:
        other = rows[row - 1 if downwards else row + 1]
        at = {box: place for place, box in enumerate(other)}
        keys: dict[str, float] = {}
        for place_now, box in enumerate(rows[row]):
            near = [at[neighbour] for neighbour in neighbours.get(box, ()) if neighbour in at]
            keys[box] = sum(near) / len(near) if near else place_now
        rows[row].sort(key=keys.__getitem__)


def _across(
    rows: list[list[str]],
    wide: Mapping[str, float],
    above: Mapping[str, list[str]],
    below: Mapping[str, list[str]],
    gap: float,
) -> dict[str, float]:
    """Place the middle of each box along its row: near the middle of its neighbours, without touching the next box."""
    across: dict[str, float] = {}
    for boxes in rows:
        start = -sum(wide[box] + gap for box in boxes) / 2
        for box in boxes:
            across[box] = start + wide[box] / 2
            start += wide[box] + gap
    for sweep in range(2 * SWEEPS):
        downwards = sweep % 2 == 0
        for boxes in rows if downwards else reversed(rows):
            near = above if downwards else below
            wanted = [_mean([across[neighbor] for neighbor in near.get(box, ())], across[box]) for box in boxes]
            across.update(zip(boxes, _spread(wanted, [wide[box] for box in boxes], gap), strict=True))
    return across


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _spread(wanted: Sequence[float], widths: Sequence[float], gap: float) -> list[float]:
    """Places near the wanted ones, in order and without overlap: pushed right, then shifted back by the mean."""
    placed: list[float] = []
    for at, middle in enumerate(wanted):
        least = placed[-1] + (widths[at - 1] + widths[at]) / 2 + gap if placed else middle
        placed.append(max(middle, least))
    shift = _mean([now - then for now, then in zip(placed, wanted, strict=True)], 0.0)
    return [middle - shift for middle in placed]
