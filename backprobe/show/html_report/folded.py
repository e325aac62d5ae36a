"""The graph of one backward call as the API tells it: closed module calls and their repeats are boxes.

The folding itself is that of `show/drawing`, which the service uses as well; here it is fed from a record instead of
a database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.show.amounts import format_bytes
from backprobe.show.drawing.box_badges import gradient_of, parameters_of, pattern_words
from backprobe.show.drawing.graph import boxes_of
from backprobe.show.drawing.module_boxes import Ops, boxes, deepest, fitting, fold_nodes, from_the_root
from backprobe.show.drawing.repeated_calls import mask_chain, repeats
from backprobe.show.drawing.repeated_patterns import MOST_BOXES
from backprobe.show.drawing.shared_boxes import Folding, SharedBoxes, shared_boxes
from backprobe.show.html_report.box_facts import leaves_of, norms_of

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Node, Record

Levels = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What of a record the graph of one call is made of. levels: findings by tensor, then by level.

    since: the moment after which the call before had ended; -1: there was none. norms: of each node what came to it.
    """

    record: Record
    nodes: dict[int, Node]
    ops: Ops
    calls: Mapping[int, ModuleCall]
    roots: set[int]
    made: Mapping[int, int]
    levels: Levels
    since: int
    norms: Mapping[int, tuple[float | None, bool]]

    def state(self, node: int) -> str:
        """held, freed or nothing."""
        row = self.nodes[node]
        if not row.saved_bytes:
            return "nothing"
        return "held" if row.freed_by is None and row.died is None else "freed"

    def tensor(self, node: int) -> int | None:
        """Return the leaf that a node adds to, or the first tensor that it made."""
        row = self.nodes[node]
        return self.made.get(node) if row.variable is None else row.variable


def folded_view(record: Record, call: int, levels: Levels, most: int) -> dict[str, Any]:
    """Build the graph of a backward call with at most `most` boxes; the others are counted in `hidden`.

    Args:
        record: The record.
        call: Number of the call, from 0.
        levels: Findings by tensor, then by level.
        most: Boxes at most.
    """
    part = _part(record, call, levels)
    depth = fitting(part.ops, most, count=lambda found: boxes(found) - _count_spared_calls(_runs(part, found))) or 0
    found = fold_nodes(part.ops, depth)
    shared = _find_shared_boxes(part, found)
    order = from_the_root(part.ops, [node for node in part.nodes if part.tensor(node) in part.roots])
    groups: dict[str, list[int]] = {}
    for node in order:
        groups.setdefault(shared.ids[node], []).append(node)
    kept = dict(list(groups.items())[:most])
    hidden = sum(len(nodes) for name, nodes in groups.items() if name not in kept)
    shown, edges = _draw_boxes(part, kept, shared)
    return {
        "boxes": shown,
        "edges": edges,
        "call": call + 1,
        "depth": depth,
        "most_depth": deepest(part.ops),
        "nodes": len(part.nodes),
        "hidden": {"nodes": hidden} if hidden else {},
        "truncated": record.truncated,
        "focus": None,
        "matches": [],
        "match_count": 0,
    }


def _part(record: Record, call: int, levels: Levels) -> _Part:
    index = lookup(record)
    met = reaches(record)[call].met
    nodes = {node: index.nodes[node] for node in sorted(met)}
    edges = [(n, e.to_node) for n in nodes for e in index.edges_of[n] if e.to_node is not None and e.to_node in met]
    calls = {row.module_call: row for row in record.module_calls}
    inside = {
        n: row.module_call if row.variable is None and row.module_call in calls else None for n, row in nodes.items()
    }
    return _Part(
        record=record,
        nodes=nodes,
        ops=Ops(
            call_of=inside,
            edges=edges,
            accumulators={n for n, row in nodes.items() if row.variable is not None},
            parents={number: row.parent for number, row in calls.items()},
        ),
        calls=calls,
        roots={root.tensor for root in index.calls[call].roots if root.tensor is not None},
        made={row.node: row.tensor for row in reversed(record.tensor_nodes)},
        levels=levels,
        norms=norms_of(record, call),
        since=max(
            (row.moment_after or row.moment_before for row in record.backward_calls if row.call < call), default=-1
        ),
    )


def _count_spared_calls(runs: Sequence[Sequence[int]]) -> int:
    return sum(len(run) - 1 for run in runs)


def _runs(part: _Part, found: Mapping[int, int | None]) -> tuple[tuple[int, ...], ...]:
    inside = _group_by_call(found)
    kinds = {call: _kind(part, call, nodes) for call, nodes in inside.items()}
    made = {node: row.seq for node, row in part.nodes.items() if row.seq is not None}
    return repeats(part.ops, found, made, kinds, _find_noted_calls(part, inside))


def _group_by_call(found: Mapping[int, int | None]) -> Mapping[int, list[int]]:
    inside: defaultdict[int, list[int]] = defaultdict(list)
    for node, call in found.items():
        if call is not None:
            inside[call].append(node)
    return inside


def _find_noted_calls(part: _Part, inside: Mapping[int, Sequence[int]]) -> set[int]:
    return {call for call, nodes in inside.items() if any(part.tensor(node) in part.levels for node in nodes)}


def _kind(part: _Part, call: int, nodes: Sequence[int]) -> tuple[Any, ...]:
    ops = Counter((part.nodes[node].type, part.state(node)) for node in nodes)
    has_root = any(part.tensor(node) in part.roots for node in nodes if part.nodes[node].variable is None)
    return mask_chain(part.calls[call].chain), tuple(sorted(ops.items())), has_root


def _find_shared_boxes(part: _Part, found: Mapping[int, int | None]) -> SharedBoxes:
    inside = _group_by_call(found)
    noted = _find_noted_calls(part, inside)
    kinds: dict[tuple[str, int], Any] = {
        ("call", call): _kind(part, call, nodes) for call, nodes in inside.items() if call not in noted
    }
    for node, call in found.items():
        row, tensor = part.nodes[node], part.tensor(node)
        if call is None and row.variable is None and tensor not in part.levels and tensor not in part.roots:
            kinds["node", node] = row.type, part.state(node)
    folding = Folding(
        ops=part.ops,
        found=found,
        runs=_runs(part, found),
        made={node: row.seq for node, row in part.nodes.items() if row.seq is not None},
        leaves={node: row.variable for node, row in part.nodes.items() if row.variable is not None},
        kinds=kinds,
    )
    return shared_boxes(folding, patterns_beyond=MOST_BOXES)


def _draw_boxes(
    part: _Part, kept: Mapping[str, list[int]], shared: SharedBoxes
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    closed = shared.calls.keys() | shared.instances.keys()
    alone = [nodes[0] for name, nodes in kept.items() if name not in closed]
    single, arrows = boxes_of(part.record, alone, part.roots)
    known = {box.id: box for box in single}
    ids: dict[int, str] = {}  # of the box that a node lies in
    shown: list[dict[str, Any]] = []
    for name, nodes in kept.items():
        if name in closed:
            box = _build_closed_box(part, name, nodes, shared)
        else:
            box = _single(part, asdict(known.pop(name)), nodes[0])
        shown.append(box)
        ids.update(dict.fromkeys(nodes, name))
    fresh = {box.id: box for box in known.values() if box.tensor is not None and _is_of(part, box.tensor)}
    shown += [_single(part, asdict(box), None) for box in fresh.values()]
    pairs = Counter((ids[a], ids[b]) for a, b in part.ops.edges if a in ids and b in ids and ids[a] != ids[b])
    edges = [{"start": a, "end": b, "wanted": True, "count": count} for (a, b), count in pairs.items()]
    edges += [
        {"start": arrow.start, "end": arrow.end, "wanted": False, "count": 1} for arrow in arrows if arrow.end in fresh
    ]
    return shown, edges


def _is_of(part: _Part, tensor: int) -> bool:
    """Return whether a leaf without gradient belongs to this call.

    A node of the call saved it, or it was first seen since the call before.
    """
    index = lookup(part.record)
    if any(saved.tensor == tensor for node in part.nodes for saved in index.saved_of[node]):
        return True
    return index.tensors[tensor].moment > part.since


def _single(part: _Part, box: dict[str, Any], node: int | None) -> dict[str, Any]:
    state = "nothing" if node is None else part.state(node)
    levels = part.levels.get(box["tensor"], {}) if box["tensor"] is not None else {}
    return box | {
        "module_call": None,
        "nodes": int(node is not None),
        "held_nodes": int(state == "held"),
        "freed_nodes": int(state == "freed"),
        "held_bytes": part.nodes[node].saved_bytes if node is not None and state == "held" else 0,
        "times": 1,
        "instances": [],
        "noted": [],
        "findings": dict(levels),
        "gradient": _gradient(part, () if node is None else (node,)),
        "parameters": [],
        "more_parameters": 0,
        "parameter_count": 0,
    }


def _build_closed_box(part: _Part, name: str, nodes: Sequence[int], shared: SharedBoxes) -> dict[str, Any]:
    states = Counter(part.state(node) for node in nodes)
    held = sum(part.nodes[node].saved_bytes for node in nodes if part.state(node) == "held")
    findings: Counter[str] = Counter()
    for tensor in {part.tensor(node) for node in nodes} - {None}:
        findings.update(part.levels.get(tensor or 0, {}))
    said = f"{len(nodes):,} nodes" + (f", {format_bytes(held)} held" if held else "")
    words = _words(part, name, nodes, shared)
    leaves = leaves_of(part.record, (part.nodes[node].variable for node in nodes))
    parameters, more = parameters_of(leaves, leaves.keys(), is_folded=words["times"] > 1)
    return words | {
        "id": name,
        "detail": f"{words['detail']} \u00b7 {said}",
        "title": f"{words['title']}; {said}",
        "state": "held" if states["held"] else "freed" if states["freed"] else "nothing",
        "tensor": None,
        "grad": None,
        "retains_grad": False,
        "is_root": any(part.tensor(n) in part.roots for n in nodes if part.nodes[n].variable is None),
        "nodes": len(nodes),
        "held_nodes": states["held"],
        "freed_nodes": states["freed"],
        "held_bytes": held,
        "noted": [],
        "findings": dict(findings),
        "gradient": _gradient(part, nodes),
        "parameters": [asdict(parameter) for parameter in parameters],
        "more_parameters": more,
        "parameter_count": len(leaves),
    }


def _words(part: _Part, name: str, nodes: Sequence[int], shared: SharedBoxes) -> dict[str, Any]:
    """Name the box. Nothing of it opens, so the first of several is named alone."""
    if name in shared.instances:
        instances = shared.instances[name]
        first = [node for node in nodes if shared.instance_of.get(node) == instances[0]]
        first.sort(key=lambda node: -(part.nodes[node].seq or 0))
        label, detail, title = pattern_words([part.nodes[node].type for node in first], len(instances))
        told: dict[str, Any] = {"kind": "pattern", "line": None, "module_call": None, "instances": list(instances[:1])}
        return told | {"label": label, "detail": detail, "title": title, "times": len(instances)}
    calls, index = shared.calls[name], lookup(part.record)
    row = part.calls[calls[0]]
    cls = next((module.cls for module in part.record.modules if module.module == row.module), "module")
    several = len(calls) > 1
    label = mask_chain(row.chain) if several else row.chain
    return {
        "kind": "fold" if several else "call",
        "label": label,
        "detail": cls,
        "title": f"{label}: {cls}",
        "line": None if row.site is None else index.sites[row.site].line,
        "module_call": calls[0],
        "instances": list(calls[:1]) if several else [],
        "times": len(calls),
    }


def _gradient(part: _Part, nodes: Sequence[int]) -> dict[str, Any] | None:
    range_ = gradient_of(part.norms, nodes)
    return None if range_ is None else asdict(range_)
