"""The autograd graph of one backward call as boxes and edges: what it walked, and what each part still holds.

1. One box per node; an AccumulateGrad is drawn as its leaf. A leaf that needs no gradient has no node in autograd and
   is drawn too, where the record knows it: a node saved it, or a named result was computed from it.
2. Edges point the way gradients flow: from the loss down to the leaves.
3. Past `most` boxes the rest is counted in `hidden`, never dropped in silence.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import Lookup, lookup
from backprobe.rules.framework.tables import shared_tables
from backprobe.show.amounts import format_bytes, format_shape
from backprobe.show.drawing.untracked_leaves import untracked_leaves
from backprobe.show.tensor_table import name_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from backprobe.record import BackwardCall, Node, Record

Kind = Literal["leaf", "leaf-no-grad", "non-leaf", "node"]
"""A leaf that requires grad; one that needs none; a node whose result has a name; any other node."""

State = Literal["held", "freed", "nothing", "leaf"]
"""What a node saved is held; was freed; it saved nothing; leaves save nothing either."""

Grad = Literal["present", "none", "not-read"]

MOST_BOXES: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One box of the drawing.

    Attributes:
        id: Unique in the graph: `n12` for a node, `t3` for a tensor.
        label: The name of the tensor, or the type of the node; detail: a second line.
        line: Where it was made; None where that is not known.
        state: What is left of it; grad: what `.grad` of the tensor holds, None for a node without a named tensor.
        title: All of it in words, for a tooltip.
    """

    id: str
    kind: Kind
    label: str
    detail: str
    title: str
    state: State
    line: int | None = None
    tensor: int | None = None
    node: int | None = None
    grad: Grad | None = None
    retains_grad: bool = False
    is_root: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """An edge, in the direction of the gradient; `wanted` is false where autograd sends none."""

    start: str
    end: str
    wanted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What a drawing shows.

    Attributes:
        call: The backward call whose graph it is, counted from 1; None if there was none.
        hidden: What is not drawn, by kind: "nodes" beyond the cap.
        truncated: The record itself was cut: there may be more that it does not know.
    """

    boxes: tuple[Box, ...] = ()
    edges: tuple[Arrow, ...] = ()
    call: int | None = None
    hidden: dict[str, int] = field(default_factory=dict[str, int])
    truncated: bool = False


def graph_of(record: Record, *, call: int | None = None, most: int = MOST_BOXES) -> Graph:
    """Build the graph of one backward call.

    Args:
        call: Its number in the record (from 0); None: the last one that was walked.
        most: Boxes drawn at most.

    Raises:
        KeyError: there is no such call.
    """
    with shared_tables(record):
        return _graph_of(record, call, most)


def _graph_of(record: Record, call: int | None, most: int) -> Graph:
    index = lookup(record)
    walked = [row for row in record.backward_calls if index.passes_of_call[row.call]]
    if call is None and not walked:
        return Graph(truncated=record.truncated)
    chosen = index.calls[call] if call is not None else walked[-1]
    met = reaches(record)[chosen.call].met
    order = _from_the_root(index, chosen, met)
    kept = order[:most]
    drawing = _Drawing(record, index, set(kept), {root.tensor for root in chosen.roots if root.tensor is not None})
    for node in kept:
        drawing.add(index.nodes[node])
    hidden = {"nodes": len(order) - len(kept)} if len(order) > len(kept) else {}
    return Graph(
        boxes=tuple(drawing.boxes.values()),
        edges=tuple(drawing.edges),
        call=record.backward_calls.index(chosen) + 1,
        hidden=hidden,
        truncated=record.truncated or chosen.truncated,
    )


def boxes_of(record: Record, nodes: Collection[int], roots: Collection[int]) -> tuple[list[Box], list[Arrow]]:
    """Build the boxes and edges of some nodes, with the leaves that need no gradient and go into them.

    Args:
        record: It may be a part: these nodes with what they saved, their tensors, and what those were computed from.
        nodes: Which nodes, in the order of drawing.
        roots: Tensors that are marked as roots.
    """
    with shared_tables(record):
        index = lookup(record)
        drawing = _Drawing(record, index, set(nodes), roots)
        for node in nodes:
            drawing.add(index.nodes[node])
        return list(drawing.boxes.values()), drawing.edges


def _from_the_root(index: Lookup, call: BackwardCall, met: frozenset[int]) -> list[int]:
    """Order the nodes that the call met, nearest to its roots first."""
    fed = {edge.to_node for node in met for edge in index.edges_of[node]}
    roots = {made.node for root in call.roots if root.tensor is not None and (made := index.node_of.get(root.tensor))}
    starts = sorted((met - fed) | (roots & met), reverse=True)
    seen, order, waiting = set(starts), [], deque(starts)
    while waiting:
        node = waiting.popleft()
        order.append(node)
        for edge in index.edges_of[node]:
            if edge.to_node is not None and edge.to_node in met and edge.to_node not in seen:
                seen.add(edge.to_node)
                waiting.append(edge.to_node)
    return [*order, *sorted(met - seen)]


class _Drawing:
    """Collects boxes and edges, node by node."""

    def __init__(self, record: Record, index: Lookup, kept: set[int], roots: Collection[int]) -> None:
        self.boxes: dict[str, Box] = {}
        self.edges: list[Arrow] = []
        self._index, self._kept, self._roots = index, kept, roots
        self._places = {row.call: at for at, row in enumerate(record.backward_calls, 1)}
        self._made = {row.node: row.tensor for row in reversed(record.tensor_nodes)}
        self._untracked = untracked_leaves(record, kept)

    def add(self, node: Node) -> None:
        """Add the box of one node, its edges, and the untracked leaves that go into it."""
        box = self._leaf(node.variable) if node.variable is not None else self._node(node)
        self.boxes[box.id] = box
        for edge in self._index.edges_of[node.node]:
            if edge.to_node is not None and edge.to_node in self._kept:
                self.edges.append(Arrow(start=box.id, end=self._id(edge.to_node)))
        for tensor in self._untracked.get(node.node, ()):
            leaf = self._leaf(tensor)
            self.boxes.setdefault(leaf.id, leaf)
            self.edges.append(Arrow(start=box.id, end=leaf.id, wanted=False))

    def _id(self, node: int) -> str:
        variable = self._index.nodes[node].variable
        return f"n{node}" if variable is None else f"t{variable}"

    def _leaf(self, tensor: int) -> Box:
        row, history = self._index.tensors[tensor], self._index.snapshots_of[tensor]
        name = name_of(self._index, tensor) or "(unnamed)"
        requires = not history or history[-1].requires_grad
        grad: Grad = history[-1].grad if history else "not-read"
        line = None if row.site is None else self._index.sites[row.site].line
        facts = [format_shape(row.shape), "requires grad" if requires else "needs no grad"]
        if requires:
            facts.append({"present": "has a gradient", "none": "grad None", "not-read": "grad not read"}[grad])
        return Box(
            id=f"t{tensor}",
            kind="leaf" if requires else "leaf-no-grad",
            label=name,
            detail=f"{format_shape(row.shape)} {'leaf' if requires else 'leaf, needs no grad'}",
            title=_title(f"{name}: leaf", facts, line),
            state="leaf",
            line=line,
            tensor=tensor,
            grad=grad,
        )

    def _node(self, node: Node) -> Box:
        tensor = self._made.get(node.node)
        name = name_of(self._index, tensor) if tensor is not None else None
        history = self._index.snapshots_of[tensor] if tensor is not None else []
        site = node.site if node.site is not None else None
        line = None if site is None else self._index.sites[site].line
        state, said = self._state(node)
        named = name is not None and bool(history)
        return Box(
            id=f"n{node.node}",
            kind="non-leaf" if named else "node",
            label=f"{name}" if named else node.type,
            detail=f"{node.type} \u00b7 {said}" if named else said,
            title=_title(f"{name}: not a leaf, made by {node.type}" if named else node.type, [said], line),
            state=state,
            line=line,
            tensor=tensor,
            node=node.node,
            grad=history[-1].grad if named else None,
            retains_grad=bool(named and history[-1].retains_grad),
            is_root=tensor in self._roots and tensor is not None,
        )

    def _state(self, node: Node) -> tuple[State, str]:
        if not self._index.saved_of[node.node] and not node.saved_bytes:
            return "nothing", "saves nothing"
        if node.freed_by is None:
            return "held", f"held, {format_bytes(node.saved_bytes)}"
        return "freed", f"freed by backward {self._places.get(node.freed_by, node.freed_by + 1)}"


def _title(head: str, facts: list[str], line: int | None) -> str:
    where = "" if line is None else f" (line {line})"
    return f"{head}{where}; {', '.join(facts)}"
