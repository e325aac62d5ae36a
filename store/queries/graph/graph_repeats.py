"""What makes a closed module call equal to its neighbour, so that both share a box with a count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from backprobe.show.drawing.module_boxes import Ops, boxes
from backprobe.show.drawing.repeated_calls import masked, repeats

Rows = Mapping[int, Any]
Levels = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Finds equal calls in folds of one graph.

    Attributes:
        ops: The graph. rows: its nodes by number. chains: of each module call.
        held: Of each node held, freed or nothing. levels: findings of each tensor. roots: tensors that are marked.
    """

    ops: Ops
    rows: Rows
    chains: Mapping[int, str]
    held: Mapping[int, str]
    levels: Levels
    roots: Collection[int]

    def runs(self, found: Mapping[int, int | None]) -> tuple[tuple[int, ...], ...]:
        """The closed calls that share boxes.

        Two are equal if their chains differ in digits only, and their nodes in number alone: so many of each type, so
        many of those held, freed or without anything saved. One with a root in it is equal to none without.
        """
        inside: defaultdict[int, list[Any]] = defaultdict(list)
        for node, call in found.items():
            if call is not None:
                inside[call].append(self.rows[node])
        kinds = {call: self._kind(call, nodes) for call, nodes in inside.items()}
        made = {node: row.seq for node, row in self.rows.items() if row.seq is not None}
        return repeats(self.ops, found, made, kinds, self.noted(inside))

    def noted(self, inside: Mapping[int, Collection[Any]]) -> set[int]:
        """Of the calls with these nodes, those about whose tensors there are findings."""
        return {call for call, nodes in inside.items() if any(node.tensor in self.levels for node in nodes)}

    def count(self, found: Mapping[int, int | None]) -> int:
        """Boxes of a fold, those of equal neighbours as one."""
        return boxes(found) - sum(len(run) - 1 for run in self.runs(found))

    def _kind(self, call: int, nodes: Collection[Any]) -> Hashable:
        ops = Counter((node.type, self.held[node.node]) for node in nodes)
        has_root = any(node.tensor in self.roots for node in nodes if node.variable is None)
        return masked(self.chains[call]), tuple(sorted(ops.items())), has_root
