"""HTML that cannot be left unescaped by mistake: text is escaped, what is markup already has a separate type.

1. Control and direction characters are shown as escapes, as everywhere; then `& < > " '` are escaped.
2. Only `tag`, `join_parts` and `trust_text` make `Html`; `trust_text` takes what is ours: scripts, styles, drawings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final

from backprobe.show.plain_text import cut, plain

VOID: Final = frozenset({"meta", "br", "input", "link"})
LONGEST_NAME: Final = 200
_CODE: Final = re.compile(r"`([^`]*)`")


class Html(str):
    """Markup."""

    __slots__ = ()


Part = str | int | None
"""What an element holds: markup as it is, text escaped, nothing."""


def trust_text(text: str) -> Html:
    """Markup of our own."""
    return Html(text)


def text(value: str, *, block: bool = False) -> Html:
    """Escape a stranger's text; `block`: newlines and tabs are kept."""
    return Html(escape(plain(value, keep_newlines=block, tab="\t" if block else " ")))


def name(value: str) -> Html:
    """Escape a stranger's name, and cut it to one line of at most 200 characters."""
    return Html(escape(cut(plain(value, tab=" "), LONGEST_NAME)))


def prose(value: str) -> Html:
    """Escape a sentence in which backticks mark code."""
    parts = _CODE.split(value)
    return join_parts(tag("code", part) if at % 2 else text(part) for at, part in enumerate(parts))


def join_parts(parts: Iterable[Part]) -> Html:
    """Markup side by side."""
    return Html("".join(_inner(part) for part in parts))


def tag(kind: str, *parts: Part, **attributes: str | int | bool | None) -> Html:
    """Build an element.

    An attribute of None or False is left out, one of True has no value. `_` in its name is `-`; a last one is dropped.
    """
    told = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None and value is not False
    )
    if kind in VOID:
        return Html(f"<{kind}{told}>")
    return Html(f"<{kind}{told}>{join_parts(parts)}</{kind}>")


def _attribute(key: str, value: str | int) -> str:
    shown = key.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escape(plain(str(value), tab=" "))}"'


def _inner(part: Part) -> str:
    if part is None:
        return ""
    return part if isinstance(part, Html) else text(str(part))
