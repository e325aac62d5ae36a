"""Boxes that repeat one after the other in a loop without a module around it share a box: `cell, out, pow` 180 times.

    order of the boxes    loss  add mean pow out cell  add mean pow out cell  add mean pow out cell  ...
    patterns              loss  [add mean pow out cell] x180

1. As for equal calls (`repeated_calls`), an interval of one topological order contracts to one box without a cycle.
2. What stands apart, because it has findings or is a root, is equal to nothing, and so ends a pattern.
3. Of patterns that overlap the one that spares most boxes is taken; then what is left on either side is looked at.
4. The work grows with the number of boxes and no faster: a program makes the graph, and a request waits for it.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from itertools import groupby, takewhile
from operator import eq
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence

    from backprobe.show.drawing.repeated_calls import Box

    Element = tuple[Box, ...]
    Instance = tuple[Box, ...]

MOST_BOXES: Final = 60
"""What one looks over at a glance: a view with more boxes has its patterns folded."""

LONGEST: Final = 400
"""Boxes of one pattern; a transformer's block without its module calls has some 60."""

_LENGTHS: Final = 8
"""Lengths that are tried for each width, those at which most come again first."""

_WIDTHS: Final = (1, 3, 8, 24)
"""Boxes in a row that are looked for again."""

_LEAST: Final = 3
"""Boxes that a fold must spare."""

_LOOKS: Final = 20
"""Times that each box is looked at, on average; halves of halves of a million boxes are."""


def elements(order: Sequence[Box], runs: Sequence[Sequence[int]]) -> list[Element]:
    """List the boxes in order; equal calls that share a box are one element."""
    run_of = {call: at for at, run in enumerate(runs) for call in run}
    found: list[Element] = []
    for at, group in groupby(order, lambda box: run_of.get(box[1]) if box[0] == "call" else None):
        together = tuple(group)
        found += [(box,) for box in together] if at is None else [together]
    return found


def patterns(parts: Sequence[Element], kinds: Mapping[Box, Hashable]) -> tuple[tuple[Instance, ...], ...]:
    """Instances of each pattern, in the order in which a gradient comes to them.

    Args:
        parts: The boxes in a topological order.
        kinds: Of each box what makes it equal to another; a box without one is equal to none.
    """
    numbers: dict[Hashable, int] = {}
    text: list[int] = []
    for at, part in enumerate(parts):
        kind = kinds.get(part[0])
        text.append(-1 - at if kind is None else numbers.setdefault((kind, len(part)), len(numbers)))
    found = sorted(_tandems(text))
    return tuple(
        tuple(
            tuple(box for part in parts[at : at + length] for box in part)
            for at in range(start, start + length * times, length)
        )
        for start, length, times in found
    )


def apart(instances: Sequence[Instance], opened: Collection[Instance]) -> Iterator[Sequence[Instance]]:
    """Split a pattern at the instances that are opened."""
    part: list[Instance] = []
    for instance in instances:
        if instance in opened:
            yield part
            part = []
        else:
            part.append(instance)
    yield part


def _tandems(text: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(start, length, times) of what comes again and again, none overlapping another.

    What is left when the work is used up is drawn box by box.
    """
    left = _LOOKS * len(text)
    waiting = [(0, len(text))]
    while waiting and left > 0:
        first, last = waiting.pop()
        left -= last - first
        end = first
        for start, length, times in _best(text[first:last]):
            yield first + start, length, times
            waiting.append((end, first + start))
            end = first + start + length * times
        if end > first:
            waiting.append((end, last))


def _best(text: Sequence[int]) -> list[tuple[int, int, int]]:
    """In order, those that spare most boxes: all that spare equally many and do not overlap, found by one look."""
    ranked = sorted(_repeats(text), key=_worth, reverse=True)
    best: list[tuple[int, int, int]] = []
    for repeat in takewhile(lambda pattern: _worth(pattern)[0] == _worth(ranked[0])[0], ranked):
        at = bisect(best, repeat)
        if (at == 0 or _end(best[at - 1]) <= repeat[0]) and (at == len(best) or _end(repeat) <= best[at][0]):
            best.insert(at, repeat)
    return best


def _end(repeat: tuple[int, int, int]) -> int:
    start, length, times = repeat
    return start + length * times


def _worth(repeat: tuple[int, int, int]) -> tuple[int, int, int]:
    """Boxes spared; then the shorter pattern, then the nearer to the root."""
    start, length, times = repeat
    return (times - 1) * length, -length, -start


def _repeats(text: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the tandems of each likely length."""
    for length in _likely(text):
        at = 0
        for equal, group in groupby(map(eq, text[length:], text)):
            count = sum(1 for _ in group)
            times = count // length + 1
            if equal and (times - 1) * length >= _LEAST:
                yield at, length, times
            at += count


def _likely(text: Sequence[int]) -> Iterator[int]:
    """Distances at which boxes, or several in a row, come again: a pattern's length is among them.

    One box alone does not tell the length of a pattern that has it twice; so many in a row are but once in it.
    """
    seen: set[int] = set()
    for width in _WIDTHS:
        last: dict[tuple[int, ...], int] = {}
        distances: Counter[int] = Counter()
        for at in range(len(text) - width + 1):
            window = tuple(text[at : at + width])
            if window in last:
                distances[at - last[window]] += 1
            last[window] = at
        likely = [length for length, _ in distances.most_common() if length <= LONGEST and length not in seen]
        seen.update(likely[:_LENGTHS])
        yield from likely[:_LENGTHS]
