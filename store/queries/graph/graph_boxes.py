"""The boxes and edges of a graph that is seen: nodes in full, closed module calls in sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.show.amounts import sized
from backprobe.show.drawing.graph import Arrow, Box, boxes_of
from backprobe.show.drawing.module_boxes import Ops, chains
from backprobe.show.drawing.repeated_calls import masked
from store import tables
from store.database.in_clause import among
from store.database.session import Transaction
from store.queries.graph.graph_answers import GraphBox, GraphEdge
from store.queries.graph.graph_part import in_pieces, part_of
from store.queries.graph.graph_repeats import Levels, Repeats, Rows
from store.queries.tensors.tensor_filter import same_key
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

_c: Final = tables.module_call
_m: Final = tables.module
_s: Final = tables.site
_k: Final = tables.backward_call
_f: Final = tables.finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A graph, and what of it shares a box.

    Attributes:
        equal: The graph, with what its boxes tell.
        found: Of each node the closed call in whose box it lies.
        runs: Of the first of several equal calls that share a box, all of them.
        shown: Nodes whose boxes are drawn, in order.
        moment: As it was then; None: at the end.
    """

    equal: Repeats
    found: Mapping[int, int | None]
    runs: Mapping[int, tuple[int, ...]]
    shown: Sequence[int]
    moment: int | None


def drawn(
    transaction: Transaction, run: RunRow, key: RunKey, fold: Fold
) -> tuple[tuple[GraphBox, ...], tuple[GraphEdge, ...]]:
    """Boxes in order of the nodes shown, and the edges among them."""
    rows, found, shown = fold.equal.rows, fold.found, fold.shown
    alone = [node for node in shown if found[node] is None]
    part = part_of(transaction, run, key, alone, fold.moment, _unfreed(transaction, key, rows, fold.moment))
    single, arrows = boxes_of(part, alone, fold.equal.roots)
    first = {call: of for of, calls in fold.runs.items() for call in calls}
    boxes: dict[str, GraphBox] = {}
    groups: defaultdict[int, list[int]] = defaultdict(list)
    ids: dict[int, str] = {}
    for node in shown:
        call, row = found[node], rows[node]
        ids[node] = f"n{node}" if row.variable is None else f"t{row.variable}"
        if call is not None:
            of = first.get(call, call)
            ids[node] = f"c{of}x{len(fold.runs[of])}" if of in fold.runs else f"c{of}"
            groups[of].append(node)
    closed = _calls(transaction, key, fold, groups)
    known = {box.id: box for box in single}
    for node in shown:
        name = ids[node]
        if name not in boxes:
            boxes[name] = closed[name] if name in closed else _single(known.pop(name), node, fold.equal)
    for box in known.values():  # leaves that need no gradient: autograd has no node for them
        boxes.setdefault(box.id, _single(box, None, fold.equal))
    return tuple(boxes.values()), tuple(_edges(fold.equal.ops, ids, arrows))


def _edges(ops: Ops, ids: Mapping[int, str], arrows: Sequence[Arrow]) -> Iterable[GraphEdge]:
    counted = Counter((ids[start], ids[end]) for start, end in ops.edges if start in ids and end in ids)
    for (start, end), count in counted.items():
        if start != end:
            yield GraphEdge(start=start, end=end, wanted=True, count=count)
    for arrow in arrows:
        if not arrow.wanted:
            yield GraphEdge(start=arrow.start, end=arrow.end, wanted=False, count=1)


def _unfreed(transaction: Transaction, key: RunKey, rows: Rows, moment: int | None) -> set[int]:
    """Nodes that a call freed later than the moment."""
    if moment is None:
        return set()
    over = sa.func.coalesce(_k.c.moment_after, _k.c.moment_before + 1)
    query = sa.select(_k.c.call).where(at_key(_k, key), over > moment)
    later = set(transaction.execute(query).scalars())
    return {node for node, row in rows.items() if row.freed_by in later}


def states_of(transaction: Transaction, key: RunKey, rows: Rows, moment: int | None) -> dict[int, str]:
    """held, freed or nothing of each node, as a drawing says it; `moment`: as it was then, None: at the end."""
    unfreed = _unfreed(transaction, key, rows, moment)
    return {node: _holds(row, moment, unfreed=node in unfreed) for node, row in rows.items()}


def _holds(row: Any, moment: int | None, *, unfreed: bool) -> str:
    if not row.saved_bytes:
        return "nothing"
    gone = row.died is not None and (moment is None or row.died <= moment)
    return "held" if unfreed or (row.freed_by is None and not gone) else "freed"


def levels_of(transaction: Transaction, run: RunRow, key: RunKey) -> Levels:
    """Findings about tensors by level, suppressed ones apart."""
    query = (
        sa.select(_f.c.tensor, _f.c.level, sa.func.count().label("times"))
        .where(_f.c.run_id == run.run_id, _f.c.attempt == key.attempt, _f.c.gone_at.is_(None))
        .where(_f.c.tensor.is_not(None), _f.c.suppressed.is_(None))
        .group_by(_f.c.tensor, _f.c.level)
    )
    found: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for row in transaction.execute(query):
        found[row.tensor][row.level] = row.times
    return found


def _single(box: Box, node: int | None, equal: Repeats) -> GraphBox:
    row = None if node is None else equal.rows[node]
    state = "nothing" if node is None else equal.held[node]
    return GraphBox(
        **asdict(box),
        module_call=None if row is None else row.module_call,
        nodes=0 if node is None else 1,
        held_nodes=int(state == "held"),
        freed_nodes=int(state == "freed"),
        held_bytes=row.saved_bytes if row is not None and state == "held" else 0,
        calls=0,
        times=1,
        instances=(),
        noted=(),
        findings=dict(equal.levels.get(box.tensor, {})) if box.tensor is not None else {},
    )


def _calls(
    transaction: Transaction, key: RunKey, fold: Fold, groups: Mapping[int, Sequence[int]]
) -> dict[str, GraphBox]:
    """The boxes of closed module calls by id; `groups`: nodes of each, of equal ones under the first."""
    inner: defaultdict[int, set[int]] = defaultdict(set)
    for call, chain in chains(fold.equal.ops).items():
        for outer in chain:
            inner[outer].add(call)
    told: dict[int, Any] = {}
    for piece in in_pieces(sorted(groups)):
        query = (
            sa.select(_c.c.module_call, _c.c.chain, _m.c["class"].label("cls"), _s.c.line)
            .select_from(_c)
            .outerjoin(_m, sa.and_(same_key(_m, _c), _m.c.module == _c.c.module))
            .outerjoin(_s, sa.and_(same_key(_s, _c), _s.c.site == _c.c.site))
            .where(at_key(_c, key), among(_c.c.module_call, piece))
        )
        told |= {row.module_call: row for row in transaction.execute(query)}
    found = (
        _closed(told[call], nodes, fold, sum(len(inner[one] | {one}) for one in fold.runs.get(call, (call,))))
        for call, nodes in groups.items()
    )
    return {box.id: box for box in found}


def _closed(row: Any, numbers: Sequence[int], fold: Fold, calls: int) -> GraphBox:
    """The box of a closed call, or of several equal ones, the first of which is `row`."""
    equal, run = fold.equal, fold.runs.get(row.module_call, ())
    nodes = [equal.rows[number] for number in numbers]
    states = Counter(equal.held[number] for number in numbers)
    bytes_held = sum(node.saved_bytes for node in nodes if equal.held[node.node] == "held")
    findings: Counter[str] = Counter()
    for tensor in {node.tensor for node in nodes if node.tensor is not None}:
        findings.update(equal.levels.get(tensor, {}))
    said = f"{len(nodes):,} nodes, {sized(bytes_held)} held" if states["held"] else f"{len(nodes):,} nodes"
    where = "" if row.line is None else f" (line {row.line})"
    label, many = (masked(row.chain), f" \u00d7{len(run):,}") if run else (row.chain, "")
    each = f"{len(run):,} calls of {row.cls} one after the other" if run else f"a call of {row.cls}"
    return GraphBox(
        id=f"c{row.module_call}x{len(run)}" if run else f"c{row.module_call}",
        kind="fold" if run else "call",
        label=label,
        detail=f"{row.cls}{many} \u00b7 {said}",
        title=f"{label}: {each}{where}; {said}",
        state="held" if states["held"] else "freed" if states["freed"] else "nothing",
        line=row.line,
        tensor=None,
        node=None,
        grad=None,
        retains_grad=False,
        is_root=any(node.tensor in equal.roots for node in nodes if node.variable is None),
        module_call=row.module_call,
        nodes=len(nodes),
        held_nodes=states["held"],
        freed_nodes=states["freed"],
        held_bytes=bytes_held,
        calls=calls,
        times=len(run) or 1,
        instances=run,
        noted=_noted(fold, numbers) if run else (),
        findings=dict(findings),
    )


def _noted(fold: Fold, numbers: Sequence[int]) -> tuple[int, ...]:
    inside: defaultdict[int, list[Any]] = defaultdict(list)
    for number in numbers:
        call = fold.found[number]
        if call is not None:
            inside[call].append(fold.equal.rows[number])
    return tuple(sorted(fold.equal.noted(inside)))
