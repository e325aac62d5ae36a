"""What a tool says of a program, and what an adapter is.

Example:
    class Linter:
        name = "linter"

        def report(self, source):
            return [ToolReport(line=7, level="warning")]     # it names lines and calls no mistake by name

        def close(self): ...

    def tool():
        return Linter()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

Level = Literal["error", "warning", "note"]

LEVELS: Final = ("error", "warning", "note")
"""Loudest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """One thing that a tool says.

    Attributes:
        line: Of the program, from 1.
        kind: Of `tests/corpus/kinds.toml`, what it says that the mistake is; None: the tool only names lines, which
            counts as right whatever the mistake is.
        level: How loud: a `note` is no alarm on a correct program.
    """

    line: int
    kind: str | None = None
    level: Level = "error"


class Tool(Protocol):
    """What is measured. Programs are Python texts that end within a minute on one CPU, each in its own process."""

    @property
    def name(self) -> str:
        """As the table shows it."""
        ...

    def report(self, source: str) -> Sequence[ToolReport]:
        """What the tool says of a program; nothing: it is silent."""
        ...

    def close(self) -> None:
        """End what the tool has started."""
        ...
