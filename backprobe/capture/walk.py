"""One walk over an autograd graph from its roots: nodes, edges, leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from backprobe.capture.nodes import NodeFacts, Nodes
from backprobe.capture.writer import Writer
from backprobe.record import Edge


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk met.

    Attributes:
        nodes: In the order met. entered: numbers of nodes that an edge inside the walk leads to.
        truncated: The node budget or the cap of one call stopped it.
    """

    nodes: tuple[NodeFacts, ...]
    entered: frozenset[int]
    truncated: bool


def walk(roots: Iterable[Any], nodes: Nodes, writer: Writer) -> Walk:
    """Follow `next_functions` from the root nodes once; nothing of the graph is kept alive afterwards."""
    met: dict[int, NodeFacts] = {}
    entered: set[int] = set()
    cap, truncated = writer.caps.nodes_per_call, False
    stack = [root for root in roots if root is not None]
    stack.reverse()
    while stack:
        node = stack.pop()
        facts = nodes.known(node)
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
            other.number for next_node, _ in following if next_node is not None and (other := nodes.known(next_node))
        )
    return Walk(tuple(met.values()), frozenset(entered), truncated)


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
