"""Colour and width for a terminal: escape sequences where asked for, and how many columns a text takes."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

_CODES: Final = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;34",
    "good": "32",
    "gone": "31",
    "strong": "1",
    "quiet": "2",
}


@dataclass(frozen=True, slots=True)
class Ink:
    """Paints text, or leaves it alone where colour is off."""

    color: bool = False

    def __call__(self, role: str, text: str) -> str:
        """Color the text for its role."""
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self.color and text else text


def columns(text: str) -> int:
    """Terminal columns of a text without escape sequences: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad_text(text: str, width: int) -> str:
    """Pad the text with blanks up to `width` columns."""
    return text + " " * max(0, width - columns(text))
