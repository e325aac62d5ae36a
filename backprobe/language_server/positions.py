r"""Lines and columns: ours count code points from 1, an editor's count units of its encoding from 0.

    line            's = w.grad'  with U+1D70E, a mathematical sigma, for s
    code points     `w` is the 5th            region.start_col = 5
    UTF-16 units    `w` is the 6th            position.character = 5

A line ends at `\n`, `\r\n` or `\r`, as both Python and the protocol have it; `str.splitlines` knows eight more.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_BEYOND_BASIC_PLANE: Final = 0x10000


def split_lines(text: str) -> list[str]:
    """Split a text into lines without their ends; a text that ends with a line's end has an empty last line."""
    return _BREAK.split(text)


def units_at(line: str, column: int, encoding: Encoding) -> int:
    """How many units of the encoding stand before a column of code points, counted from 0; at most the line's."""
    before = line[: max(0, column)]
    if encoding == "utf-32" or before.isascii():
        return len(before)
    return sum(map(_width(encoding), before))


def column_at(line: str, units: int, encoding: Encoding) -> int:
    """Return the column in code points, from 0, of a place in units; inside a character, that character's column."""
    if encoding == "utf-32" or line.isascii():
        return max(0, min(units, len(line)))
    width, passed = _width(encoding), 0
    for column, character in enumerate(line):
        passed += width(character)
        if passed > units:
            return column
    return len(line)


def _width(encoding: Encoding):  # noqa: ANN202 - a function of one character
    return _utf16_width if encoding == "utf-16" else _utf8_width


def _utf16_width(character: str) -> int:
    return 2 if ord(character) >= _BEYOND_BASIC_PLANE else 1


def _utf8_width(character: str) -> int:
    code = ord(character)
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < _BEYOND_BASIC_PLANE else 4
