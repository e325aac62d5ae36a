"""`%%backprobe`, `%backprobe STATEMENT`, `%backprobe last`: a cell or a statement of a notebook under capture.

The cell runs in the kernel. Its lines are named `Cell [3]` line 2, counted as the notebook shows them; what it raises
is raised once, after the findings.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from backprobe.capture import Options
from backprobe.capture.program.notebook_cell import Cell, Notebook
from backprobe.notebook.cell_results import CellResult
from backprobe.notebook.statements import ends_in_semicolon, statement_tree
from backprobe.record import FrameReader
from backprobe.record.encoding.codec import MAGIC

if TYPE_CHECKING:
    from argparse import Namespace

    from backprobe.record import Record

DEFAULT_URL: Final = "http://127.0.0.1:8000"


@magics_class
class BackprobeMagics(Magics):
    """The magics of one shell.

    Attributes:
        last: What the last captured cell or statement left; None before the first.
    """

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._notebook = Notebook()
        self.last: CellResult | None = None

    @magic_arguments()
    @argument("-o", "--out", metavar="NAME", help="the name that the result is bound to")
    @argument("--tier", choices=("state", "grad", "full"), default="full", help="how much is recorded")
    @argument("--every", type=int, help="record every N-th training step; 1: all of them")
    @argument("--submit", action="store_true", help="send the record to the service at BACKPROBE_URL, for a page of it")
    @cell_magic("backprobe")
    def cell(self, line: str, cell: str) -> None:
        """Run this cell under capture and show what its gradients did."""
        __tracebackhide__ = True
        args = parse_argstring(self.cell, line)
        error = self._capture_cell(self._cell(cell), args)
        if error is not None:
            raise error

    async def run_async_cell(self, line: str, cell: str) -> None:
        """Run a cell with `await` outside of functions, which `load` has rewritten to call this."""
        __tracebackhide__ = True
        args = parse_argstring(self.cell, line)
        frames: list[bytes] = []
        captured = self._cell(cell)
        try:
            error = await self._notebook.run_async(captured, self._shell.user_ns, _options(args), frames.append)
        except RuntimeError as refused:
            raise UsageError(str(refused)) from None
        self._show(frames, args)
        if error is not None:
            raise error

    @line_magic("backprobe")
    def statement(self, line: str) -> CellResult | None:
        """Run one statement under capture; `%backprobe last` shows the last result again."""
        __tracebackhide__ = True
        if not line.strip():
            raise UsageError("%backprobe STATEMENT runs one statement, %backprobe last shows the last result again")
        if line.strip() == "last":
            if self.last is None:
                raise UsageError("nothing was captured yet: %%backprobe runs a cell, %backprobe STATEMENT a statement")
            return self.last
        error = self._capture_cell(self._statement(line), parse_argstring(self.cell, ""))
        if error is not None:
            raise error
        return None

    def _capture_cell(self, cell: Cell, args: Namespace) -> BaseException | None:
        frames: list[bytes] = []
        try:
            error = self._notebook.run(cell, self._shell.user_ns, _options(args), frames.append)
        except RuntimeError as refused:
            raise UsageError(str(refused)) from None
        self._show(frames, args)
        return error

    def _show(self, frames: list[bytes], args: Namespace) -> None:
        record = _record(frames)
        page, unsent = _send_record(frames) if args.submit else (None, None)
        self.last = CellResult(record, page=page, unsent=unsent)
        if args.out:
            self._shell.user_ns[args.out] = self.last
        display(self.last)

    @property
    def _shell(self) -> Any:
        return self.shell

    def _cell(self, cell: str) -> Cell:
        """Build the cell with the lines that the notebook shows: the magic's own is the first."""
        shell = self._shell
        code = "\n" + shell.transform_cell(cell)
        number = self._number()
        filename = shell.compile.cache(code, number, raw_code=cell)
        quiet = ends_in_semicolon(cell)
        return Cell(
            filename, f"Cell [{number}]", code, lambda: shell.transform_ast(ast.parse(code, filename)), quiet=quiet
        )

    def _statement(self, statement: str) -> Cell:
        """One statement at its place in the cell around it."""
        shell = self._shell
        number, line = self._caller()
        entered = shell.history_manager.input_hist_raw
        raw = entered[number] if number < len(entered) else ""
        lines = raw.split("\n")
        if not 0 < line <= len(lines) or statement not in lines[line - 1]:
            lines, line = [statement], 1
        text = "\n".join(lines)
        column = lines[line - 1].index(statement)
        own = f"{text}\n# {line}"  # another name than the cell's, whose other lines are not captured
        filename = shell.compile.cache(own, number, raw_code=own)
        return Cell(
            filename,
            f"Cell [{number}]",
            text,
            lambda: shell.transform_ast(statement_tree(statement, lines[line - 1], line, column)),
            quiet=ends_in_semicolon(statement),
        )

    def _caller(self) -> tuple[int, int]:
        """Return the number of the cell in which `%backprobe` stands, and its line there; line 0 if unknown."""
        numbers: dict[str, int] = getattr(self._shell.compile, "_filename_map", {})
        frame = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads every source file
        while frame is not None:
            if frame.f_code.co_filename in numbers:
                return self._number(), frame.f_lineno
            frame = frame.f_back
        return self._number(), 0

    def _number(self) -> int:
        """Of the cell that runs; not `execution_count`: from some IPython 9 on it is the next one's meanwhile."""
        return max(1, len(self._shell.history_manager.input_hist_raw) - 1)


def _options(args: Namespace) -> Options:
    return Options(tier=args.tier, entry="notebook", every=args.every)


def _send_record(frames: Iterable[bytes]) -> tuple[str | None, str | None]:
    """Send the record to the service; return its page there, or None and why it is not there."""
    from backprobe.client import ApiError, Client, ServiceAway

    url = (os.environ.get("BACKPROBE_URL") or DEFAULT_URL).rstrip("/")
    try:
        with Client(url, os.environ.get("BACKPROBE_API_KEY") or None) as client:
            return f"{url}/runs/{client.upload(MAGIC + b''.join(frames)).id}", None
    except (ApiError, ServiceAway) as error:
        return None, f"the service at {url}: {error}"


def _record(frames: list[bytes]) -> Record:
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    for frame in frames:
        reader.feed(frame)
    record = reader.record()
    if record is None:
        raise RuntimeError("the cell left no record")
    return record


def load(shell: Any) -> None:
    """Add the magics to a shell, once."""
    shell.register_magics(BackprobeMagics(shell))
    cleanup = shell.input_transformer_manager.cleanup_transforms
    cleanup[:] = [entry for entry in cleanup if not isinstance(entry, Awaiting)]
    cleanup.append(Awaiting())


_FOUND: Final = f"get_ipython().magics_manager.registry[{BackprobeMagics.__name__!r}]"
"""How a cell with `await` finds what awaits it: no name of the notebook, which `%reset` would take away."""


class Awaiting:
    """Has a captured cell with `await` outside of functions awaited: a magic cannot, for it is a plain call."""

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the cell's lines as they are to be transformed further."""
        if not lines or not lines[0].startswith("%%backprobe"):
            return lines
        options = lines[0].removeprefix("%%backprobe")
        body = "".join(lines[1:])
        is_ours = not options.strip() or options[0].isspace()
        if not is_ours or ("await" not in body and "async" not in body) or not awaits(body):
            return lines
        return [f"await {_FOUND}.run_async_cell({options.strip()!r}, {body!r})\n"]


def awaits(body: str) -> bool:
    """Something is awaited outside of functions; a body that does not parse is left to whoever compiles it."""
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        code = TransformerManager().transform_cell(body)
        made = compile(code, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST, dont_inherit=True)
        flags = compile(made, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True).co_flags
    except (SyntaxError, ValueError):
        return False
    return bool(flags & inspect.CO_COROUTINE)
