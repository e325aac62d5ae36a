"""What was still held after each backward call, in words: where it grows, by how much a call, and who holds it.

`GET /retention` has the numbers; the pane with scripts draws them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.show.amounts import count_noun, format_bytes
from backprobe.show.plain_text import cut, plain
from service.dashboard.words import name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.queries import HeldAfter, HeldRoot

MOST_LINES: Final = 8
_RISES: Final = 3
"""Calls in a row that each leave more alive than the one before; fewer may be a warm-up."""

_MOST_STEADY: Final = 0.9
"""Share of calls that must rise for a growth to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPlace:
    """Graphs that one line made and that are held, those of one pattern of names together.

    Attributes:
        path, line: Where their roots were made; None: not known.
        text: Names, what they hold, who holds them. Made visible, not escaped.
    """

    path: str | None
    line: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldShown:
    """The pane: what grows, "" if nothing does; what is held at the last look; `text`: there is nothing to list."""

    growth: str = ""
    lines: tuple[HeldPlace, ...] = ()
    text: str = "Nothing of a graph was still held by a live tensor when a backward call had ended."


def held_shown(found: Sequence[HeldAfter]) -> HeldShown:
    """Build the pane of what `queries.load_held_graphs` found."""
    last = next((after for after in reversed(found) if after.roots), None)
    lines = _places([root for root in last.roots if root.held_nodes or root.held_bytes]) if last is not None else ()
    return HeldShown(growth=growth(found), lines=lines)


def growth(found: Sequence[HeldAfter]) -> str:
    """`+6 nodes, 1.2 KiB with each backward call`, where it is so over most of them; else ""."""
    calls = [after for after in found if after.call is not None and after.live_nodes is not None]
    if len(calls) <= _RISES:
        return ""
    first, last = calls[1], calls[-1]
    steps = (last.call or 0) - (first.call or 0)
    rises = sum(_nodes(after) > _nodes(before) for before, after in pairwise(calls[1:]))
    grown = max(0, _bytes(last) - _bytes(first))
    if steps <= 0 or rises < _MOST_STEADY * (len(calls) - 2):
        return ""
    nodes = _nodes(last) - _nodes(first)
    who = next((who for after in reversed(found) if (who := _holder(after.roots))), "")
    by = f"; held by {who}" if who else ""
    each = round(grown / steps)
    size = f", {format_bytes(each)}" if each else ""
    stays = "" if each else "; what they saved was freed, they themselves stay"
    return f"It grows: +{nodes / steps:.3g} nodes{size} with each backward call{by}{stays}."


def _bytes(after: HeldAfter) -> int:
    return after.held_bytes or 0


def _nodes(after: HeldAfter) -> int:
    return after.live_nodes or 0


def _holder(roots: Sequence[HeldRoot]) -> str:
    holders = next((root.holders for root in roots if root.holders), ())
    return cut(plain(holders[0]), 200) if holders else ""


def _places(roots: Sequence[HeldRoot]) -> tuple[HeldPlace, ...]:
    """Group the roots by place, the worst first. Names that differ only in their numbers are one row with a count."""
    groups: defaultdict[tuple[str | None, int | None, str], list[HeldRoot]] = defaultdict(list)
    for root in roots:
        pattern = re.sub(r"\d+", "*", root.name or "")
        groups[root.path, root.line, pattern].append(root)
    worst = sorted(groups.items(), key=lambda item: -max(root.held_bytes for root in item[1]))
    return tuple(HeldPlace(path=key[0], line=key[1], text=_text(rows)) for key, rows in worst[:MOST_LINES])


def _text(rows: Sequence[HeldRoot]) -> str:
    row = max(rows, key=lambda root: root.held_bytes)
    times = f" \u00d7{len(rows)}" if len(rows) > 1 else ""
    who = _holder(rows)
    by = f", held by {who}" if who else ", and no name was found that holds it"
    amount = f"{count_noun(row.held_nodes, 'node')}, {format_bytes(row.held_bytes)}"
    return f"{name(row.name) or 'a tensor'}{times} keeps {amount}{by}"
