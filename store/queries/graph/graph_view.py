"""What is seen of a run's autograd graph: below a root, folded by module call, as it was at a moment, capped.

1. The graph is read in a few numbers per node; only boxes that are shown are read in full.
2. What does not fit is refused with its counts where the caller chose the depth, else counted in `hidden`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa

from backprobe.show.drawing import module_boxes
from backprobe.show.drawing.module_boxes import Ops
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.graph import graph_search
from store.queries.graph.graph_answers import GraphView
from store.queries.graph.graph_badges import Norms, norms_of
from store.queries.graph.graph_boxes import Fold, build_graph, levels_of, states_of
from store.queries.graph.graph_part import in_pieces
from store.queries.graph.graph_repeats import Repeats
from store.queries.history.curves import TooMuch
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

MOST_NODES: Final = 50_000
"""Below one root: at this bound reading and folding take about a second of a core."""

_n: Final = tables.node
_p: Final = tables.node_pass
_e: Final = tables.edge
_t: Final = tables.tensor
_k: Final = tables.backward_call
_c: Final = tables.module_call


class NoSuchRoot(Exception):
    """The record has no such call, tensor or node; the message says what there is. The caller names another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphAsked:
    """Which part of a graph.

    Attributes:
        root: `call:0`, `tensor:4` or `node:12`; None: the last backward call that was walked by then.
        moment: As it was then; None: at the end.
        depth: Levels of module calls that are open; None: as many as fit.
        opened: Module calls that are open beside. instances: First nodes of instances of patterns that are.
        repeats: Equal closed calls that follow each other are one box, and patterns where there are many boxes;
            otherwise one each.
        most: Boxes at most, leaves that need no gradient apart.
        focus: Only the nodes of this module call.
        find: A word that nodes are searched by.
    """

    root: str | None = None
    moment: int | None = None
    depth: int | None = None
    opened: Sequence[int] = ()
    repeats: bool = True
    most: int = 400
    instances: Sequence[int] = ()
    focus: int | None = None
    find: str | None = None


def graph_view(transaction: Transaction, run: RunRow, asked: GraphAsked) -> GraphView:
    """Load the graph below a root.

    Raises:
        NoSuchRoot: there is no such root, or no such call to open.
        TooMuch: more than `MOST_NODES`, or more boxes than `most` at the depth that was asked for.
    """
    key = run.key
    root = None if key is None or run.record.live else _root(transaction, key, asked)
    if key is None or root is None:
        return _nothing(run, asked)
    kind, number = root
    rows = _nodes(transaction, key, kind, number)
    calls = _calls(transaction, key)
    ops = _ops(transaction, key, rows, {call: row.parent for call, row in calls.items()})
    unknown = [call for call in (*asked.opened, asked.focus) if call is not None and call not in ops.parents]
    if unknown:
        raise NoSuchRoot(f"There is no module call {unknown[0]}; the run has {len(ops.parents)} of them.")
    if asked.focus is not None:
        ops = module_boxes.part_of_call(ops, asked.focus)
        rows = {node: rows[node] for node in ops.call_of}
        asked = replace(asked, opened=(*asked.opened, asked.focus))
    marked = _find_root_tensors(transaction, key, kind, number)
    equal = Repeats(
        ops=ops,
        rows=rows,
        chains={call: row.chain for call, row in calls.items()},
        held=states_of(transaction, key, rows, asked.moment),
        levels=levels_of(transaction, run, key),
        roots=marked,
    )
    norms: Norms = norms_of(transaction, key, number, asked.moment) if kind == "call" else {}
    fold, depth, hidden = _choose_fold(equal, asked, norms)
    boxes, edges = build_graph(transaction, run, key, fold)
    matches, count = graph_search.matches(transaction, key, fold, asked.find)
    return GraphView(
        boxes=boxes,
        edges=edges,
        call=number + 1 if kind == "call" else None,
        root=f"{kind}:{number}",
        moment=asked.moment,
        depth=depth,
        most_depth=module_boxes.deepest(ops),
        nodes=len(rows),
        hidden={"nodes": hidden} if hidden else {},
        truncated=run.record.truncated or (kind == "call" and _is_truncated(transaction, key, number)),
        focus=asked.focus,
        matches=matches,
        match_count=count,
    )


def _nothing(run: RunRow, asked: GraphAsked) -> GraphView:
    if asked.root is not None:
        raise NoSuchRoot(f"There is no {asked.root.replace(':', ' ')}: the run has no graph to be seen.")
    none: dict[str, Any] = {"boxes": (), "edges": (), "call": None, "root": None, "hidden": {}}
    return GraphView(**none, moment=asked.moment, depth=0, most_depth=0, nodes=0, truncated=run.record.truncated)


def _root(transaction: Transaction, key: RunKey, asked: GraphAsked) -> tuple[str, int] | None:
    """Kind and number of the root; None: no backward call was walked."""
    if asked.root is None:
        last: Any = sa.select(sa.func.max(_p.c.call)).where(at_key(_p, key))
        if asked.moment is not None:
            begun = sa.select(_k.c.call).where(at_key(_k, key), _k.c.moment_before <= asked.moment)
            last = last.where(_p.c.call.in_(begun))
        call = transaction.execute(last).scalar()
        return None if call is None else ("call", call)
    kind, _, text = asked.root.partition(":")
    number = int(text)
    table, column = {"call": (_k, _k.c.call), "tensor": (_t, _t.c.tensor), "node": (_n, _n.c.node)}[kind]
    there = sa.select(column).where(at_key(table, key), column == number)
    if number >= 2**31 or transaction.execute(there).first() is None:
        count = transaction.execute(sa.select(sa.func.count()).where(at_key(table, key))).scalar_one()
        raise NoSuchRoot(f"There is no {_WORDS[kind]} {text[:20]}; the run has {count} of them.")
    return kind, number


_WORDS: Final = {"call": "backward call", "tensor": "tensor", "node": "node"}


def _select_descendants(key: RunKey, kind: str, number: int, *, on_sqlite: bool) -> Any:
    """Select the numbers of the nodes below a root."""
    if kind == "call":
        return sa.select(_p.c.node).where(at_key(_p, key), _p.c.call == number)
    start = sa.select(_n.c.node).where(at_key(_n, key), _n.c.node == number)
    if kind == "tensor":
        made = sa.select(_t.c.node).where(at_key(_t, key), _t.c.tensor == number, _t.c.node.is_not(None))
        start = sa.select(_n.c.node).where(at_key(_n, key), sa.or_(_n.c.node.in_(made), _n.c.variable == number))
    reached = start.cte("reached", recursive=True)
    step = sa.select(_e.c.to_node).where(at_key(_e, key), _e.c.node == reached.c.node, _e.c.to_node.is_not(None))
    if not on_sqlite:
        # Else it may read all edges of the run for each level: a chain of 15,000 nodes took 71 s.
        edges = step.offset(0).lateral("edges")
        step = sa.select(edges.c.to_node).select_from(reached).join(edges, sa.true())
    return sa.select(reached.union(step).c.node)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A node in a few numbers; `tensor`: the leaf that it adds to, or the first one that it made."""

    node: int
    module_call: int | None
    variable: int | None
    saved_bytes: int
    freed_by: int | None
    died: int | None
    tensor: int | None
    seq: int | None
    type: str


def _nodes(transaction: Transaction, key: RunKey, kind: str, number: int) -> dict[int, _Node]:
    """Load the nodes below the root, by number. Tensors are read apart: no index serves a join by node or leaf."""
    names = ("node", "module_call", "variable", "saved_bytes", "freed_by", "died", "seq", "type")
    query = _select_descendants(key, kind, number, on_sqlite=transaction.dialect.name == "sqlite").limit(2 * MOST_NODES)
    below = sorted(set(transaction.execute(query).scalars()))
    if len(below) > MOST_NODES:
        raise TooMuch(
            f"more than {MOST_NODES:,} nodes below {_WORDS[kind]} {number}; {MOST_NODES:,} are the most: ask for"
            " another `root`, nearer to the leaves"
        )
    rows: list[Any] = []
    for piece in in_pieces(below):  # a subquery in its place is planned as if it had one row, where statistics are old
        chosen = sa.select(*[_n.c[name] for name in names]).where(at_key(_n, key), *_in_piece(_n.c.node, piece))
        rows += transaction.execute(chosen.order_by(_n.c.node)).all()
    outputs: Any = sa.select(_t.c.node, _t.c.tensor).where(at_key(_t, key), _t.c.node.is_not(None))
    made: dict[int, int] = {}
    for row in transaction.execute(outputs.order_by(_t.c.output_nr, _t.c.tensor)):
        made.setdefault(row.node, row.tensor)
    return {
        row.node: _Node(
            node=row.node,
            module_call=row.module_call,
            variable=row.variable,
            saved_bytes=row.saved_bytes,
            freed_by=row.freed_by,
            died=row.died,
            tensor=made.get(row.node) if row.variable is None else row.variable,
            seq=row.seq,
            type=row.type,
        )
        for row in rows
    }


def _in_piece(column: sa.ColumnElement[int], piece: Sequence[int]) -> tuple[sa.ColumnElement[bool], ...]:
    """One of these numbers, ascending; their bounds keep an index from the others of the run, piece after piece."""
    return column >= piece[0], column <= piece[-1], in_numbers(column, piece)


def _calls(transaction: Transaction, key: RunKey) -> dict[int, Any]:
    """Parent and chain of each module call."""
    query = sa.select(_c.c.module_call, _c.c.parent, _c.c.chain).where(at_key(_c, key))
    return {row.module_call: row for row in transaction.execute(query)}


def _ops(transaction: Transaction, key: RunKey, rows: Mapping[int, _Node], parents: Mapping[int, int | None]) -> Ops:
    edges: list[tuple[int, int]] = []
    for piece in in_pieces(list(rows)):
        query: Any = sa.select(_e.c.node, _e.c.to_node).where(at_key(_e, key), *_in_piece(_e.c.node, piece))
        found = transaction.execute(query.where(_e.c.to_node.is_not(None)).order_by(_e.c.node, _e.c.slot))
        edges += [(row.node, row.to_node) for row in found if row.to_node in rows]
    return Ops(
        call_of={node: row.module_call if row.variable is None else None for node, row in rows.items()},
        edges=edges,
        accumulators={node for node, row in rows.items() if row.variable is not None},
        parents=parents,
    )


def _find_root_tensors(transaction: Transaction, key: RunKey, kind: str, number: int) -> set[int]:
    """Tensors that are roots."""
    if kind != "call":
        return {number} if kind == "tensor" else set()
    query = sa.select(_k.c.roots).where(at_key(_k, key), _k.c.call == number)
    roots: Sequence[Mapping[str, Any]] = transaction.execute(query).scalar() or ()
    return {root["tensor"] for root in roots if root["tensor"] is not None}


def _is_truncated(transaction: Transaction, key: RunKey, call: int) -> bool:
    query = sa.select(_k.c.truncated).where(at_key(_k, key), _k.c.call == call)
    return bool(transaction.execute(query).scalar())


def _choose_fold(equal: Repeats, asked: GraphAsked, norms: Norms) -> tuple[Fold, int, int]:
    """Choose the depth of the fold; return the fold, the depth, and how many nodes are not shown."""
    ops, most = equal.ops, asked.most

    def count(found: Mapping[int, int | None]) -> int:
        plain = module_boxes.boxes(found)
        return plain if plain <= most or not asked.repeats else equal.count(found)

    fits = module_boxes.fitting(ops, most, asked.opened, count=count)
    depth = (0 if fits is None else fits) if asked.depth is None else min(asked.depth, module_boxes.deepest(ops))
    found = module_boxes.fold_nodes(ops, depth, asked.opened)
    shared = equal.group_into_boxes(found, repeats_too=asked.repeats, opened=asked.instances)
    boxes = shared.count
    if asked.depth is not None and boxes > most:
        way = "ask for a `root` nearer to the leaves" if fits is None else f"depth {fits} fits"
        raise TooMuch(f"{boxes:,} boxes at depth {asked.depth}; {most:,} are asked for at most: {way}")
    kept: defaultdict[str, list[int]] = defaultdict(list)
    order = module_boxes.from_the_root(ops, [node for node, row in equal.rows.items() if row.tensor in equal.roots])
    for node in order:
        kept[shared.ids[node]].append(node)
    shown = order if boxes <= most else [node for nodes in list(kept.values())[:most] for node in nodes]
    fold = Fold(equal=equal, found=found, shared=shared, shown=shown, moment=asked.moment, norms=norms)
    return fold, depth, len(order) - len(shown)
