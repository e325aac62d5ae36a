"""Suppressing comments: which lines of the source each covers, which rules it names, and its reason.

    w = torch.ones(3, requires_grad=True).to(device)  # backprobe: ignore[non-leaf-grad-read] -- only logged
    # backprobe: file-ignore[needless-retain-graph] -- two losses share the trunk

1. They are found by the tokenizer, never inside a string.
2. One at the end of a line covers the statement that the line belongs to; one alone on its line the next statement.
   Of a compound statement that is its head.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.framework.locations import source_lines
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record

_COMMENT: Final = re.compile(
    r"#\s*+backprobe:\s*+(?P<file>file-)?ignore(?P<names>\[[^\]]*+\])?+\s*+(?:--(?P<reason>.*+))?+$"
)
"""Nothing in it is tried twice. With `\\s*` a comment with 16,000 blanks took 0.6 s, and 16 times that with 4 times as
many; and while a pattern is at work, every thread of a worker waits."""


MOST_NAMES: Final = 64
"""Rules that one comment can name; those behind are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One suppressing comment.

    Attributes:
        source: The file's number in the record. line, col: Where it stands; col counts code points from 1.
        first, last: The lines it covers; the whole file for a `file-ignore`.
        names: The first `MOST_NAMES` different rules in its brackets, as written; empty where there are no brackets.
        has_more_names: It names more.
        reason: What stands behind `--`; None where nothing does.
    """

    source: int
    line: int
    col: int
    first: int
    last: int
    names: tuple[str, ...]
    has_more_names: bool
    reason: str | None
    whole_file: bool

    def covers(self, source: int, line: int) -> bool:
        """A line of a file lies in what it covers."""
        return source == self.source and self.first <= line <= self.last


@table
def comments(record: Record) -> tuple[Comment, ...]:
    """The suppressing comments of all recorded sources, in order."""
    return tuple(comment for source in record.sources for comment in _of_source(record, source.source, source.text))


def _of_source(record: Record, source: int, text: str) -> Iterator[Comment]:
    if "backprobe:" not in text:
        return
    heads: list[tuple[int, int]] | None = None
    lines = source_lines(record)[source]
    for token in _tokens(text):
        found = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
        if found is None:
            continue
        line, column = token.start
        if found["file"]:
            first, last = 1, len(lines)
        else:
            heads = _heads(record, source) if heads is None else heads
            first, last = _covered(heads, line, alone=not token.line[:column].strip())
        written = (name.strip() for name in (found["names"] or "[]")[1:-1].split(","))
        names = tuple(dict.fromkeys(name for name in written if name))
        yield Comment(
            source=source, line=line, col=column + 1, first=first, last=last,
            names=names[:MOST_NAMES], has_more_names=len(names) > MOST_NAMES,
            reason=(found["reason"] or "").strip() or None, whole_file=bool(found["file"]),
        )  # fmt: skip


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a source up to the first place where it is none: recorded text is a stranger's."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return


def _heads(record: Record, source: int) -> list[tuple[int, int]]:
    """First and last line of each statement, of a compound one of its head, ascending."""
    tree = trees(record).get(source)
    if tree is None:
        return []
    found: list[tuple[int, int]] = []
    for node in tree.nodes:
        if not isinstance(node, ast.stmt):
            continue
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(one.lineno for one in decorators)])
        found.append((first, _head_ends(node)))
    return sorted(found)


def _head_ends(node: ast.stmt) -> int:
    """The last line of a statement, of a compound one of what stands before its body."""
    if isinstance(node, ast.Match):
        return max(node.lineno, node.cases[0].pattern.lineno - 1)
    body: list[ast.stmt] = getattr(node, "body", [])
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


def _covered(heads: list[tuple[int, int]], line: int, *, alone: bool) -> tuple[int, int]:
    below = bisect_right(heads, line, key=lambda head: head[0])
    if alone:
        return (line, heads[below][1]) if below < len(heads) else (line, line)
    before = (heads[at] for at in range(below - 1, -1, -1))
    return next((head for head in before if head[1] >= line), (line, line))
