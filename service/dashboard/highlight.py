"""Python source as coloured tokens, line by line. The template escapes the text; no markup is made here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from backprobe.show.plain_text import plain

MOST_COLOURED: Final = 200_000
"""Characters; a longer file is shown in one colour, because a stranger's text must not cost seconds."""

_CLASSES: Final[tuple[tuple[_TokenType, str], ...]] = (
    (Keyword, "tok-k"),
    (Operator.Word, "tok-k"),
    (String, "tok-s"),
    (Comment, "tok-c"),
    (Number, "tok-m"),
    (Name.Function, "tok-f"),
    (Name.Class, "tok-f"),
    (Name.Decorator, "tok-f"),
)

_lexer: Final = PythonLexer(stripnl=False, ensurenl=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A piece of one line; `style` is a class of the stylesheet, "" for plain text."""

    text: str
    style: str = ""


def _style(kind: _TokenType) -> str:
    return next((name for parent, name in _CLASSES if kind in parent), "")


def color_lines(lines: list[str]) -> list[tuple[Token, ...]]:
    """Color the tokens of each line. A token that spans lines (a docstring) is cut at their ends."""
    text = "\n".join(lines)
    if len(text) > MOST_COLOURED:
        return [(Token(text=plain(line, tab="\t")),) for line in lines]
    found: list[list[Token]] = [[]]
    for kind, value in _lexer.get_tokens(text):
        style = _style(kind)
        for at, part in enumerate(value.split("\n")):
            if at:
                found.append([])
            if part:
                found[-1].append(Token(text=plain(part, tab="\t"), style=style))
    found.extend([] for _ in range(len(lines) - len(found)))
    return [tuple(line) for line in found[: len(lines)]]
