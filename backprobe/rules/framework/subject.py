"""What a finding is about, in the record's own numbers, and what its mistake reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.cuts import derived_from
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

Fact = tuple[str, int]
"""`("tensor", 4)`, `("call", 2)` or `("optimizer", 0)`."""


def reach_of(record: Record, finding: Finding) -> frozenset[Fact]:
    """The subject of a finding and what its mistake touches: what was computed from its tensors, and the calls on that.

    A leaf that a call of the subject met is touched too: its gradient is what the mistake changes.
    """
    return _spread(record).of(finding.subject.facts)


class _Spread:
    """Reach, computed once per set of facts."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._known: dict[tuple[Fact, ...], frozenset[Fact]] = {}

    def of(self, facts: tuple[Fact, ...]) -> frozenset[Fact]:
        if facts not in self._known:
            self._known[facts] = frozenset(self._touched(facts))
        return self._known[facts]

    def _touched(self, facts: tuple[Fact, ...]) -> set[Fact]:
        record, index = self._record, lookup(self._record)
        found: set[Fact] = set(facts)
        tensors = {number for kind, number in facts if kind == "tensor"}
        for tensor in tuple(tensors):
            tensors |= derived_from(record, tensor)
        found |= {("tensor", tensor) for tensor in tensors}
        nodes = {index.node_of[tensor].node for tensor in tensors if tensor in index.node_of}
        calls = {number for kind, number in facts if kind == "call"}
        for call in record.backward_calls:
            met = reaches(record)[call.call].met
            if nodes & met or any(root.tensor in tensors for root in call.roots):
                found.add(("call", call.call))
        for call in calls:
            if call in index.calls:
                found |= {("tensor", leaf) for leaf in reaches(record)[call].leaves}
        return found


@table
def _spread(record: Record) -> _Spread:
    return _Spread(record)
