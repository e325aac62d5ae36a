"""`%load_ext backprobe`, then `%%backprobe`: a notebook cell under capture, its findings shown below it.

The cell runs in the kernel, in the notebook's own namespace. Its lines are told as `Cell [3]` line 2, counted as the
notebook shows them; what it raises is raised, after the findings. IPython is imported by whoever loads the extension.
"""

from __future__ import annotations

import ast
import base64
from html import escape
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from backprobe.capture import Options
from backprobe.capture.program.notebook_cell import Cell, Notebook
from backprobe.record import FrameReader
from backprobe.rules import judge

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding, Judgement

MIME: Final = "application/vnd.backprobe.v1+json"
_MOST_ROWS: Final = 50
_WIDTH: Final = 100


class Shown:
    """A cell's record and what the rules say of it: text and numbers, never a tensor, so that `Out[3]` keeps nothing.

    Attributes:
        record: What was seen. judgement: what is said about it.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.judgement: Judgement = judge(record)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that are not suppressed."""
        return tuple(finding for finding in self.judgement.findings if finding.suppressed is None)

    def __repr__(self) -> str:
        from backprobe.show.reports import terminal_report

        return terminal_report.render(self.record, self.judgement, width=_WIDTH, tables=False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002  # IPython's own
        import json

        from backprobe.show.reports import json as as_json

        return {
            "text/plain": repr(self),
            "text/html": self.html(),
            MIME: json.loads(as_json.render(self.record, self.judgement, script="")),
        }

    def html(self) -> str:
        """Tables and a picture: no script and no style sheet, so that an untrusted notebook shows them too."""
        from backprobe.show.drawing import graph, svg
        from backprobe.show.reports import terminal_report

        rows = "".join(_row(finding) for finding in self.findings[:_MOST_ROWS])
        table = f"<table><tr><th>where</th><th>rule</th><th>what</th></tr>{rows}</table>" if rows else ""
        drawn = graph.graph_of(self.record)
        picture = base64.b64encode(svg.render(drawn).encode()).decode()
        image = f'<img alt="the autograd graph" src="data:image/svg+xml;base64,{picture}">' if drawn.boxes else ""
        whole = terminal_report.render(self.record, self.judgement, width=_WIDTH, tables=True)
        details = f"<details><summary>all that was seen</summary><pre>{escape(whole)}</pre></details>"
        return f"<p>{escape(terminal_report.summary(self.record, self.judgement))}</p>{table}{image}{details}"


def _row(finding: Finding) -> str:
    place, rule = finding.location, finding.rule
    where = f"{place.path} line {place.region.start_line}"
    cells = (where, f"{rule.name} {rule.code}, {finding.level}", finding.message)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


@magics_class
class BackprobeMagics(Magics):
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._notebook = Notebook()

    @magic_arguments()
    @argument("-o", "--out", metavar="NAME", help="the name that the result is bound to")
    @argument("--tier", choices=("state", "grad", "full"), default="full", help="how much is recorded")
    @argument("--every", type=int, help="take every so-manieth training step; 1: all")
    @cell_magic
    def backprobe(self, line: str, cell: str) -> Shown | None:
        """Run this cell under capture and show what its gradients did."""
        __tracebackhide__ = True
        args = parse_argstring(self.backprobe, line)
        frames: list[bytes] = []
        options = Options(tier=args.tier, entry="notebook", every=args.every)
        try:
            error = self._notebook.run(self._cell(cell), self._shell.user_ns, options, frames.append)
        except RuntimeError as refused:
            raise UsageError(str(refused)) from None
        shown = Shown(_record(frames))
        if args.out:
            self._shell.user_ns[args.out] = shown
        display(shown)
        if error is not None:
            raise error
        return None

    @property
    def _shell(self) -> Any:
        return self.shell

    def _cell(self, cell: str) -> Cell:
        """The cell in the lines that the notebook shows: the magic's own is the first."""
        shell = self._shell
        code = "\n" + shell.transform_cell(cell)
        try:
            compile(code, "<cell>", "exec", dont_inherit=True)
        except SyntaxError as error:
            if "outside" in str(error) and ("await" in str(error) or "async" in str(error)):
                raise UsageError("`await` outside a function is not captured: put it into an `async def`") from None
        # not shell.execution_count: from some IPython 9 on it is the next cell's while this one runs
        number = max(1, len(shell.history_manager.input_hist_raw) - 1)
        filename = shell.compile.cache(code, number, raw_code=cell)
        return Cell(filename, f"Cell [{number}]", code, lambda: shell.transform_ast(ast.parse(code)))


def _record(frames: list[bytes]) -> Record:
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    for frame in frames:
        reader.feed(frame)
    record = reader.record()
    if record is None:
        raise RuntimeError("the cell left no record")
    return record


def load(shell: Any) -> None:
    """Add the magics to a shell."""
    shell.register_magics(BackprobeMagics)
