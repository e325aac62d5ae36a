"""Why a tensor's `.grad` is None: one verdict each, the first of a fixed list that holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backprobe.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNone:
    """The reason that one tensor has no gradient at the end of the record.

    Attributes:
        verdict: Its name in the list of `VERDICTS`, kebab case.
        site, line: The statement that decided it; None where no statement did.
        call: The backward call that decided it; None where none did.
        text: One sentence for people.
    """

    verdict: str
    text: str
    site: int | None = None
    line: int | None = None
    call: int | None = None


def why_none(record: Record) -> dict[int, WhyNone]:
    """The verdict for each tensor whose last snapshot holds no gradient, by tensor."""
    return {}
