"""Lines of an upload that are refused: many of them are a mistake, or an attack, and end it early."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from service.errors import Place, Problem

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
        places: Lines that have something wrong in themselves. seconds: spent on lines that were refused.
    """

    places: list[Place] = field(default_factory=list[Place])
    seconds: float = 0.0

    def add(self, number: int, problem: Mapping[str, Any], seconds: float = 0.0) -> None:
        """Line `number` is refused with this problem, after so many seconds; so is the upload, if it is one too many.

        Raises:
            Problem: `invalid-request`, with a place for each bad line.
        """
        self.seconds += seconds
        if problem["code"] in _BAD:
            self.places.append(Place(pointer="#", code=problem["code"], detail=problem["detail"], line=number))
        many = len(self.places) >= MOST
        if not many and self.seconds <= MOST_SECONDS:
            return
        took = "" if many else f", and those refused took {self.seconds:.0f} s to look at"
        lines = f"{len(self.places)} of the first {number:,} lines are bad{took}"
        detail = f"{lines}: the rest was not read, and the audit is canceled."
        raise Problem("invalid-request", detail, places=tuple(self.places), hint="Mend the lines that `errors` names.")
