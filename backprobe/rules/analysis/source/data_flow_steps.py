"""What following a value through the source asks of a run, the places it comes to, and where it ends."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from backprobe.rules.analysis.source.break_syntax import Ending
from backprobe.rules.analysis.source.scopes import Function, Names

Key = int | str | None


@dataclass(frozen=True, slots=True)
class Step:
    """A place that the value has come to.

    Attributes:
        part: The expression that holds it. source: its file.
        ending: Where its history ended first; None: nowhere so far.
        ended_in: The file of that.
        key: Of which element of the expression's value it is; None: of all.
        origin: The expression that it came from first.
        entered: The function that it was last handed to, and the call that did: it leaves by that call again.
    """

    part: ast.expr
    source: int
    ending: Ending | None = None
    ended_in: int = 0
    key: Key = None
    origin: ast.expr | None = None
    entered: tuple[Function, ast.expr] | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """The value came to the root of a backward call, or to a place that was asked for, with this ending on its way."""

    root: ast.expr
    source: int
    step: Step


@dataclass(frozen=True, slots=True)
class Program:
    """What a flow needs to know of the run.

    Attributes:
        names: By file.
        grad_off: The ending of a statement that ran without grad mode, or None.
        forwards: The `forward` methods of the user's own modules that a call enters.
        callers: The calls that enter a `forward`.
        hooked: The forward hooks that a call runs, which are given its output last.
    """

    names: dict[int, Names]
    grad_off: Callable[[int, ast.stmt], Ending | None]
    forwards: Callable[[int, ast.Call], list[tuple[int, Function]]]
    callers: Callable[[int, Function], list[tuple[int, ast.Call]]]
    hooked: Callable[[ast.Call], list[tuple[int, Function]]]
