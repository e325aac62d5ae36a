"""Everything that the page of one run shows, read in one transaction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from backprobe.show.amounts import count_noun
from backprobe.show.drawing import svg
from backprobe.show.tensor_table import tensor_rows
from service.api.records.graph import drawing_of
from service.dashboard.cards import Card, card
from service.dashboard.held_graphs import HeldShown, held_shown
from service.dashboard.lines import Listing, listing
from service.dashboard.tensor_rows import Row, rows
from service.dashboard.words import RECORDED, StatusText, describe_status
from store import queries
from store.findings import findings
from store.queries.checks import Checks, load_checks
from store.queries.gradient_checks import GradientCheckRow, gradient_checks
from store.queries.graph.graph_view import MOST_NODES as MOST_SEEN
from store.records import storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backprobe.record import Record
    from service.dashboard.run.run_page_query import RunPageQuery
    from service.process.readiness import Standing
    from store.database.session import Transaction
    from store.queries import BackwardCallRow, GraphView, Streams
    from store.runs.model import RunRow

MOST_CARDS: Final = 20
MOST_CALLS: Final = 10
MOST_CHECKS: Final = 20
TENSORS_PER_PAGE: Final = 16
MOST_RECORD_BYTES: Final = 1 << 20
"""Of frames; a larger record is not read whole for a page: then no graph and no elements, and the page says so."""

MOST_NODES: Final = 5_000
"""Likewise: at this bound that takes half a second of a core."""

MOST_NODES_WITH_THE_PAGE: Final = 2_000
"""Of a drawing that comes with its page: folding takes 30 us a node, seen. A larger one is asked for after it."""

BOXES: Final = 60
"""Of the drawing, closed module calls and repeats as one: what one looks over at a glance. The island opens more."""

WIDEST_IN_A_COLUMN: Final = 840
WIDEST_IN_A_PAGE: Final = 1700
"""Pixels; a drawing is scaled down to seven tenths at most, where its text is still 9 px high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphShown:
    """The drawing, or why there is none; `said` under a drawing: what is left out of it.

    Attributes:
        width: In pixels, as drawn; 0 without a drawing.
        call: The backward call that it is of, from 0; None: of none.
        answer: What `answer_path` of the API says of it, so that the pane with scripts need not ask again.
        comes_after: It is drawn by the API when the page asks for it, with scripts or without.
    """

    svg: Markup | None
    said: str
    call: int | None = None
    width: int = 0
    answer: Any = None
    comes_after: bool = False

    @property
    def answer_path(self) -> str:
        """Below the run's address; `pathOf` of the pane asks for the same."""
        return f"graph?root=call:{self.call}&max={BOXES}"

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
    said: StatusText
    cards: tuple[Card, ...]
    more_findings: bool
    invariants: Checks
    source: Listing | None
    graph: GraphShown
    held: HeldShown
    rows: tuple[Row, ...]
    next_tensors: int | None
    calls: tuple[BackwardCallRow, ...]
    streams: Streams | None
    checks: tuple[GradientCheckRow, ...] = ()


def run_page(
    transaction: Transaction,
    run: RunRow,
    query: RunPageQuery,
    *,
    after: int | None,
    waits_for: Standing | None = None,
) -> RunPage:
    """Read the page of a run.

    Args:
        transaction: One reading step.
        run: The run.
        query: Which part of it.
        after: The tensor behind which the table begins.
        waits_for: What runs of its queue get now; None: it does not wait.
    """
    record = _record(transaction, run)
    found = findings.page(transaction, run, limit=MOST_CARDS)
    text = Texts(transaction, run)
    cards = tuple(card(row, text.lines, run.record.steps_made) for row in found.items)
    calls = queries.backward_calls(transaction, run, limit=MOST_CALLS)
    file_shown = text.file(query.file)
    tensors = queries.tensors(transaction, run, after=after, limit=TENSORS_PER_PAGE, **query.tensor_filters)
    recorded = {row.tensor: row for row in tensor_rows(record)} if record is not None else {}
    return RunPage(
        run=run,
        has_record=_has_record(run),
        said=describe_status(run, waits_for),
        cards=cards,
        more_findings=found.next is not None,
        invariants=load_checks(transaction, run),
        source=None
        if file_shown is None
        else listing(file_shown, query.first, {c.id: c for c in cards}, {call.call: call for call in calls}),
        graph=_graph(transaction, run),
        held=_load_held_graphs(transaction, run),
        rows=rows(
            tuple(tensor for tensor in tensors.items if tensor.role != "gradient"),
            recorded,
            cards,
        ),
        next_tensors=tensors.next,
        calls=calls,
        streams=queries.streams(transaction, run) if run.key is not None else None,
        checks=tuple(gradient_checks(transaction, run, limit=MOST_CHECKS)),
    )


def _record(transaction: Transaction, run: RunRow) -> Record | None:
    """Load the record, if there is one and it is small enough to be read for a page."""
    told = run.record
    if run.key is None or not _has_record(run) or told.bytes > MOST_RECORD_BYTES or told.nodes > MOST_NODES:
        return None
    return storage.load(transaction, run.key)


def _has_record(run: RunRow) -> bool:
    return run.key is not None and run.record.state in RECORDED


class Texts:
    """The files of a run's snippet, each read once."""

    def __init__(self, transaction: Transaction, run: RunRow) -> None:
        self._transaction, self._run = transaction, run
        self._files: dict[str | None, queries.SourceFile | None] = {}

    def file(self, path: str | None) -> queries.SourceFile | None:
        """Return a source file of the run, loaded once, by default its entry; None if the run has no such file."""
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


def _load_held_graphs(transaction: Transaction, run: RunRow) -> HeldShown:
    if not _has_record(run) or run.record.live:
        return HeldShown()
    try:
        return held_shown(queries.load_held_graphs(transaction, run))
    except queries.TooMuch as error:
        return HeldShown(text=f"{error}.")


def _view(transaction: Transaction, run: RunRow, last: int | None) -> GraphView:
    """Of the backward calls tried the last whose graph folds into few boxes, by module calls alone if one does."""
    if last is None:
        return queries.graph_view(transaction, run, queries.GraphAsked(most=BOXES))
    tried: list[GraphView] = []
    for call in dict.fromkeys((last, last * 3 // 4, last // 2, 0)):
        tried.append(queries.graph_view(transaction, run, queries.GraphAsked(root=f"call:{call}", most=BOXES)))
        if tried[-1].nodes > MOST_NODES or (
            _fits(tried[-1]) and not any(box.kind == "pattern" for box in tried[-1].boxes)
        ):
            return tried[-1]
    return next(filter(_fits, tried), tried[0])


def _fits(view: GraphView) -> bool:
    return bool(view.boxes) and not view.hidden


def _graph(transaction: Transaction, run: RunRow) -> GraphShown:
    if not _has_record(run):
        waiting = "There is no record of this run." if run.ended else "Shown when the run has ended."
        return GraphShown(svg=None, said=waiting)
    last = queries.last_folding_call(transaction, run)
    first = queries.last_walked_call(transaction, run) if last is None else last
    nodes = (
        0 if first is None or run.record.live else queries.nodes_of_call(transaction, run, first, most=MOST_SEEN + 1)
    )
    if MOST_NODES_WITH_THE_PAGE < nodes <= MOST_SEEN:
        said = f"The graph of this backward call has {nodes:,} nodes."
        return GraphShown(svg=None, said=said, call=first, comes_after=True)
    try:
        found = _view(transaction, run, last)
    except queries.TooMuch as error:
        return GraphShown(svg=None, said=f"Too much to draw: {error}.")
    if not found.boxes:
        return GraphShown(svg=None, said="No backward call was walked, so there is no graph to draw.")
    # The renderer's escaping has its own tests, with hostile names.
    drawn = Markup(svg.render(drawing_of(found), standalone=False))  # noqa: S704 - the renderer has escaped every text in it
    hidden = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in found.hidden.items() if count)
    width = re.match(r'<svg [^>]*?\bwidth="(\d+)', drawn)
    folds = sum(box.kind in {"call", "fold", "pattern"} for box in found.boxes)
    said = [f"{count_noun(folds, 'box holds several nodes', 'boxes hold several nodes each')}."] if folds else []
    said += [f"Left out: {hidden}."] if hidden else []
    return GraphShown(
        svg=drawn,
        said=" ".join(said),
        width=int(width[1]) if width else 0,
        call=None if found.call is None else found.call - 1,
        answer=queries.as_json(found),
    )
