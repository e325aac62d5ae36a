"""An open document, and which of its lines are still those that ran.

ran                        now, after a line was put in and one was edited
0  import torch            0  import torch              <- 0
1  w = make()              1  # the weights             <- none
2  w.sum().backward()      2  w = make()                <- 1
                           3  w.mean().backward()       <- none: what was seen of it is not shown any more
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from lsprotocol import types as lsp

from backprobe.language_server.positions import Encoding, column_at, split_lines, units_at
from backprobe.rules.framework.finding import Region

Origins = list[int | None]
"""For each line of a document the line of the text that ran that it still is; None: it is none of them."""


class Document:
    """The text of an open document, changed as its editor says.

    Attributes:
        uri: Of the document. version: the editor's number of this text. lines: without their ends.
        ran: The lines of the text that a result speaks of; None: no result speaks of this document.
    """

    def __init__(self, uri: str, text: str, version: int | None = None, encoding: Encoding = "utf-16") -> None:
        self.uri, self.version = uri, version
        self.encoding: Encoding = encoding
        self.lines = split_lines(text)
        self.ran: list[str] | None = None
        self._origins: Origins = []
        self._now: dict[int, int] | None = None

    @property
    def text(self) -> str:
        """Its text, with plain line ends."""
        return "\n".join(self.lines)

    def attach(self, ran: str | None) -> None:
        """Attach the text that a result is about; None: no result is about the document any more."""
        self.ran = None if ran is None else split_lines(ran)
        self._now = None
        if self.ran is not None:
            self._origins = carry_origins(list(range(len(self.ran))), self.ran, self.lines)

    def change(self, change: lsp.TextDocumentContentChangeEvent) -> None:
        """Change the text as an editor says, and lose what lines that are not the same any more had carried."""
        if not isinstance(change, lsp.TextDocumentContentChangePartial):
            self._replace(0, len(self.lines) - 1, split_lines(change.text))
            return
        start, start_column = self._place(change.range.start)
        end, end_column = self._place(change.range.end)
        text = self.lines[start][:start_column] + change.text + self.lines[end][end_column:]
        self._replace(start, end, split_lines(text))

    def _place(self, position: lsp.Position) -> tuple[int, int]:
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = max(0, position.line)
        return line, column_at(self.lines[line], position.character, self.encoding)

    def _replace(self, start: int, end: int, new: list[str]) -> None:
        if self.ran is not None:
            self._origins[start : end + 1] = carry_origins(
                self._origins[start : end + 1], self.lines[start : end + 1], new
            )
            self._now = None
        self.lines[start : end + 1] = new

    def line_now(self, ran_line: int) -> int | None:
        """Where a line of the text that ran stands now, both from 0; None: it is not there any more, or was edited."""
        if self.ran is None:
            return None
        if self._now is None:
            self._now = {origin: line for line, origin in enumerate(self._origins) if origin is not None}
        return self._now.get(ran_line)

    def range_now(self, region: Region) -> lsp.Range | None:
        """Where a region of the text that ran stands now; None: a line of it is not there any more, or was edited."""
        first, last = region.start_line - 1, region.end_line - 1
        start, end = self.line_now(first), self.line_now(last)
        if end is None and region.end_col == 1 and last > first:  # it ends where a line begins: that line is not of it
            before = self.line_now(last - 1)
            end = None if before is None else before + 1
        if start is None or end is None or end - start != last - first:
            return None
        if any(self.line_now(line) is None for line in range(first + 1, last)):
            return None
        return lsp.Range(start=self.position(start, region.start_col - 1), end=self.position(end, region.end_col - 1))

    def position(self, line: int, column: int) -> lsp.Position:
        """Convert a place to the editor's units; `column` counts code points from 0."""
        if line >= len(self.lines):  # behind the last line
            return lsp.Position(line=line, character=0)
        return lsp.Position(line=line, character=units_at(self.lines[line], column, self.encoding))

    def end_of(self, line: int) -> lsp.Position:
        """Behind the last character of a line that is no blank."""
        return self.position(line, len(self.lines[line].rstrip()))


_LONG: Final = 20_000
"""Lines from which on two texts are not searched for what they share in their middles: it would take seconds."""


def carry_origins(origins: Sequence[int | None], old: Sequence[str], new: Sequence[str]) -> Origins:
    """Map the lines that replace others to what they were.

    Args:
        origins: Of the old lines. old: their text, as many. new: the lines that take their place.
    """
    found: Origins = [None] * len(new)
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        found[head] = origins[head]
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        found[-1 - tail] = origins[-1 - tail]
        tail += 1
    between, beside = old[head : len(old) - tail], new[head : len(new) - tail]
    if between and beside and len(between) + len(beside) < _LONG:
        for block in SequenceMatcher(None, between, beside).get_matching_blocks():
            for n in range(block.size):
                found[head + block.b + n] = origins[head + block.a + n]
    return found
