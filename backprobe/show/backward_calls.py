"""The backward calls of a record, each with its flags and what it freed, as rows that text and JSON share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record


NAMELESS: Final = "(unnamed)"
"""Stands for a root that the program gave no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One backward call.

    Attributes:
        number: 1 for the first.
        retain_graph_given: As written; None: defaulted.
        held_bytes: Saved for backward before it; freed_bytes: of that, freed by it.
        truncated: Its walk was cut: the counts are lower bounds.
    """

    number: int
    path: str | None
    line: int | None
    entry: str
    roots: tuple[str, ...]
    retain_graph: bool
    retain_graph_given: bool | None
    create_graph: bool
    nodes_met: int
    nodes_run: int
    nodes_freed: int
    held_bytes: int
    freed_bytes: int
    outcome: str
    truncated: bool

    @property
    def kept_bytes(self) -> int:
        """What the graph still held after the call."""
        return max(0, self.held_bytes - self.freed_bytes)


def call_rows(record: Record) -> list[CallRow]:
    """All backward calls in their order."""
    return [_row(record, call, number) for number, call in enumerate(record.backward_calls, start=1)]


def _row(record: Record, call: BackwardCall, number: int) -> CallRow:
    index = lookup(record)
    site = None if call.site is None else index.sites[call.site]
    return CallRow(
        number=number,
        path=None if site is None else index.sources[site.source].path,
        line=None if site is None else site.line,
        entry=call.entry,
        roots=tuple(root.name or NAMELESS for root in call.roots),
        retain_graph=call.retain_graph,
        retain_graph_given=call.retain_graph_given,
        create_graph=call.create_graph,
        nodes_met=call.nodes_met,
        nodes_run=call.nodes_run,
        nodes_freed=call.nodes_freed,
        held_bytes=call.held_bytes,
        freed_bytes=call.freed_bytes,
        outcome=call.outcome,
        truncated=call.truncated,
    )
