"""The operations of a program as the rewriter knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backprobe.capture.rewriting.sites import Sites


@dataclass(slots=True)
class Operand:
    """What stands right below an operation, or is the value of a statement.

    Attributes:
        operations: Numbers of operations, each with whether it may be left out: in a branch, or once per element.
        names: Names and chains that are read.
    """

    operations: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    names: dict[str, None] = field(default_factory=dict[str, None])


@dataclass(slots=True)
class OperationFacts:
    """An operation as the rewriter knows it.

    Attributes:
        place: line, column, end line, end column, as the record has them.
        below: Operations right below it, each with whether it may be left out. keys: names right below it.
        is_load: A name, attribute or subscript: it may only give what was there. repeats: it is in a comprehension.
        is_value: It is the value of its statement.
    """

    statement: int
    function: str
    place: tuple[int, int, int, int]
    below: tuple[tuple[int, bool], ...]
    keys: tuple[tuple[str, str], ...]
    is_load: bool
    repeats: bool
    is_value: bool = False


class Registry:
    """The operations of a program, by number, and what else the values of its statements read.

    Attributes:
        loose: Statement -> the names that stand in its value outside of every operation.
    """

    def __init__(self) -> None:
        self.facts: list[OperationFacts] = []
        self.loose: dict[int, tuple[tuple[str, str], ...]] = {}


class FileOperations:
    """Registers the operations of one file, as the rewriter meets them."""

    def __init__(self, sites: Sites, filename: str) -> None:
        self._sites, self._filename = sites, filename

    def add(self, node: Any, function: str, below: Operand, statement: int, *, is_load: bool, repeats: bool) -> int:
        """Register an operation; its number."""
        line, end, registry = node.lineno, node.end_lineno or node.lineno, self._sites.operations
        col = self._sites.column(self._filename, line, node.col_offset)
        end_col = self._sites.column(self._filename, end, node.end_col_offset or 0)
        keys = self._sites.keys(statement, below.names)
        registry.facts.append(
            OperationFacts(
                statement, function, (line, col, end, end_col), tuple(below.operations), keys, is_load, repeats
            )
        )
        return len(registry.facts) - 1

    def settle(self, statement: int, below: Operand) -> None:
        """Complete a statement's value: these operations are it, and these names stand beside them."""
        registry = self._sites.operations
        for number, _ in below.operations:
            registry.facts[number].is_value = True
        loose = registry.loose.get(statement, ())
        registry.loose[statement] = (*loose, *self._sites.keys(statement, below.names))
