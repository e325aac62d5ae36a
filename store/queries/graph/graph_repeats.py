"""What makes a closed module call equal to its neighbour, so that both share a box with a count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from backprobe.show.drawing.module_boxes import Ops, boxes
from backprobe.show.drawing.repeated_calls import mask_chain, repeats
from backprobe.show.drawing.repeated_patterns import MOST_BOXES
from backprobe.show.drawing.shared_boxes import Folding, SharedBoxes, shared_boxes

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
        """Group the closed calls that share boxes.

        Two are equal if their chains differ in digits only, and their nodes in number alone: so many of each type, so
        many of those held, freed or without anything saved. One with a root in it is equal to none without.
        """
        inside = self._group_by_call(found)
        kinds = {call: self._kind(call, nodes) for call, nodes in inside.items()}
        return repeats(self.ops, found, self._map_nodes_to_seq(), kinds, self.calls_with_findings(inside))

    def group_into_boxes(
        self, found: Mapping[int, int | None], *, repeats_too: bool, opened: Collection[int] = ()
    ) -> SharedBoxes:
        """Group the nodes of a fold into boxes: equal calls, and patterns where there are many boxes.

        Boxes that repeat become one if `repeats_too`.

        Two nodes are equal if their type is, and what is left of what they saved; `opened`: first nodes of instances
        of a pattern that stand open.
        """
        inside = self._group_by_call(found)
        noted = self.calls_with_findings(inside)
        kinds: dict[tuple[str, int], Hashable] = {
            ("call", call): self._kind(call, nodes) for call, nodes in inside.items() if call not in noted
        }
        for node, call in found.items():
            row = self.rows[node]
            if call is None and row.variable is None and row.tensor not in self.levels and row.tensor not in self.roots:
                kinds["node", node] = row.type, self.held[node]
        folding = Folding(
            ops=self.ops,
            found=found,
            runs=self.runs(found) if repeats_too else (),
            made=self._map_nodes_to_seq(),
            leaves={node: row.variable for node, row in self.rows.items() if row.variable is not None},
            kinds=kinds,
        )
        return shared_boxes(folding, patterns_beyond=MOST_BOXES if repeats_too else None, opened=opened)

    def _map_nodes_to_seq(self) -> dict[int, int]:
        return {node: row.seq for node, row in self.rows.items() if row.seq is not None}

    def _group_by_call(self, found: Mapping[int, int | None]) -> Mapping[int, Collection[Any]]:
        inside: defaultdict[int, list[Any]] = defaultdict(list)
        for node, call in found.items():
            if call is not None:
                inside[call].append(self.rows[node])
        return inside

    def calls_with_findings(self, inside: Mapping[int, Collection[Any]]) -> set[int]:
        """Of the calls with these nodes, those about whose tensors there are findings."""
        return {call for call, nodes in inside.items() if any(node.tensor in self.levels for node in nodes)}

    def count(self, found: Mapping[int, int | None]) -> int:
        """Boxes of a fold, those of equal neighbours as one."""
        return boxes(found) - sum(len(run) - 1 for run in self.runs(found))

    def _kind(self, call: int, nodes: Collection[Any]) -> Hashable:
        ops = Counter((node.type, self.held[node.node]) for node in nodes)
        has_root = any(node.tensor in self.roots for node in nodes if node.variable is None)
        return mask_chain(self.chains[call]), tuple(sorted(ops.items())), has_root
