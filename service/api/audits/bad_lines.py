"""Lines of an upload that are refused: many of them are a mistake, or an attack, and end it early."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from service.problems.errors import Place, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST: Final = 100
"""Lines that are no item, or whose program does not parse: at so many an upload is refused."""

MOST_SECONDS: Final = 10.0
"""For looking at lines that are refused, whatever for; a line with a large program takes 0.4 s at most."""

_BAD: Final = frozenset({"malformed-request", "invalid-request", "too-large", "syntax-error", "no-entry-point"})
"""Codes of what a line has wrong in itself; others, such as `isolation-unavailable`, may be over tomorrow."""


@dataclass(slots=True, kw_only=True)
class BadLines:
    """Those of one request.

    Attributes:
        places: Lines that have something wrong in themselves. others: the first that were refused for another reason.
        refused: Lines of both kinds. seconds: spent on them.
    """

    places: list[Place] = field(default_factory=list[Place])
    others: list[Place] = field(default_factory=list[Place])
    refused: int = 0
    seconds: float = 0.0

    def add(self, number: int, problem: Mapping[str, Any], seconds: float = 0.0) -> None:
        """Line `number` is refused with this problem, after so many seconds; so is the upload, if it is one too many.

        Raises:
            Problem: `invalid-request`, with a place for each bad line.
        """
        self.seconds += seconds
        self.refused += 1
        place = Place(pointer="#", code=problem["code"], detail=problem["detail"], line=number)
        if problem["code"] in _BAD:
            self.places.append(place)
        elif len(self.others) < MOST:
            self.others.append(place)
        many = len(self.places) >= MOST
        if not many and self.seconds <= MOST_SECONDS:
            return
        lines = f"{len(self.places)} of the first {number:,} lines are bad"
        if not many:
            lines = (
                f"{self.refused:,} of the first {number:,} lines are refused, and took {self.seconds:.0f} s to look at"
            )
        detail = f"{lines}: the rest was not read, and the audit is canceled."
        places = tuple(sorted((*self.places, *self.others), key=lambda place: place.line or 0)[:MOST])
        raise Problem("invalid-request", detail, places=places, hint="Correct the lines listed in `errors`.")
