"""Equal module calls that follow each other share a box: `h.*#0`, 268 times.

1. Only neighbours in one topological order of the boxes are folded. An interval of it contracts to one box without a
   cycle; equal boxes folded wherever they stand made a cycle in 13 of 20 views of four models.
2. A call that stands apart, because it has findings, leaves its run and divides it. Where more than `MOST_APART` of a
   run do, the run stays whole.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    from backprobe.show.drawing.module_boxes import Ops


MOST_APART: Final = 8
"""Calls of one run that are shown apart from it."""

_DIGITS: Final = re.compile("[0-9]+")

Box = tuple[str, int]
"""`("call", 5)`, a module call that is closed, or `("node", 12)`, a node that stands alone."""


def mask_chain(chain: str) -> str:
    """Mask what differs between the repeats of a module call: `h.3#0` becomes `h.*#*`."""
    return _DIGITS.sub("*", chain)


def repeats(
    ops: Ops,
    found: Mapping[int, int | None],
    made: Mapping[int, int],
    kinds: Mapping[int, Hashable],
    apart: Collection[int] = (),
) -> tuple[tuple[int, ...], ...]:
    """Find runs of two or more equal closed calls, each in the order in which a gradient comes to them.

    Args:
        ops: The graph.
        found: Of each node the closed call whose box it lies in; None: it stands alone (`module_boxes.fold_nodes`).
        made: Autograd's sequence number of each node that has one: the later it was made, the earlier it is listed.
        kinds: Of each closed call what makes it equal to another.
        apart: Calls that are to be seen by themselves.
    """
    runs: list[list[int]] = []
    before: Hashable = None
    for kind, number in in_order(ops, found, made):
        equal_to = kinds[number] if kind == "call" else None
        if equal_to is not None and equal_to == before:
            runs[-1].append(number)
        elif equal_to is not None:
            runs.append([number])
        before = equal_to
    return tuple(tuple(part) for run in runs for part in _divide_run(run, apart) if len(part) > 1)


def _divide_run(run: Sequence[int], apart: Collection[int]) -> Iterator[list[int]]:
    """Split a run at those of its calls that stand apart."""
    alone = {call for call in run if call in apart}
    if len(alone) > MOST_APART:
        alone = set()
    part: list[int] = []
    for call in run:
        if call in alone:
            yield part
            part = []
        else:
            part.append(call)
    yield part


def in_order(ops: Ops, found: Mapping[int, int | None], made: Mapping[int, int]) -> Iterator[Box]:
    """Boxes in a topological order, of those that may come the one made last; leaves at the end.

    Boxes in a circle, which only a record that is not of one thread can have, and those behind them, are left out.
    """
    box_of: dict[int, Box] = {node: ("node", node) if call is None else ("call", call) for node, call in found.items()}
    last: defaultdict[Box, int] = defaultdict(lambda: -1)
    for node, box in box_of.items():
        last[box] = max(last[box], made.get(node, -1))
    following = _following(ops.edges, box_of)
    waits_for: defaultdict[Box, int] = defaultdict(int)
    for ends in following.values():
        for end in ends:
            waits_for[end] += 1
    ready = [(-last[box], box) for box in set(box_of.values()) if not waits_for[box]]
    heapq.heapify(ready)
    while ready:
        _, box = heapq.heappop(ready)
        yield box
        for end in following.get(box, ()):
            waits_for[end] -= 1
            if not waits_for[end]:
                heapq.heappush(ready, (-last[end], end))


def _following(edges: Iterable[tuple[int, int]], box_of: Mapping[int, Box]) -> dict[Box, set[Box]]:
    found: defaultdict[Box, set[Box]] = defaultdict(set)
    for start, end in edges:
        if box_of[start] != box_of[end]:
            found[box_of[start]].add(box_of[end])
    return found
