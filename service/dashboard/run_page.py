"""Everything that the page of one run shows, read in one transaction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from backprobe.show.drawing import graph as drawing
from backprobe.show.drawing import svg
from backprobe.show.tensor_table import tensor_rows
from service.dashboard.cards import Card, card
from service.dashboard.lines import Listing, listing
from service.dashboard.tensor_rows import Row, rows
from service.dashboard.words import RECORDED, Said, said
from store import queries
from store.findings import findings
from store.records import storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backprobe.record import Record
    from service.process.readiness import Standing
    from store.database.session import Transaction
    from store.queries import BackwardCallRow, Streams
    from store.runs.model import RunRow

MOST_CARDS: Final = 50
MOST_CALLS: Final = 100
TENSORS_PER_PAGE: Final = 100
MOST_RECORD_BYTES: Final = 1 << 20
"""Of frames; a larger record is not read whole for a page: then no graph and no elements, and the page says so."""

MOST_NODES: Final = 5_000
"""Likewise: at this bound that takes half a second of a core."""

WIDEST_IN_A_COLUMN: Final = 840
WIDEST_IN_A_PAGE: Final = 1700
"""Pixels; a drawing is scaled down to seven tenths at most, where its text is still 9 px high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphShown:
    """The drawing, or why there is none; `said` under a drawing: what is left out of it.

    Attributes:
        width: In pixels, as drawn; 0 without a drawing.
    """

    svg: Markup | None
    said: str
    width: int = 0

    @property
    def is_wide(self) -> bool:
        """It could not be read at half of the page's width."""
        return self.width > WIDEST_IN_A_COLUMN

    @property
    def scrolls(self) -> bool:
        """It could not be read at the whole of the page's width."""
        return self.width > WIDEST_IN_A_PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """The page of one run. `has_record`: something was recorded, and may still be read."""

    run: RunRow
    has_record: bool
    said: Said
    cards: tuple[Card, ...]
    more_findings: bool
    source: Listing | None
    graph: GraphShown
    rows: tuple[Row, ...]
    next_tensors: int | None
    calls: tuple[BackwardCallRow, ...]
    streams: Streams | None


def run_page(
    transaction: Transaction,
    run: RunRow,
    *,
    file: str | None,
    first: int,
    after: int | None,
    waits_for: Standing | None = None,
) -> RunPage:
    """Read the page of a run.

    Args:
        transaction: One reading step.
        run: The run.
        file: Of its snippet; None: the entry.
        first: The first line of it to show.
        after: The tensor behind which the table begins.
        waits_for: What runs of its queue get now; None: it does not wait.
    """
    record = _record(transaction, run)
    found = findings.page(transaction, run, limit=MOST_CARDS)
    text = _Texts(transaction, run)
    cards = tuple(card(row, text.lines) for row in found.items)
    calls = queries.backward_calls(transaction, run, limit=MOST_CALLS)
    file_shown = text.file(file)
    tensors = queries.tensors(transaction, run, after=after, limit=TENSORS_PER_PAGE)
    recorded = {row.tensor: row for row in tensor_rows(record)} if record is not None else {}
    return RunPage(
        run=run,
        has_record=_has_record(run),
        said=said(run, waits_for),
        cards=cards,
        more_findings=found.next is not None,
        source=None
        if file_shown is None
        else listing(file_shown, first, {c.id: c for c in cards}, {call.call: call for call in calls}),
        graph=_graph(run, record),
        rows=rows(tuple(tensor for tensor in tensors.items if tensor.role != "gradient"), recorded),
        next_tensors=tensors.next,
        calls=calls,
        streams=queries.streams(transaction, run) if run.key is not None else None,
    )


def _record(transaction: Transaction, run: RunRow) -> Record | None:
    """The record, if there is one and it is small enough to be read for a page."""
    told = run.record
    if run.key is None or not _has_record(run) or told.bytes > MOST_RECORD_BYTES or told.nodes > MOST_NODES:
        return None
    return storage.load(transaction, run.key)


def _has_record(run: RunRow) -> bool:
    return run.key is not None and run.record.state in RECORDED


class _Texts:
    """The files of a run's snippet, each read once."""

    def __init__(self, transaction: Transaction, run: RunRow) -> None:
        self._transaction, self._run = transaction, run
        self._files: dict[str | None, queries.SourceFile | None] = {}

    def file(self, path: str | None) -> queries.SourceFile | None:
        """A file with its lines; None: no such file, or none at all."""
        if path not in self._files:
            found = queries.source(self._transaction, self._run, path=path)
            self._files[path] = found
            if found is not None:
                self._files[found.path] = found
        return self._files[path]

    def lines(self, path: str) -> Sequence[str] | None:
        """Its lines as text."""
        found = self.file(path)
        return None if found is None else [line.text for line in found.lines]


def _too_large(run: RunRow) -> str:
    told = run.record
    return (
        f"The record has {told.nodes:,} nodes and {told.tensors:,} tensors in {told.bytes:,} bytes: too much to draw."
    )


def _graph(run: RunRow, record: Record | None) -> GraphShown:
    if not _has_record(run):
        waiting = "There is no record of this run." if run.ended else "Shown when the run has ended."
        return GraphShown(svg=None, said=waiting)
    if record is None:
        return GraphShown(svg=None, said=_too_large(run))
    found = drawing.graph_of(record)
    if not found.boxes:
        return GraphShown(svg=None, said="No backward call was walked, so there is no graph to draw.")
    # The renderer's escaping has its own tests, with hostile names.
    drawn = Markup(svg.render(found, standalone=False))  # noqa: S704 - the renderer has escaped every text in it
    hidden = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in found.hidden.items() if count)
    width = re.match(r'<svg [^>]*?\bwidth="(\d+)', drawn)
    return GraphShown(svg=drawn, said=f"Left out: {hidden}." if hidden else "", width=int(width[1]) if width else 0)
