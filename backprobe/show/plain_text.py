"""A stranger's text made plain: control and direction characters shown as escapes, long text cut."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

_ESCAPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def plain(text: str, *, keep_newlines: bool = False, tab: str = "    ") -> str:
    """Escape every control, format and direction character, so that the text cannot drive a terminal.

    Args:
        keep_newlines: Leave newlines as they are, for text of several lines.
        tab: What a tab becomes.
    """
    if text.isascii() and text.isprintable():
        return text
    if keep_newlines:
        return "\n".join(plain(line, tab=tab) for line in text.split("\n"))
    return "".join(_escape_character(character, tab) for character in text)


def _escape_character(character: str, tab: str) -> str:
    if character == "\t":
        return tab
    if unicodedata.category(character) in _ESCAPED:
        code = ord(character)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return character


def cut(text: str, width: int) -> str:
    """At most `width` characters; what was cut off shows as an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "\u2026"


def cut_apart(texts: Sequence[str], width: int) -> list[str]:
    """Each at most `width` characters, its middle left out; those that would look like another one stay whole."""
    shortened = [
        text if len(text) <= width else f"{text[: width // 3]}\u2026{text[width // 3 + 1 - width :]}" for text in texts
    ]
    meant: dict[str, set[str]] = {}
    for short, text in zip(shortened, texts, strict=True):
        meant.setdefault(short, set()).add(text)
    return [short if len(meant[short]) == 1 else text for short, text in zip(shortened, texts, strict=True)]
