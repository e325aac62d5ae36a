"""Sites of code that was compiled before the capture began: made when something happens at a line of it.

Such code carries no taps, so its names, values and statements are not seen; where a call came from is.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from backprobe.capture.output.writer import Writer
from backprobe.capture.rewriting.read_names import call_of, operands, reads
from backprobe.capture.rewriting.scopes import Scope
from backprobe.capture.rewriting.sites import Sites
from backprobe.capture.rewriting.targets import target_of
from backprobe.capture.torch_access.fence import OURS
from backprobe.record.rows.program import SiteKind

_INNER: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While)
WHY: Final = "it was compiled before the watch began: its statements and names are not seen"
_OWN: Final = f"{Path(OURS).parent}{os.sep}"
"""Of Backprobe: an integration, `watch` and `check` call from within the program too."""

_LIBRARIES: Final = frozenset({"site-packages", "dist-packages"})
_KINDS: Final[dict[type[ast.stmt], SiteKind]] = {
    ast.Assign: "assign", ast.AnnAssign: "assign", ast.AugAssign: "inplace", ast.Return: "return",
    ast.Expr: "call", ast.For: "for", ast.AsyncFor: "for",
}  # fmt: skip


class Place:
    """Where statements stand. Its scope is made when a site there is: most definitions of a file never need theirs.

    Args:
        outer: The place of `node`; None: there is none, this is a module.
        node: The definition or the loop whose body this is.
    """

    __slots__ = ("_node", "_outer", "_scope")

    def __init__(self, outer: Place | None = None, node: Any = None) -> None:
        self._outer, self._node = outer, node
        self._scope: Scope | None = None

    @property
    def scope(self) -> Scope:
        """The scope of what stands here."""
        if self._scope is None:
            self._scope = Scope() if self._outer is None else self._inner_scope(self._outer.scope)
        return self._scope

    def _inner_scope(self, outer: Scope) -> Scope:
        is_loop = isinstance(self._node, (ast.For, ast.AsyncFor, ast.While))
        return outer.in_loop(self._node.lineno) if is_loop else outer.body_scope(self._node)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a file, as far as its first block."""

    node: ast.stmt
    place: Place
    last_line: int


class OutsideSites(Sites):
    """The sites of a process that runs already: every file that is no library's counts as the user's."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        self._asked: dict[str, bool] = {}
        self._statements: dict[str, list[Statement]] = {}
        self._shared_lines: dict[str, frozenset[int]] = {}
        self._made: dict[tuple[str, int], int] = {}
        self._covered: dict[tuple[str, int], int | None] = {}
        self._foreign = _foreign()

    def is_user_file(self, filename: str) -> bool:
        """Return whether the file is no library's and its text is known."""
        known = self._asked.get(filename)
        if known is None:
            known = self._asked[filename] = super().is_user_file(filename) or self._take(filename)
        return known

    def at_line(self, filename: str, line: int) -> int | None:
        """Return the site of the smallest statement that covers a line; make it if there is none."""
        statements = self._statements.get(filename)
        if statements is None:
            return super().at_line(filename, line)
        asked = (filename, line)
        if asked not in self._covered:
            found = _covering(statements, line)
            self._covered[asked] = None if found is None else self._site(filename, found)
        return self._covered[asked]

    def _site(self, filename: str, found: Statement) -> int:
        """Return the site of a statement; make it if there is none."""
        key = (filename, id(found.node))
        if key not in self._made:
            self._made[key] = self._add(filename, found)
        return self._made[key]

    def _is_shared(self, filename: str, line: int) -> bool:
        if filename not in self._statements:
            return super()._is_shared(filename, line)
        return line in self._shared_lines[filename]

    def _at_column(self, filename: str, line: int, column: int) -> int | None:
        statements = self._statements.get(filename)
        if statements is None:
            return super()._at_column(filename, line, column)
        around = [
            statement for statement in statements if _begins(statement.node) <= (line, column) < _ends(statement.node)
        ]
        if not around:
            return None
        return self._site(filename, max(around, key=lambda span: _begins(span.node)))

    def _take(self, filename: str) -> bool:
        """Register a user's file."""
        if filename.startswith(_OWN) or self._is_librarys(filename):
            return False
        text = "".join(linecache.getlines(filename))
        if not text:
            return False
        self._asked[filename] = True
        self.add_source(filename, _short(filename), text, rewritten=False, why=WHY)
        try:
            self._statements[filename] = list(_statements(ast.parse(text).body, Place()))
        except (SyntaxError, ValueError, RecursionError):
            self._statements[filename] = []
        begins = Counter(statement.node.lineno for statement in self._statements[filename])
        self._shared_lines[filename] = frozenset(line for line, count in begins.items() if count > 1)
        return True

    def _is_librarys(self, filename: str) -> bool:
        if filename.startswith("<frozen ") or filename in ("<string>", "<stdin>"):
            return True
        path = Path(filename)
        return bool(_LIBRARIES.intersection(path.parts)) or any(path.is_relative_to(place) for place in self._foreign)

    def _add(self, filename: str, found: Statement) -> int:
        node: Any = found.node
        value = getattr(node, "value", None)
        named: Sequence[Any] = getattr(node, "targets", None) or ([node.target] if hasattr(node, "target") else [])
        read = [value] if value is not None else [getattr(node, "test", None), getattr(node, "iter", None)]
        head = ast.copy_location(ast.Pass(), node)
        head.end_lineno, head.end_col_offset = _end_of_head(node)
        return self.add(
            filename, head, _KINDS.get(type(node), "statement"), found.place.scope,
            targets=tuple(target_of(target) for target in named), reads=reads(read), operands=operands(read),
            how=call_of(value),
        )  # fmt: skip


def _statements(body: Sequence[ast.stmt], place: Place) -> Iterator[Statement]:
    """Every statement with the place where it stands, outer ones first."""
    for node in body:
        yield Statement(node, place, node.end_lineno or node.lineno)
        inner = Place(place, node) if isinstance(node, _INNER) else place
        for block in _blocks(node):
            yield from _statements(block, inner)


def _blocks(node: Any) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        yield getattr(node, field, None) or []
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _begins(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _ends(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _covering(statements: Sequence[Statement], line: int) -> Statement | None:
    """Find the smallest statement that covers a line."""
    found: Statement | None = None
    for statement in statements:
        if statement.node.lineno <= line <= statement.last_line and (
            found is None or statement.last_line - statement.node.lineno <= found.last_line - found.node.lineno
        ):
            found = statement
    return found


def _end_of_head(node: Any) -> tuple[int, int]:
    """Where a statement ends; a compound one where its first block begins."""
    first = next((block[0] for block in _blocks(node) if block), None)
    if first is None:
        return node.end_lineno, node.end_col_offset
    head = next((part for part in (getattr(node, name, None) for name in ("iter", "test", "subject")) if part), node)
    return (head.end_lineno, head.end_col_offset) if head is not node else (node.lineno, node.col_offset + 1)


def _foreign() -> tuple[Path, ...]:
    """Folders of the standard library."""
    paths = sysconfig.get_paths()
    return tuple({Path(paths[key]).resolve() for key in ("stdlib", "platstdlib")})


def _short(filename: str) -> str:
    """Shorten a path to the part from the program's folder on, if it lies in that folder."""
    for folder in (sys.path[0] if sys.path else "", "."):
        try:
            return Path(filename).resolve().relative_to(Path(folder or ".").resolve()).as_posix()
        except ValueError:
            continue
    return Path(filename).name
