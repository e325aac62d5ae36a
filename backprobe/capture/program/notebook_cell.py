"""Runs one notebook cell under capture, in the notebook's own namespace.

Functions that an earlier captured cell defined carry that cell's site numbers. So every record begins with the sites
of the earlier cells, made again from their text in the same order: the numbers stay true.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from backprobe.capture.instrument.installer import Instrument
from backprobe.capture.options import Options
from backprobe.capture.output.writer import Sink
from backprobe.capture.program.header import DEVIATIONS, header
from backprobe.capture.recorder import Recorder
from backprobe.capture.rewriting.rewriter import Rewriter
from backprobe.capture.rewriting.scopes import Scope
from backprobe.capture.torch_access.fence import without_ours
from backprobe.record import End


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as it stands in the notebook.

    Attributes:
        filename: What its code objects carry. path: what the record calls it, `Cell [3]`.
        text: As the user sees it. tree: parsed, in the lines of that text.
    """

    filename: str
    path: str
    text: str
    tree: Callable[[], ast.Module]


@dataclass(slots=True)
class Notebook:
    """The cells that were captured so far, in order."""

    cells: list[Cell] = field(default_factory=list[Cell])

    def run(self, cell: Cell, namespace: dict[str, Any], options: Options, sink: Sink) -> BaseException | None:
        """Run a cell; what it raised, without frames of ours, or None.

        Raises:
            RuntimeError: another run is being captured in this process.
            SyntaxError: the cell does not compile.
        """
        compile(cell.tree(), cell.filename, "exec", dont_inherit=True)  # what it raises is the cell's own, plain
        recorder, instrument = Recorder(options, sink), Instrument()
        instrument.put(recorder)
        try:
            recorder.writer.begin(header(options, ("notebook",), instrument.fallbacks, DEVIATIONS))
            recorder.threads.here()
            codes = self._codes(recorder, cell)
            recorder.guard.run(_given, recorder, cell, namespace)
            error = _executed(codes, namespace)
            _finish(recorder, error)
            return error
        finally:
            instrument.take_out()
            recorder.close()

    def _codes(self, recorder: Recorder, cell: Cell) -> list[CodeType]:
        """The cell's tapped code; a last expression apart, so that its value is displayed."""
        for earlier in self.cells:
            _tapped(recorder, earlier)
        self.cells.append(cell)
        body, plain = _tapped(recorder, cell).body, cell.tree().body
        last = plain[-1] if plain else None
        count = 0 if not isinstance(last, ast.Expr) else 1 if isinstance(last.value, ast.Constant) else 2
        shown = body[len(body) - count :]  # the expression, and its tap, which gives None and is not displayed
        body = body[: len(body) - count]
        codes = [compile(ast.Module(body, []), cell.filename, "exec", dont_inherit=True)]
        if shown:
            codes.append(compile(ast.Interactive(shown), cell.filename, "single", dont_inherit=True))
        return codes


def _tapped(recorder: Recorder, cell: Cell) -> ast.Module:
    recorder.sites.add_source(cell.filename, cell.path, cell.text)
    return ast.fix_missing_locations(Rewriter(recorder.sites, cell.filename).module(cell.tree()))


def _given(recorder: Recorder, cell: Cell, namespace: dict[str, Any]) -> None:
    """The names of earlier cells that this one reads: they hold what they hold when it begins."""
    tree = cell.tree()
    loads = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    names = [name for name in dict.fromkeys(loads) if name in namespace]
    if not names or not tree.body:
        return
    site = recorder.sites.add(cell.filename, tree.body[0], "enter", Scope(), targets=tuple(names))
    recorder.moments.statement(site)
    recorder.statements.take(site, [namespace[name] for name in names])
    recorder.moments.close_statement()


def _executed(codes: Sequence[CodeType], namespace: dict[str, Any]) -> BaseException | None:
    try:
        for code in codes:
            exec(code, namespace)
    except BaseException as error:
        error.__traceback__ = without_ours(error.__traceback__)
        return error
    return None


def _finish(recorder: Recorder, error: BaseException | None) -> None:
    guard, number = recorder.guard, None
    if error is not None:
        number = guard.run(recorder.failures.uncaught, error, error.__traceback__)
    guard.run(recorder.finish)
    recorder.writer.end(
        End(
            ending="ended" if error is None else "raised",
            exit_code=0 if error is None else 1,
            exception=number,
            duration_ns=recorder.writer.time_ns(),
            own_ns=guard.own_ns,
            own_errors=guard.errors,
            own_error=guard.first,
        )
    )
