"""Bounds that a stranger's text must keep before CPython parses it.

1. Text from a record or a request is parsed by `parse_bounded` only, in every process that serves several people.
2. Within the bounds, memory and time of a parse grow with the text and not with its square. The tests measure that for
   every construct of the grammar which repeats or nests.

CPython 3.11 joins the text of every prefix of a dotted name in an import: `import a.a.a` with 180 KB took 2.3 GiB and
9 s. Its depth is bounded by CPython itself: 200 brackets, 100 indentations, 6,000 levels of its own recursion. CPython
3.12 and later copy the rest of the text at each brace of an f-string.
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import Final

MOST_WORDS: Final = 150_000
"""Of the texts of a record, or of a request, together: 18,000 lines as people write them. A word may be a kilobyte of
tree: one source of 1 MiB that is `x;x;x;...` took 0.9 GiB, and 2.5 s in which no other thread ran."""

MOST_DOTS: Final = 100
"""Of one dotted name. The prefixes of all names together then have at most 50 times the characters of the text."""

MOST_COPIED_BYTES: Final = 2 << 30
"""Number of braces times characters: what CPython 3.12 copies, piece by piece, for f-strings."""

_WORD: Final = re.compile(r"\w+|[^\w\s]|\n")
_BLANKS: Final = r"(?:[ \t\f]|\\\r?\n)*+"
_DOTTED: Final = re.compile(rf"(?:\.{_BLANKS}[^\s.\\()\[\]{{}},;:=+*/%&|^~<>@!\"'#-]++{_BLANKS})++")
"""The rest of a dotted name behind its first part. A part is whatever no sign ends, for names have letters that `\\w`
does not know. Nothing in it is tried twice."""


def count_words(text: str, most: int) -> int:
    """Count names, numbers, signs and line ends of a text, up to `most`."""
    return sum(1 for _ in itertools.islice(_WORD.finditer(text), most))


def is_bounded(text: str) -> bool:
    """True if no construct of the text takes more than its share of a parse; its length is not looked at."""
    if text.count("{") * len(text) > MOST_COPIED_BYTES:
        return False
    return all(found[0].count(".") <= MOST_DOTS for found in _DOTTED.finditer(text))


def parse_bounded(text: str) -> ast.Module | None:
    """Parse a stranger's text that has at most `MOST_WORDS` words; None if it is no Python or keeps no bound."""
    if not is_bounded(text):
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
