"""One walk over an autograd graph from its roots: nodes, edges, leaves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from backprobe.capture.output.writer import Writer
from backprobe.capture.tracking.graph.nodes import NodeFacts, Nodes, held_by
from backprobe.record import Edge
from backprobe.record.rows.graph import RetentionState


class Walk:
    """What a walk met.

    Attributes:
        truncated: The node budget or the cap of one call stopped it.
    """

    __slots__ = ("_entered", "nodes", "truncated")

    def __init__(
        self, nodes: tuple[NodeFacts, ...] = (), entered: Collection[int] = (), *, truncated: bool = False
    ) -> None:
        self.nodes = nodes
        self.truncated = truncated
        self._entered = entered

    def __len__(self) -> int:
        return len(self.nodes)

    def has_met(self, number: int) -> bool:
        """Return whether the walk met a node of the record."""
        return any(facts.number == number for facts in self.nodes)

    def enters(self, number: int) -> bool:
        """Return whether an edge inside the walk leads to a node of the record."""
        return number in self._entered

    @property
    def grad_order(self) -> int:
        """The highest order of derivation of its nodes."""
        return max((facts.row.grad_order for facts in self.nodes), default=0)

    @property
    def held_totals(self) -> tuple[int, int]:
        """Nodes that hold saved tensors still, and the bytes of the distinct storages that they hold."""
        return held_by(self.nodes)

    @property
    def state(self) -> tuple[RetentionState, int | None]:
        """What became of what its nodes saved, and the last call that freed some; "released" if nothing was saved."""
        saving = [facts for facts in self.nodes if facts.saves]
        freed = [facts.row.freed_by for facts in saving if facts.row.freed_by is not None]
        if not saving:
            return "released", None
        if not freed:
            return "held", None
        return ("freed" if len(freed) == len(saving) else "partly-freed"), max(freed)


def walk(roots: Iterable[Any], nodes: Nodes, writer: Writer, *, whole: bool = False) -> Walk:
    """Follow `next_functions` from the root nodes once; nothing of the graph is kept alive afterwards.

    Args:
        whole: Every node is about to run. The compiled core then takes the shapes of outputs from the gradients that
            arrive; this twin reads each node, and asks for nothing.
    """
    met: dict[int, NodeFacts] = {}
    entered: set[int] = set()
    cap, truncated = writer.caps.nodes_per_call, False
    stack = [root for root in roots if root is not None]
    stack.reverse()
    while stack:
        node = stack.pop()
        facts = nodes.find_facts(node)
        if facts is not None and facts.number in met:
            continue
        if len(met) >= cap:
            writer.cut("nodes of one backward call", "a larger graph is walked in part", cap)
            truncated = True
            break
        facts = nodes.meet(node)
        if facts is None:
            truncated = True
            break
        met[facts.number] = facts
        following = node.next_functions
        for next_node, _ in reversed(following):
            if next_node is not None:
                stack.append(next_node)
        if not facts.described:
            facts.described = _describe(facts, following, nodes, writer)
        entered.update(
            other.number
            for next_node, _ in following
            if next_node is not None and (other := nodes.find_facts(next_node))
        )
    return Walk(tuple(met.values()), entered, truncated=truncated)


def _describe(facts: NodeFacts, following: Any, nodes: Nodes, writer: Writer) -> bool:
    """Write a node's edges; false if the budget leaves one of them without its target."""
    complete = True
    for slot, (next_node, input_nr) in enumerate(following):
        target = None if next_node is None else nodes.meet(next_node)
        if next_node is not None and target is None:
            complete = False
            continue
        writer.add(
            "edges",
            Edge(node=facts.number, slot=slot, to_node=None if target is None else target.number, input_nr=input_nr),
        )
    return complete
