"""Runs one notebook cell under capture, in the notebook's own namespace.

Functions that an earlier captured cell defined carry that cell's site numbers. So every record begins with the sites
of the earlier cells, made again from their text in the same order: the numbers stay true.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import CO_COROUTINE
from types import CodeType, FunctionType
from typing import Any, Final

from backprobe.capture.instrument.installer import Instrument
from backprobe.capture.options import Options
from backprobe.capture.output.writer import Sink
from backprobe.capture.program.header import DEVIATIONS, header
from backprobe.capture.recorder import CaptureSession
from backprobe.capture.rewriting.rewriter import Rewriter
from backprobe.capture.rewriting.scopes import Scope
from backprobe.capture.torch_access.fence import without_ours
from backprobe.record import End

_FLAGS: Final = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""A cell may await outside of functions; one that does not compiles to the same code as without the flag."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell, as the notebook has it.

    Attributes:
        filename: What its code objects carry. path: what the record calls it, `Cell [3]`.
        text: As the user sees it. tree: parsed, in the lines of that text.
        quiet: A semicolon ends it: the value of its last expression is not displayed.
    """

    filename: str
    path: str
    text: str
    tree: Callable[[], ast.Module]
    quiet: bool = False


@dataclass(slots=True)
class Notebook:
    """The cells that were captured so far, in order."""

    cells: list[Cell] = field(default_factory=list[Cell])

    def run(self, cell: Cell, namespace: dict[str, Any], options: Options, sink: Sink) -> BaseException | None:
        """Run a cell; what it raised, without frames of Backprobe, or None.

        Raises:
            RuntimeError: another run is being captured in this process.
            SyntaxError: the cell does not compile.
        """
        with self._capture_cell(cell, namespace, options, sink) as (recorder, codes):
            if any(code.co_flags & CO_COROUTINE for code in codes):
                raise RuntimeError("`await` outside of functions: this call is none that could be awaited")
            error = _execute_codes(codes, namespace)
            _finish(recorder, error)
            return error

    async def run_async(
        self, cell: Cell, namespace: dict[str, Any], options: Options, sink: Sink
    ) -> BaseException | None:
        """Run a cell that awaits something outside of functions, in the event loop that runs already.

        What other tasks of that loop do meanwhile is recorded too.
        """
        with self._capture_cell(cell, namespace, options, sink) as (recorder, codes):
            error = await _executed_async(codes, namespace)
            _finish(recorder, error)
            return error

    @contextmanager
    def _capture_cell(
        self, cell: Cell, namespace: dict[str, Any], options: Options, sink: Sink
    ) -> Iterator[tuple[CaptureSession, list[CodeType]]]:
        """Install the instrument for the length of a cell, and yield the cell's tapped code."""
        compile(
            cell.tree(), cell.filename, "exec", _FLAGS, dont_inherit=True
        )  # what it raises is the cell's own, plain
        recorder, instrument = CaptureSession(options, sink), Instrument()
        instrument.put(recorder)
        try:
            recorder.writer.begin(header(options, ("notebook",), instrument.fallbacks, DEVIATIONS))
            recorder.threads.here()
            codes = self._codes(recorder, cell)
            recorder.guard.run(_bind_earlier_names, recorder, cell, namespace)
            yield recorder, codes
        finally:
            instrument.take_out()
            recorder.close()

    def _codes(self, recorder: CaptureSession, cell: Cell) -> list[CodeType]:
        """Compile the cell's tapped code; a last expression apart, so that its value is displayed."""
        for earlier in self.cells:
            _tap_cell(recorder, earlier)
        self.cells.append(cell)
        body, plain = _tap_cell(recorder, cell).body, cell.tree().body
        last = plain[-1] if plain and not cell.quiet else None
        count = 0 if not isinstance(last, ast.Expr) else 1 if isinstance(last.value, ast.Constant) else 2
        shown = body[len(body) - count :]  # the expression, and its tap, which gives None and is not displayed
        body = body[: len(body) - count]
        codes = [compile(ast.Module(body, []), cell.filename, "exec", _FLAGS, dont_inherit=True)]
        if shown:
            codes.append(compile(ast.Interactive(shown), cell.filename, "single", _FLAGS, dont_inherit=True))
        return codes


def _tap_cell(recorder: CaptureSession, cell: Cell) -> ast.Module:
    recorder.sites.add_source(cell.filename, cell.path, cell.text)
    return ast.fix_missing_locations(Rewriter(recorder.sites, cell.filename).module(cell.tree()))


def _bind_earlier_names(recorder: CaptureSession, cell: Cell, namespace: dict[str, Any]) -> None:
    """Bind the names of earlier cells that this one reads to the values that they hold when it begins."""
    tree = cell.tree()
    loads = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    names = [name for name in dict.fromkeys(loads) if name in namespace]
    if not names or not tree.body:
        return
    site = recorder.sites.add(cell.filename, tree.body[0], "enter", Scope(), targets=tuple(names))
    recorder.moments.statement(site)
    recorder.statements.take(site, [namespace[name] for name in names])
    recorder.moments.close_statement()


def _execute_codes(codes: Sequence[CodeType], namespace: dict[str, Any]) -> BaseException | None:
    try:
        for code in codes:
            exec(code, namespace)
    except BaseException as error:
        error.__traceback__ = without_ours(error.__traceback__)
        return error
    return None


async def _executed_async(codes: Sequence[CodeType], namespace: dict[str, Any]) -> BaseException | None:
    try:
        for code in codes:
            given = FunctionType(code, namespace)()  # as exec, but for the coroutine that it hands out
            if code.co_flags & CO_COROUTINE:
                await given
    except BaseException as error:
        error.__traceback__ = without_ours(error.__traceback__)
        return error
    return None


def _finish(recorder: CaptureSession, error: BaseException | None) -> None:
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
