"""The boxes and edges of a graph that is seen: nodes in full, closed module calls in sums."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.show.amounts import format_bytes
from backprobe.show.drawing.box_badges import Leaf, gradient_of, parameters_of, pattern_words
from backprobe.show.drawing.graph import Arrow, Box, boxes_of
from backprobe.show.drawing.module_boxes import Ops, chains
from backprobe.show.drawing.repeated_calls import mask_chain
from backprobe.show.drawing.shared_boxes import SharedBoxes
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.graph.graph_answers import GraphBox, GraphEdge
from store.queries.graph.graph_badges import Norms, leaves_of
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
        shared: The boxes.
        shown: Nodes whose boxes are drawn, in order.
        moment: As it was then; None: at the end.
        norms: Of each node what came to it.
    """

    equal: Repeats
    found: Mapping[int, int | None]
    shared: SharedBoxes
    shown: Sequence[int]
    moment: int | None
    norms: Norms


def build_graph(
    transaction: Transaction, run: RunRow, key: RunKey, fold: Fold
) -> tuple[tuple[GraphBox, ...], tuple[GraphEdge, ...]]:
    """Boxes in order of the nodes shown, and the edges among them."""
    rows, shown, shared = fold.equal.rows, fold.shown, fold.shared
    ids = {node: shared.ids[node] for node in shown}
    alone = [node for node in shown if ids[node] not in shared.calls and ids[node] not in shared.instances]
    part = part_of(transaction, run, key, alone, fold.moment, _find_unfreed_nodes(transaction, key, rows, fold.moment))
    single, arrows = boxes_of(part, alone, fold.equal.roots)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for node in shown:
        if ids[node] in shared.calls or ids[node] in shared.instances:
            groups[ids[node]].append(node)
    closed = _closed_boxes(transaction, run, key, fold, groups)
    known = {box.id: box for box in single}
    boxes: dict[str, GraphBox] = {}
    for node in shown:
        name = ids[node]
        if name not in boxes:
            boxes[name] = closed[name] if name in closed else _single(known.pop(name), node, fold)
    for box in known.values():  # leaves that need no gradient: autograd has no node for them
        boxes.setdefault(box.id, _single(box, None, fold))
    return tuple(boxes.values()), tuple(_edges(fold.equal.ops, ids, arrows))


def _edges(ops: Ops, ids: Mapping[int, str], arrows: Sequence[Arrow]) -> Iterable[GraphEdge]:
    counted = Counter((ids[start], ids[end]) for start, end in ops.edges if start in ids and end in ids)
    for (start, end), count in counted.items():
        if start != end:
            yield GraphEdge(start=start, end=end, wanted=True, count=count)
    for arrow in arrows:
        if not arrow.wanted:
            yield GraphEdge(start=arrow.start, end=arrow.end, wanted=False, count=1)


def _find_unfreed_nodes(transaction: Transaction, key: RunKey, rows: Rows, moment: int | None) -> set[int]:
    """Nodes that a call freed later than the moment."""
    if moment is None:
        return set()
    over = sa.func.coalesce(_k.c.moment_after, _k.c.moment_before + 1)
    query = sa.select(_k.c.call).where(at_key(_k, key), over > moment)
    later = set(transaction.execute(query).scalars())
    return {node for node, row in rows.items() if row.freed_by in later}


def states_of(transaction: Transaction, key: RunKey, rows: Rows, moment: int | None) -> dict[int, str]:
    """held, freed or nothing of each node, as a drawing says it; `moment`: as it was then, None: at the end."""
    unfreed = _find_unfreed_nodes(transaction, key, rows, moment)
    return {node: _holds(row, moment, unfreed=node in unfreed) for node, row in rows.items()}


def _holds(row: Any, moment: int | None, *, unfreed: bool) -> str:
    if not row.saved_bytes:
        return "nothing"
    gone = row.died is not None and (moment is None or row.died <= moment)
    return "held" if unfreed or (row.freed_by is None and not gone) else "freed"


def levels_of(transaction: Transaction, run: RunRow, key: RunKey) -> Levels:
    """Count the findings about tensors by level, without suppressed ones."""
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


def _single(box: Box, node: int | None, fold: Fold) -> GraphBox:
    equal = fold.equal
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
        gradient=None if node is None else gradient_of(fold.norms, [node]),
    )


def _closed_boxes(
    transaction: Transaction, run: RunRow, key: RunKey, fold: Fold, groups: Mapping[str, Sequence[int]]
) -> dict[str, GraphBox]:
    """Build the boxes of several nodes, by id. `groups` has the nodes of each."""
    shared, rows = fold.shared, fold.equal.rows
    inner: defaultdict[int, set[int]] = defaultdict(set)
    for call, chain in chains(fold.equal.ops).items():
        for outer in chain:
            inner[outer].add(call)
    firsts = sorted({shared.calls[name][0] for name in groups if name in shared.calls})
    told = _calls_told(transaction, key, firsts)
    tensors = {rows[node].variable for nodes in groups.values() for node in nodes} - {None}
    leaves = leaves_of(transaction, run, key, sorted(tensors), fold.moment)
    boxes: dict[str, GraphBox] = {}
    for name, nodes in groups.items():
        if name in shared.calls:
            calls = shared.calls[name]
            words = _words_of_calls(told[calls[0]], calls)
            inside = sum(len(inner[call] | {call}) for call in calls)
        else:
            calls = shared.instances[name]
            words = _words_of_pattern(fold, name, nodes)
            inside = len({rows[node].module_call for node in nodes} - {None})
        boxes[name] = _build_folded_box(name, words, nodes, fold, leaves, calls=inside)
    return boxes


def _calls_told(transaction: Transaction, key: RunKey, numbers: Sequence[int]) -> dict[int, Any]:
    told: dict[int, Any] = {}
    for piece in in_pieces(numbers):
        query = (
            sa.select(_c.c.module_call, _c.c.chain, _m.c["class"].label("cls"), _s.c.line)
            .select_from(_c)
            .outerjoin(_m, sa.and_(same_key(_m, _c), _m.c.module == _c.c.module))
            .outerjoin(_s, sa.and_(same_key(_s, _c), _s.c.site == _c.c.site))
            .where(at_key(_c, key), in_numbers(_c.c.module_call, piece))
        )
        told |= {row.module_call: row for row in transaction.execute(query)}
    return told


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """What a closed box is called. `kind`: call, fold or pattern."""

    kind: str
    label: str
    detail: str
    title: str
    line: int | None
    module_call: int | None
    instances: tuple[int, ...]
    times: int


def _words_of_calls(row: Any, calls: tuple[int, ...]) -> _Words:
    """Of one call, or of several equal ones, the first of which is `row`."""
    several = len(calls) > 1
    where = "" if row.line is None else f" (line {row.line})"
    label, many = (mask_chain(row.chain), f" \u00d7{len(calls):,}") if several else (row.chain, "")
    each = f"{len(calls):,} calls of {row.cls} one after the other" if several else f"a call of {row.cls}"
    return _Words(
        kind="fold" if several else "call",
        label=label,
        detail=f"{row.cls}{many}",
        title=f"{label}: {each}{where}",
        line=row.line,
        module_call=row.module_call,
        instances=calls if several else (),
        times=len(calls),
    )


def _words_of_pattern(fold: Fold, name: str, nodes: Sequence[int]) -> _Words:
    instances = fold.shared.instances[name]
    first = [node for node in nodes if fold.shared.instance_of.get(node) == instances[0]]
    first.sort(key=lambda node: -(fold.equal.rows[node].seq or 0))
    types = [fold.equal.rows[node].type for node in first]
    label, detail, title = pattern_words(types, len(instances))
    return _Words(
        kind="pattern",
        label=label,
        detail=detail,
        title=title,
        line=None,
        module_call=None,
        instances=instances,
        times=len(instances),
    )


def _build_folded_box(
    name: str, words: _Words, numbers: Sequence[int], fold: Fold, leaves: Mapping[int, Leaf], *, calls: int
) -> GraphBox:
    """Build the box of several nodes."""
    equal = fold.equal
    nodes = [equal.rows[number] for number in numbers]
    states = Counter(equal.held[number] for number in numbers)
    bytes_held = sum(node.saved_bytes for node in nodes if equal.held[node.node] == "held")
    findings: Counter[str] = Counter()
    for tensor in {node.tensor for node in nodes if node.tensor is not None}:
        findings.update(equal.levels.get(tensor, {}))
    said = f"{len(nodes):,} nodes, {format_bytes(bytes_held)} held" if states["held"] else f"{len(nodes):,} nodes"
    inside = {node.variable for node in nodes if node.variable is not None}
    parameters, more = parameters_of(leaves, inside, is_folded=words.times > 1)
    return GraphBox(
        id=name,
        kind=words.kind,
        label=words.label,
        detail=f"{words.detail} \u00b7 {said}",
        title=f"{words.title}; {said}",
        state="held" if states["held"] else "freed" if states["freed"] else "nothing",
        line=words.line,
        tensor=None,
        node=None,
        grad=None,
        retains_grad=False,
        is_root=any(node.tensor in equal.roots for node in nodes if node.variable is None),
        module_call=words.module_call,
        nodes=len(nodes),
        held_nodes=states["held"],
        freed_nodes=states["freed"],
        held_bytes=bytes_held,
        calls=calls,
        times=words.times,
        instances=words.instances,
        noted=_find_marked_nodes(fold, numbers) if words.kind == "fold" else (),
        findings=dict(findings),
        gradient=gradient_of(fold.norms, numbers),
        parameters=parameters,
        more_parameters=more,
        parameter_count=len(inside),
    )


def _find_marked_nodes(fold: Fold, numbers: Sequence[int]) -> tuple[int, ...]:
    inside: defaultdict[int, list[Any]] = defaultdict(list)
    for number in numbers:
        call = fold.found[number]
        if call is not None:
            inside[call].append(fold.equal.rows[number])
    return tuple(sorted(fold.equal.calls_with_findings(inside)))
