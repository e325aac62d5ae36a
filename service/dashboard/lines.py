"""The source with what happened on each line: names bound and their state, backward calls, findings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.severity import LEVELS
from service.dashboard.highlight import Token, color_lines
from service.dashboard.signs import Sign, sign_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.dashboard.cards import Card
    from store.queries import BackwardCallRow, LineBinding, SourceFile, SourceLine

LINES_PER_PAGE: Final = 400
_MOST_NAMES: Final = 12
"""Names shown on one line; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A name that came to hold a tensor on a line, with its last state; `times`: how many tensors it held there."""

    name: str
    tensor: int
    shape: tuple[int, ...] | None
    sign: Sign
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line.

    Attributes:
        level: Of its worst finding, "" without one. more_names: names left out. step_bytes: saved in one step at most.
    """

    number: int
    tokens: tuple[Token, ...]
    level: str
    bound: tuple[Bound, ...]
    more_names: int
    passes: int
    step_bytes: int
    calls: tuple[BackwardCallRow, ...]
    more_calls: int
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Lines `first` to `last` of a file; `files`: all of the snippet."""

    path: str
    files: tuple[str, ...]
    lines: tuple[Line, ...]
    first: int
    last: int
    count: int


def listing(file: SourceFile, first: int, cards: Mapping[str, Card], calls: Mapping[int, BackwardCallRow]) -> Listing:
    """Annotate a part of a file.

    Args:
        file: All of its lines.
        first: The first one to show; 1-based.
        cards: Findings by id. calls: backward calls by number; those not in it are only counted.
    """
    tokens = color_lines([line.text for line in file.lines])
    first = max(1, min(first, len(file.lines)))
    shown = file.lines[first - 1 : first - 1 + LINES_PER_PAGE]
    return Listing(
        path=file.path,
        files=file.files,
        lines=tuple(_line(line, tokens[line.line - 1], cards, calls) for line in shown),
        first=first,
        last=first + len(shown) - 1,
        count=len(file.lines),
    )


def _line(
    line: SourceLine, tokens: tuple[Token, ...], cards: Mapping[str, Card], calls: Mapping[int, BackwardCallRow]
) -> Line:
    found = tuple(cards[finding] for finding in line.findings if finding in cards)
    levels = {card.level for card in found if not card.suppressed}
    bound = _bound(line.bindings)
    known = [calls[call] for call in line.backward_calls if call in calls]
    return Line(
        number=line.line,
        tokens=tokens,
        level=next((level for level in LEVELS if level in levels), ""),
        bound=bound[:_MOST_NAMES],
        more_names=max(0, len(bound) - _MOST_NAMES),
        passes=line.passes,
        step_bytes=line.step_bytes,
        calls=tuple(known[-1:]) if len(known) > 2 else tuple(known),
        more_calls=len(line.backward_calls) - min(len(known), 1 if len(known) > 2 else 2),
        cards=found,
    )


def _bound(bindings: Sequence[LineBinding]) -> tuple[Bound, ...]:
    """One entry per name: its last tensor, and how many tensors it held on this line."""
    times = Counter(binding.name for binding in bindings)
    last = {binding.name: binding for binding in bindings}
    return tuple(
        Bound(
            name=name,
            tensor=binding.tensor,
            shape=binding.shape,
            sign=sign_of(
                is_leaf=binding.is_leaf,
                requires_grad=binding.requires_grad,
                retains_grad=binding.retains_grad,
                grad=binding.grad,
                grad_norm=binding.grad_norm,
            ),
            times=times[name],
        )
        for name, binding in last.items()
    )
