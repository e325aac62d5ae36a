"""The record's rows by what they are asked for: by id, by tensor, by call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import (
        BackwardCall,
        Binding,
        Edge,
        InplaceEvent,
        LeafGrad,
        Moment,
        Node,
        NodePass,
        Record,
        Saved,
        Site,
        Snapshot,
        Source,
        Tensor,
        TensorNode,
    )

R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


class Lookup:
    """Rows of one record by their keys; a key without rows gives an empty list in the plural ones.

    Each index is made when it is first asked for: on a record of 100,000 snapshots all of them took a third of the time
    of a judgement, and most records need only some.
    """

    def __init__(self, record: Record) -> None:
        self._record = record

    @cached_property
    def sources(self) -> Mapping[int, Source]:
        """Sources by number."""
        return {row.source: row for row in self._record.sources}

    @cached_property
    def sites(self) -> Mapping[int, Site]:
        """Sites by number."""
        return {row.site: row for row in self._record.sites}

    @cached_property
    def moments(self) -> Mapping[int, Moment]:
        """Moments by number."""
        return {row.moment: row for row in self._record.moments}

    @cached_property
    def tensors(self) -> Mapping[int, Tensor]:
        """Tensors by number."""
        return {row.tensor: row for row in self._record.tensors}

    @cached_property
    def nodes(self) -> Mapping[int, Node]:
        """Nodes by number."""
        return {row.node: row for row in self._record.nodes}

    @cached_property
    def calls(self) -> Mapping[int, BackwardCall]:
        """Backward calls by number."""
        return {row.call: row for row in self._record.backward_calls}

    @cached_property
    def node_of(self) -> Mapping[int, TensorNode]:
        """The node that made a tensor, by tensor."""
        return {row.tensor: row for row in self._record.tensor_nodes}

    @cached_property
    def bindings_of(self) -> Mapping[int, list[Binding]]:
        """Bindings of a tensor, in order."""
        return _grouped(self._record.bindings, "tensor")

    @cached_property
    def snapshots_of(self) -> Mapping[int, list[Snapshot]]:
        """Snapshots of a tensor, in order of moments."""
        return _grouped(self._record.snapshots, "tensor")

    @cached_property
    def leaf_grads_of(self) -> Mapping[int, list[LeafGrad]]:
        """What happened to a leaf's `.grad`, in order."""
        return _grouped(self._record.leaf_grads, "tensor")

    @cached_property
    def inplace_of(self) -> Mapping[int, list[InplaceEvent]]:
        """In-place changes of a tensor, in order."""
        return _grouped(self._record.inplace_events, "tensor")

    @cached_property
    def edges_of(self) -> Mapping[int, list[Edge]]:
        """Edges that leave a node."""
        return _grouped(self._record.edges, "node")

    @cached_property
    def saved_of(self) -> Mapping[int, list[Saved]]:
        """What a node saved."""
        return _grouped(self._record.saved, "node")

    @cached_property
    def passes_of_call(self) -> Mapping[int, list[NodePass]]:
        """Nodes that a backward call met."""
        return _grouped(self._record.node_passes, "call")

    @cached_property
    def passes_of_node(self) -> Mapping[int, list[NodePass]]:
        """Backward calls that met a node, in order."""
        return _grouped(self._record.node_passes, "node")

    @cached_property
    def accumulator_of(self) -> Mapping[int, int]:
        """The node that adds to a leaf's `.grad`, by leaf."""
        return {row.variable: row.node for row in self._record.nodes if row.variable is not None}

    @cached_property
    def nodes_of_type(self) -> Mapping[str, list[Node]]:
        """Nodes by type."""
        return _grouped(self._record.nodes, "type")


@table
def lookup(record: Record) -> Lookup:
    """All indexes of one record."""
    return Lookup(record)


def nodes_like(record: Record, wanted: Callable[[str], object]) -> list[Node]:
    """The nodes whose type is wanted, in the record's order; each type is asked about once."""
    groups = [rows for kind, rows in lookup(record).nodes_of_type.items() if wanted(kind)]
    return groups[0] if len(groups) == 1 else sorted((row for rows in groups for row in rows), key=_number)


def _number(node: Node) -> int:
    return node.node


@table
def bindings_named(record: Record) -> Mapping[str, list[Binding]]:
    """The bindings of each name, in order."""
    return _grouped(record.bindings, "name")


def _grouped(rows: Sequence[R], key: str) -> Mapping[Any, list[R]]:
    """Rows by one of their fields. Written for 100,000 rows: a key function in Python takes twice as long."""
    groups: defaultdict[Any, list[R]] = defaultdict(list)
    for value, row in zip(map(attrgetter(key), rows), rows, strict=True):
        groups[value].append(row)
    return _ListsByKey(groups)


class _ListsByKey(dict[K, list[R]]):
    """A missing key reads as an empty list and is not stored."""

    def __missing__(self, key: K) -> list[R]:
        return []
