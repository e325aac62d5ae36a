"""What a captured cell leaves: findings and tensors as text and as HTML; numbers and text, never a tensor."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Final

from backprobe.rules import judge

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding, Judgement
    from backprobe.show.tensor_table import TensorRow

MIME: Final = "application/vnd.backprobe.v1+json"
MOST_ROWS: Final = 50
"""Of the HTML, in all its tables."""

_WIDTH: Final = 100
_MOST_BOXES: Final = 60
"""Of a graph that is drawn: a larger picture is larger than what it is about."""


class CellResult:
    """A cell's record and what the rules say of it.

    Attributes:
        record: What was seen. judgement: what is said about it.
        page: The address of its page on a service, once it was sent there; None: it was not.
        unsent: Why it could not be sent; None: it was, or nobody asked for it.
    """

    def __init__(self, record: Record, *, page: str | None = None, unsent: str | None = None) -> None:
        self.record = record
        self.judgement: Judgement = judge(record)
        self.page, self.unsent = page, unsent

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that are not suppressed."""
        return tuple(finding for finding in self.judgement.findings if finding.suppressed is None)

    @property
    def text(self) -> str:
        """The whole report, and where it was sent to."""
        from backprobe.show.formats import terminal_report as text

        lines = [text.render(self.record, self.judgement, width=_WIDTH)]
        lines += [f"page: {self.page}"] if self.page else []
        lines += [f"not sent: {self.unsent}"] if self.unsent else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        from backprobe.show.formats import terminal_report as text

        return f"<backprobe: {text.summary(self.record, self.judgement)}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002, FBT001 - IPython's protocol
        printer.text(self.text)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[str]:
        """For rich, which is not imported here; brackets of the text are no markup of its."""
        yield self.text.replace("[", "\\[")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002 - IPython's own
        from backprobe.show.formats import json as as_json

        return {
            "text/plain": self.text,
            "text/html": self.html(),
            MIME: json.loads(as_json.render(self.record, self.judgement, script="")),
        }

    def html(self) -> str:
        """Tables and a picture: no script and no style sheet, so that an untrusted notebook shows them too."""
        from backprobe.rules.framework.tables import shared_tables
        from backprobe.show.check_lines import checks_line
        from backprobe.show.formats import terminal_report as text
        from backprobe.show.tensor_table import tensor_rows

        findings = self.findings
        with shared_tables(self.record):
            tensors = tensor_rows(self.record)
            rows = [_finding_row(self.record, finding) for finding in findings[:MOST_ROWS]]
        states = [_row(_tensor_cells(tensor)) for tensor in tensors[: MOST_ROWS - len(rows)]]
        parts = [f"<p>{escape(text.summary(self.record, self.judgement))}</p>"]
        if not findings and (line := checks_line(self.judgement.checks)):
            parts.append(f"<p>{escape(line)}</p>")
        parts.append(_table(("where", "rule", "what"), rows))
        parts.append(_table(("tensor", "line", "shape", "is_leaf", "requires_grad", "gradient"), states))
        left_out = len(findings) - len(rows) + len(tensors) - len(states)
        parts.append(self._rest(left_out))
        parts.append(self._picture())
        return "".join(parts)

    def _rest(self, left_out: int) -> str:
        """Say what is not in the tables, and link to where it is."""
        more = f"{left_out} more rows" if left_out else ""
        if self.page:
            return f'<p>{more} <a href="{escape(self.page)}">the whole run on its page</a></p>'
        unsent = f"not sent: {escape(self.unsent)}" if self.unsent else ""
        said = f"{more}: <code>%backprobe last</code> has them, <code>--submit</code> a page" if more else ""
        return f"<p>{said} {unsent}</p>" if said or unsent else ""

    def _picture(self) -> str:
        from backprobe.show.drawing import graph, svg

        drawn = graph.graph_of(self.record)
        if not 0 < len(drawn.boxes) <= _MOST_BOXES:
            return ""
        picture = base64.b64encode(svg.render(drawn).encode()).decode()
        image = f'<img alt="the autograd graph" src="data:image/svg+xml;base64,{picture}">'
        return f"<details><summary>the autograd graph</summary>{image}</details>"


def _table(heads: tuple[str, ...], rows: list[str]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th style="text-align: left">{title}</th>' for title in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(cells: tuple[str, ...]) -> str:
    return _markup_row(escape(cell).replace("\n", "<br>") for cell in cells)


def _markup_row(cells: Iterable[str]) -> str:
    """Write a table row. A cell is aligned to the left, where Jupyter's own style aligns it to the right."""
    return "<tr>" + "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells) + "</tr>"


def _finding_row(record: Record, finding: Finding) -> str:
    """Write the row of a finding with its whole text: lines of code, notes, fixes as diffs, link to the manual."""
    from backprobe.show.formats.finding_text import finding_lines
    from backprobe.show.terminal_style import Ink

    place, rule = finding.location, finding.rule
    where = f"{place.path} line {place.region.start_line}"
    _, *story = finding_lines(record, finding, Ink(False))
    told = f'<pre style="text-align: left; white-space: pre-wrap">{escape(chr(10).join(story))}</pre>'
    return _markup_row((escape(where), escape(f"{rule.code} {rule.name}, {finding.level}"), told))


def _tensor_cells(row: TensorRow) -> tuple[str, ...]:
    from backprobe.show.amounts import format_shape

    name = row.name if row.times == 1 else f"{row.name} \u00d7{row.times}"
    why = "" if row.why is None else f"None: {row.why.text}"
    gradient = why if row.gradient is None else row.gradient
    if row.arrived is not None:
        gradient += f"; arrived: {row.arrived}"
    line = "" if row.line is None else str(row.line)
    return name, line, format_shape(row.shape), str(row.is_leaf), str(row.requires_grad), gradient
