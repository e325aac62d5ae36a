"""The sites of the user's files: what the rewriter knows of each statement, and the way back from an instruction.

    loss = net(x).sum()
    opt.zero_grad(); loss.backward(); opt.step()

A line may hold several statements: the column of the instruction that runs tells which of them it is.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FrameType
from typing import Any, NamedTuple

from backprobe.capture.output.text import name
from backprobe.capture.output.writer import Writer
from backprobe.capture.rewriting.operation_facts import Registry
from backprobe.capture.rewriting.scopes import Scope
from backprobe.capture.rewriting.targets import Target
from backprobe.record import Site, Source
from backprobe.record.rows.program import SiteKind

Placed = ast.stmt | ast.expr | ast.excepthandler | ast.pattern
"""The nodes that have a place in the source."""


@dataclass(slots=True)
class SiteFacts:
    """A site while the program runs.

    Attributes:
        scope: Where it stands: whose its names are.
        targets: One per value that the tap is given, or the alternatives `a = b = value`.
        how: The call that a statement's value comes from, `torch.randn`, as written; "" if it is none.
        is_inert: It calls nothing and stores into no object, so that it can change no tensor it does not bind.
        keys: Its plain targets, each with the function it belongs to; read_keys: the names it reads; operands: those
            of them whose elements can get into its value.
        times: How often it ran.
    """

    site: int
    kind: SiteKind
    scope: Scope
    targets: tuple[Target, ...]
    how: str
    is_inert: bool = False
    keys: tuple[tuple[str, str], ...] = ()
    read_keys: tuple[tuple[str, str], ...] = ()
    operands: tuple[tuple[str, str], ...] = ()
    times: int = 0

    @property
    def top(self) -> bool:
        """It stands at a module's top level."""
        return self.scope.top

    @property
    def once(self) -> bool:
        """It stands there outside every loop."""
        return self.scope.top and self.scope.loop_line is None


class Span(NamedTuple):
    """From where to where a site's statement goes; columns in bytes of UTF-8, from 0."""

    line: int
    column: int
    end_line: int
    end_column: int
    enters: bool
    site: int

    def covers(self, line: int, column: int) -> bool:
        """Return whether a place lies in the span."""
        return (self.line, self.column) <= (line, column) < (self.end_line, self.end_column)

    @property
    def size(self) -> tuple[int, int]:
        """Lines, then columns: the smaller of two that lie in each other comes first."""
        return self.end_line - self.line, self.end_column - self.column


class Columns:
    """Columns of a source: from ast's UTF-8 byte offsets to code points."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")

    def column_of_offset(self, line: int, offset: int) -> int:
        """1-based column, in code points, of a 0-based byte offset in a 1-based line."""
        if not 0 < line <= len(self._lines):
            return offset + 1
        text = self._lines[line - 1]
        if text.isascii():
            return offset + 1
        return len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")) + 1


class Sites:
    """All sources and sites of a run.

    Attributes:
        on_text: Called with the text of every source that is registered.
        operations: The operations that stand in the statements.
        folder: With a slash at its end: that of the program; paths are written without it. "": they are written whole.
        rows: What was written, for forked children; None: it is not kept.
    """

    def __init__(self, writer: Writer) -> None:
        self.facts: list[SiteFacts] = []
        self._writer = writer
        self.sources: dict[str, int] = {}
        self._spans: dict[str, list[Span]] = {}
        self._columns: dict[str, Columns] = {}
        self._lines: dict[tuple[str, int], int | None] = {}
        self._begins: dict[tuple[str, int], set[int]] = {}
        self._instructions: dict[tuple[str, CodeType, int], int | None] = {}
        self.on_text: Callable[[str], None] | None = None
        self.operations = Registry()
        self.folder = ""
        self.rows: list[tuple[str, Any]] | None = None

    def _write(self, table: str, row: Any) -> None:
        if self.rows is not None:
            self.rows.append((table, row))
        self._writer.add(table, row)

    def take_over(self, other: Sites) -> None:
        """In a forked child: the program's code calls its taps by the numbers that the parent's sites gave out."""
        self.facts += [replace(facts, times=0) for facts in other.facts]
        self.operations.facts += other.operations.facts
        self.operations.loose.update(other.operations.loose)
        self.sources.update(other.sources)  # in place, as the lists: the compiled core holds them
        self.folder, self.rows = other.folder, []
        self._spans, self._columns, self._begins = other._spans, other._columns, other._begins
        for table, row in other.rows or ():
            self._write(table, row)
            if table == "sources" and self.on_text is not None:
                self.on_text(row.text)

    def add_source(self, filename: str, path: str, text: str, *, rewritten: bool = True, why: str | None = None) -> int:
        """Register a file by the name its code objects carry; its number. A second registration replaces the first."""
        number = self.sources.setdefault(filename, len(self.sources))
        raw = text.encode("utf-8", "surrogatepass")
        if len(raw) > self._writer.caps.source_bytes:
            why = (
                why or f"its text of {len(raw)} bytes is longer than the {self._writer.caps.source_bytes} that are kept"
            )
            kept = ""
        else:
            kept = raw.decode("utf-8", "backslashreplace")
        digest = hashlib.sha256(raw).hexdigest()
        self._write(
            "sources", Source(source=number, path=path[:4096], sha256=digest, text=kept, rewritten=rewritten, why=why)
        )
        self._columns[filename] = Columns(text)
        self._spans.setdefault(filename, [])
        if self.on_text is not None:
            self.on_text(text)
        return number

    def column(self, filename: str, line: int, offset: int) -> int:
        """1-based column, in code points, of a UTF-8 byte offset in a line of the program."""
        return self._columns[filename].column_of_offset(line, offset)

    def is_user_file(self, filename: str) -> bool:
        """Return whether the file is one of the program's own."""
        return filename in self.sources

    def path_of(self, filename: str) -> int | None:
        """Return the number of the source that a code object's file name belongs to; None for a library."""
        return self.sources.get(filename)

    def add(
        self,
        filename: str,
        node: Placed,
        kind: SiteKind,
        scope: Scope,
        *,
        targets: tuple[Target, ...] = (),
        reads: Sequence[str] = (),
        operands: Sequence[str] | None = None,
        how: str = "",
    ) -> int:
        """Register one site; its number."""
        number = len(self.facts)
        facts = SiteFacts(number, kind, scope, targets, how)
        facts.keys = _keys(scope, [target for target in targets if isinstance(target, str)])
        facts.read_keys, facts.operands = _keys(scope, reads), _keys(scope, reads if operands is None else operands)
        self.facts.append(facts)
        line, end = node.lineno, node.end_lineno or node.lineno
        columns = self._columns[filename]
        self._write(
            "sites",
            Site(
                site=number,
                source=self.sources[filename],
                line=line,
                col=columns.column_of_offset(line, node.col_offset),
                end_line=end,
                end_col=columns.column_of_offset(end, node.end_col_offset or 0),
                kind=kind,
                function=name(scope.function),
                loop_line=scope.loop_line,
                targets=tuple(name(text) for target in targets for text in flat_names(target))[:4096],
                reads=tuple(name(text) for text in reads)[:4096],
            ),
        )
        if kind != "grad-read":
            start, stop = node.col_offset, node.end_col_offset or 0
            self._spans[filename].append(Span(line, start, end, stop, kind == "enter", number))
            self._begins.setdefault((filename, line), set()).add(start)
            self._lines.clear()
            self._instructions.clear()
        return number

    def keys(self, site: int, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Names in a statement, each with the function it belongs to."""
        return _keys(self.facts[site].scope, names)

    def at_line(self, filename: str, line: int) -> int | None:
        """Return the site of the smallest statement that covers a line; None if there is none.

        The entry of a function has the place of its first statement, which goes before it.
        """
        key = (filename, line)
        if key not in self._lines:
            self._lines[key] = self._search(filename, line)
        return self._lines[key]

    def of_frame(self, frame: FrameType) -> int | None:
        """Return the site of the statement that a frame is in."""
        return self.at_instruction(frame.f_code, frame.f_lasti, frame.f_lineno)

    def at_instruction(self, code: CodeType, lasti: int, line: int) -> int | None:
        """Return the site of the statement that an instruction belongs to; None if there is none.

        Args:
            lasti: Its offset in the code, in bytes, as frames and tracebacks tell it. line: of the source, as they do.
        """
        filename = code.co_filename
        if not self._is_shared(filename, line):
            return self.at_line(filename, line)
        key = (filename, code, lasti)  # codes of two files are equal where their texts are
        if key not in self._instructions:
            _line, column = place_of(code, lasti)
            at = None if column is None else self._at_column(filename, line, column)
            self._instructions[key] = self.at_line(filename, line) if at is None else at
        return self._instructions[key]

    def _is_shared(self, filename: str, line: int) -> bool:
        """Several statements begin on a line."""
        return len(self._begins.get((filename, line), ())) > 1

    def _at_column(self, filename: str, line: int, column: int) -> int | None:
        """Return the site of the smallest statement around a place; None if none, or a smaller one is on the line.

        `with` calls `__enter__` at its own first column: that belongs to its head, not to all that is below it.

        Args:
            column: In bytes of UTF-8, from 0.
        """
        here = self._find_spans(filename, line)
        around = [span for span in here if span.covers(line, column)]
        best = min(around, key=lambda span: (*span.size, span.enters), default=None)
        least = min((span.size[0] for span in here), default=0)
        return None if best is None or best.size[0] > least else best.site

    def _search(self, filename: str, line: int) -> int | None:
        best = min(self._find_spans(filename, line), key=lambda span: (span.size[0], span.enters), default=None)
        return None if best is None else best.site

    def _find_spans(self, filename: str, line: int) -> list[Span]:
        """List the statements that a line is part of."""
        return [span for span in self._spans.get(filename, ()) if span.line <= line <= span.end_line]


def place_of(code: CodeType, lasti: int) -> tuple[int | None, int | None]:
    """Where the expression of an instruction begins: line, and column in bytes of UTF-8 from 0; None: not told."""
    place = next(itertools.islice(code.co_positions(), max(lasti, 0) // 2, None), None)
    return (None, None) if place is None else (place[0], place[2])


def _keys(scope: Scope, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((scope.owner(text), text) for text in names)


def flat_names(target: Target) -> list[str]:
    """List the names in a target, in source order."""
    if isinstance(target, str):
        return [target]
    if isinstance(target, tuple):
        parts = target[1:] if target and target[0] == "*" else target
        return [text for part in parts for text in flat_names(part)]
    return []
