"""A count per day as a row of bars: drawn by the server, with the same in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.show.amounts import count_noun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HEIGHT: Final = 18
"""Of the tallest bar, in pixels."""

WIDTH: Final = 5
"""Of a bar and the gap behind it, where a caller does not say another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """The drawing as one SVG path, and the same in words; sizes in pixels."""

    path: str
    words: str
    width: int
    height: int = HEIGHT


def spark_of(dates: Sequence[str], count_by_day: Mapping[str, int], *, noun: str = "run", width: int = WIDTH) -> Spark:
    """Draw the counts of these ISO dates; a day without is one pixel high, one with a count at least three.

    Args:
        dates: The days, the first one on the left; one at least.
        count_by_day: By ISO date; a day that is not in it has none.
        noun: What is counted, in the singular.
        width: Pixels of a bar and the gap behind it.
    """
    shown = {day: count_by_day.get(day, 0) for day in dates}
    most = max(shown.values())
    path = ""
    for place, count in enumerate(shown.values()):
        height = max(3, round(HEIGHT * count / most)) if count else 1
        path += f"M{place * width} {HEIGHT}v-{height}h{width - 1}v{height}z"
    total = sum(shown.values())
    words = f"{count_noun(total, noun)} in {len(dates)} days"
    if total:
        words += f", most on {max(shown, key=lambda day: shown[day])}: {most}"
    return Spark(path=path, words=words, width=len(dates) * width)
