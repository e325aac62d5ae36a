"""Gradients that grow from layer to layer, through weights that one statement of the program drew too large."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import RESHAPES, below, op, operands
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.tensors.value_origins import Origin, excess_of_start, written_last
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Record

LEAST_GAIN: Final = 0.4
"""Of what `excess_of_start` takes for extreme: a layer that doubles what it is given. Usual starts keep it."""
_PRODUCTS: Final = frozenset({"@", "matmul", "mm", "bmm", "spmm"})
_LEAST: Final = 3
"""Calls in which it grows; layers, one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Layers whose weights a statement wrote. norms: of the gradients they were handed, in the first call, in order."""

    site: int
    weights: tuple[int, ...]
    calls: tuple[int, ...]
    norms: tuple[float, ...]


def is_product(kind: str) -> bool:
    """A node's type is that of a product of matrices."""
    return kind.startswith(("Addmm", "Mm", "Bmm", "Mv"))


def weight_of(record: Record, node: Node) -> int | None:
    """The one matrix among the leaves that a product takes, as it is or turned round; None if it takes none, or two."""
    known = _weights(record)
    if node.node not in known:
        known[node.node] = _found_weight(record, node)
    return known[node.node]


@table
def _weights(_record: Record) -> dict[int, int | None]:
    """What `weight_of` has found, by node: two rules ask for each product."""
    return {}


def _found_weight(record: Record, node: Node) -> int | None:
    index, found = lookup(record), set[int]()
    for edge in index.edges_of[node.node]:
        below = None if edge.to_node is None else index.nodes[edge.to_node]
        while below is not None and below.variable is None and op(below) in RESHAPES:
            after = [one.to_node for one in index.edges_of[below.node] if one.to_node is not None]
            below = index.nodes[after[0]] if len(after) == 1 else None
        if below is not None and below.variable is not None and len(index.tensors[below.variable].shape or ()) > 1:
            found.add(below.variable)
    return found.pop() if len(found) == 1 else None


def grown_layers(record: Record, growth: float) -> list[Growth]:
    """One for each statement that drew the weights of four layers and more, if gradients grow past a limit in them."""
    first = min((call.moment_before for call in record.backward_calls), default=0)
    groups: dict[int, dict[int, list[tuple[int, float, int]]]] = {}
    for weight, rows in _handed(record).items():
        written = written_last(record, weight, first)
        if written is not None and excess_of_start(record, weight, first) > LEAST_GAIN:
            for call, position, norm in rows:
                groups.setdefault(written.site, {}).setdefault(call, []).append((position, norm, weight))
    found: list[Growth] = []
    for site, calls in groups.items():
        grown = {call: sorted(rows) for call, rows in sorted(calls.items()) if _grows(sorted(rows), growth)}
        if len(grown) >= _LEAST:
            rows = next(iter(grown.values()))
            norms, weights = tuple(norm for _at, norm, _weight in rows), tuple(weight for _at, _norm, weight in rows)
            found.append(Growth(site=site, weights=weights, calls=tuple(grown), norms=norms))
    return found


def through_statements(record: Record) -> dict[tuple[int, int, str], list[float]]:
    """The norms of the gradients that a statement's products of matrices got, in order, by call, site and kind.

    By kind, since a turn may add the product of its input, `h @ w + layer(x)`, which gets the same gradient. Of a
    statement in no loop, as a cell's method is, by the weight that it multiplies with, or with what has no history.
    """
    index = lookup(record)
    found: dict[tuple[int, int, str], list[tuple[int, float]]] = {}
    for node in nodes_like(record, is_product):
        if node.site is None:
            continue
        which = node.type
        if node.site not in _repeated(record):
            weight = weight_of(record, node)
            if weight is None and None not in operands(record, node.node):
                continue
            which = f"{node.type} {weight}"
        for row in index.passes_of_node[node.node]:
            measured = row.grad_output
            if row.position is not None and measured is not None and measured.norm is not None:
                found.setdefault((row.call, node.site, which), []).append((row.position, measured.norm))
    return {place: _turns([norm for _position, norm in sorted(rows)]) for place, rows in sorted(found.items())}


def _turns(norms: list[float]) -> list[float]:
    """One norm a turn: two products of one sum, `h @ w + x @ u`, get the same gradient."""
    pairs = zip(norms[::2], norms[1::2], strict=False)
    return norms[::2] if len(norms) % 2 == 0 and all(one == other for one, other in pairs) else norms


@table
def _repeated(record: Record) -> frozenset[int]:
    """Statements inside a loop: of others several products are several layers."""
    return frozenset(site.site for site in record.sites if site.loop_line is not None)


def constant_factor(record: Record, site: int) -> Origin | None:
    """The one square matrix without a history by which a statement multiplies what was computed, and who made it.

    None: there is none, or another one too.
    """
    index, found = lookup(record), set[int]()
    for row in record.operations:
        if row.statement == site and row.function.rpartition(".")[2] in _PRODUCTS and row.requires_grad:
            plain = [one for one in row.operands if one not in index.node_of and not _is_tracked(record, one)]
            shapes = {one: index.tensors[one].shape or () for one in plain}
            if row.inner or any(one in index.node_of for one in row.operands):
                found |= {one for one, shape in shapes.items() if len(shape) > 1 and shape[-1] == shape[-2]}
    made = index.tensors[found.pop()] if len(found) == 1 else None
    return None if made is None or made.site is None else Origin(tensor=made.tensor, site=made.site)


def _is_tracked(record: Record, tensor: int) -> bool:
    """A leaf that ever requires grad."""
    return any(row.requires_grad for row in lookup(record).snapshots_of[tensor])


def are_in_turn(record: Record, site: int, call: int, turns: int) -> bool:
    """The products that a call walks of a statement are computed from each other, one a turn.

    Those of two terms of a loss, each through its own layers, stand beside each other.
    """
    index, depth = lookup(record), dict[int, int]()
    products = {node.node for node in nodes_like(record, is_product) if node.site == site}
    walked = {node for node in products if any(row.call == call for row in index.passes_of_node[node])}
    under = {node: {one for one in below(record, node) if one in walked and one != node} for node in walked}
    for node in sorted(walked, key=lambda one: len(under[one])):
        depth[node] = 1 + max((depth[one] for one in under[node]), default=0)
    return max(depth.values(), default=0) >= turns - 1


def _handed(record: Record) -> dict[int, list[tuple[int, int, float]]]:
    """The norms of the gradients that the products with a weight were handed: (call, position, norm), by weight."""
    found: dict[int, list[tuple[int, int, float]]] = {}
    for node in nodes_like(record, is_product):
        weight = weight_of(record, node)
        for row in lookup(record).passes_of_node[node.node] if weight is not None else ():
            norm = None if row.grad_output is None else row.grad_output.norm
            if weight is not None and row.position is not None and norm is not None:
                found.setdefault(weight, []).append((row.call, row.position, norm))
    return found


def _grows(rows: list[tuple[int, float, int]], growth: float) -> bool:
    """Each weight stands in one layer, and the gradient grows in nearly each, past the limit."""
    norms = [norm for _position, norm, _weight in rows]
    if len(rows) <= _LEAST or len({weight for _at, _norm, weight in rows}) < len(rows) or not norms[0]:
        return False
    rises = sum(after > before for before, after in pairwise(norms))
    return norms[-1] > growth * norms[0] and 4 * rises >= 3 * (len(norms) - 1)
