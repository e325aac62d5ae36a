"""The graph of one backward call as the API tells it: closed module calls and their repeats are boxes.

The folding itself is `show/folding.py` and `show/repeats.py`, which the service uses as well; here it is fed from a
record instead of a database.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.show.amounts import sized
from backprobe.show.drawing.graph import boxes_of
from backprobe.show.drawing.module_boxes import Ops, boxes, deepest, fitting, folded, from_the_root
from backprobe.show.drawing.repeated_calls import masked, repeats

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Node, Record

Levels = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What of a record the graph of one call is made of. levels: findings by tensor, then by level.

    since: the moment after which the call before had ended; -1: there was none.
    """

    record: Record
    nodes: dict[int, Node]
    ops: Ops
    calls: Mapping[int, ModuleCall]
    roots: set[int]
    made: Mapping[int, int]
    levels: Levels
    since: int

    def state(self, node: int) -> str:
        """held, freed or nothing."""
        row = self.nodes[node]
        if not row.saved_bytes:
            return "nothing"
        return "held" if row.freed_by is None and row.died is None else "freed"

    def tensor(self, node: int) -> int | None:
        """The leaf that it adds to, or the first tensor that it made."""
        row = self.nodes[node]
        return self.made.get(node) if row.variable is None else row.variable


def folded_view(record: Record, call: int, levels: Levels, most: int) -> dict[str, Any]:
    """The graph of a backward call in at most `most` boxes; the others are counted in `hidden`.

    Args:
        record: The record.
        call: Number of the call, from 0.
        levels: Findings by tensor, then by level.
        most: Boxes at most.
    """
    part = _part(record, call, levels)
    depth = fitting(part.ops, most, count=lambda found: boxes(found) - _spared(_runs(part, found))) or 0
    found = folded(part.ops, depth)
    runs = _runs(part, found)
    first = {one: run for run in runs for one in run}
    order = from_the_root(part.ops, [node for node in part.nodes if part.tensor(node) in part.roots])
    groups: dict[tuple[str, int], list[int]] = {}
    for node in order:
        inside = found[node]
        key = ("node", node) if inside is None else ("call", first.get(inside, (inside,))[0])
        groups.setdefault(key, []).append(node)
    kept = dict(list(groups.items())[:most])
    hidden = sum(len(nodes) for key, nodes in groups.items() if key not in kept)
    shown, edges = _drawn(part, kept, first)
    return {
        "boxes": shown,
        "edges": edges,
        "call": call + 1,
        "depth": depth,
        "most_depth": deepest(part.ops),
        "nodes": len(part.nodes),
        "hidden": {"nodes": hidden} if hidden else {},
        "truncated": record.truncated,
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
        since=max(
            (row.moment_after or row.moment_before for row in record.backward_calls if row.call < call), default=-1
        ),
    )


def _spared(runs: Sequence[Sequence[int]]) -> int:
    return sum(len(run) - 1 for run in runs)


def _runs(part: _Part, found: Mapping[int, int | None]) -> tuple[tuple[int, ...], ...]:
    inside: defaultdict[int, list[int]] = defaultdict(list)
    for node, call in found.items():
        if call is not None:
            inside[call].append(node)
    kinds = {call: _kind(part, call, nodes) for call, nodes in inside.items()}
    noted = {call for call, nodes in inside.items() if any(part.tensor(node) in part.levels for node in nodes)}
    made = {node: row.seq for node, row in part.nodes.items() if row.seq is not None}
    return repeats(part.ops, found, made, kinds, noted)


def _kind(part: _Part, call: int, nodes: Sequence[int]) -> tuple[Any, ...]:
    ops = Counter((part.nodes[node].type, part.state(node)) for node in nodes)
    has_root = any(part.tensor(node) in part.roots for node in nodes if part.nodes[node].variable is None)
    return masked(part.calls[call].chain), tuple(sorted(ops.items())), has_root


def _drawn(
    part: _Part, kept: Mapping[tuple[str, int], list[int]], first: Mapping[int, Sequence[int]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    alone = [number for (kind, number) in kept if kind == "node"]
    single, arrows = boxes_of(part.record, alone, part.roots)
    known = {box.id: box for box in single}
    ids: dict[int, str] = {}  # of the box that a node lies in
    shown: list[dict[str, Any]] = []
    for (kind, number), nodes in kept.items():
        if kind == "call":
            box = _closed(part, number, nodes, first.get(number, ()))
        else:
            variable = part.nodes[number].variable
            box = _single(part, asdict(known.pop(f"n{number}" if variable is None else f"t{variable}")), number)
        shown.append(box)
        ids.update(dict.fromkeys(nodes, str(box["id"])))
    fresh = {box.id: box for box in known.values() if box.tensor is not None and _is_of(part, box.tensor)}
    shown += [_single(part, asdict(box), None) for box in fresh.values()]
    pairs = Counter((ids[a], ids[b]) for a, b in part.ops.edges if a in ids and b in ids and ids[a] != ids[b])
    edges = [{"start": a, "end": b, "wanted": True, "count": count} for (a, b), count in pairs.items()]
    edges += [{"start": one.start, "end": one.end, "wanted": False, "count": 1} for one in arrows if one.end in fresh]
    return shown, edges


def _is_of(part: _Part, tensor: int) -> bool:
    """A leaf without gradient that a node of this call saved, or that was first seen since the call before."""
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
    }


def _closed(part: _Part, call: int, nodes: Sequence[int], run: Sequence[int]) -> dict[str, Any]:
    row, index = part.calls[call], lookup(part.record)
    cls = next((module.cls for module in part.record.modules if module.module == row.module), "module")
    states = Counter(part.state(node) for node in nodes)
    held = sum(part.nodes[node].saved_bytes for node in nodes if part.state(node) == "held")
    findings: Counter[str] = Counter()
    for tensor in {part.tensor(node) for node in nodes} - {None}:
        findings.update(part.levels.get(tensor or 0, {}))
    said = f"{len(nodes):,} nodes" + (f", {sized(held)} held" if held else "")
    label = masked(row.chain) if len(run) > 1 else row.chain
    line = None if row.site is None else index.sites[row.site].line
    return {
        "id": f"c{call}",
        "kind": "fold" if len(run) > 1 else "call",
        "label": label,
        "detail": f"{cls} \u00b7 {said}",
        "title": f"{label}: {cls}; {said}",
        "state": "held" if states["held"] else "freed" if states["freed"] else "nothing",
        "line": line,
        "tensor": None,
        "grad": None,
        "retains_grad": False,
        "is_root": any(part.tensor(n) in part.roots for n in nodes if part.nodes[n].variable is None),
        "module_call": call,
        "nodes": len(nodes),
        "held_nodes": states["held"],
        "freed_nodes": states["freed"],
        "held_bytes": held,
        "times": max(1, len(run)),
        "instances": list(run)[:1],
        "noted": [],
        "findings": dict(findings),
    }
