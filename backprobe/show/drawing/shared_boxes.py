"""Which nodes of a graph share a box: those of a closed module call, of equal calls, of a pattern that repeats.

n12     a node by itself            c5      a closed module call
t3      the leaf that it adds to    c5x268  268 equal calls, of which 5 is the first
                                    p12x180 a pattern, 180 times; the first begins with node 12
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.show.drawing.repeated_calls import in_order
from backprobe.show.drawing.repeated_patterns import apart, elements, patterns

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from backprobe.show.drawing.module_boxes import Ops
    from backprobe.show.drawing.repeated_calls import Box


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """A graph whose module calls were closed, and what makes its boxes equal.

    Attributes:
        ops: The graph. found: of each node the closed call in whose box it lies (`module_boxes.fold_nodes`).
        runs: Equal calls that share a box (`repeated_calls.repeats`).
        made: Autograd's sequence number of each node that has one. leaves: of each node that adds to one, the leaf.
        kinds: Of each box what makes it equal to another; a box without one is equal to none.
    """

    ops: Ops
    found: Mapping[int, int | None]
    runs: Sequence[Sequence[int]]
    made: Mapping[int, int]
    leaves: Mapping[int, int]
    kinds: Mapping[Box, Hashable]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBoxes:
    """Boxes by their ids.

    Attributes:
        ids: Of each node its box.
        calls: Of a box of closed calls, which: one, or several equal ones.
        instances: Of a pattern's box the first node of each instance, as `p` names it. instance_of: that of each node
            in one.
    """

    ids: Mapping[int, str]
    calls: Mapping[str, tuple[int, ...]]
    instances: Mapping[str, tuple[int, ...]]
    instance_of: Mapping[int, int]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(set(self.ids.values()))


def shared_boxes(folding: Folding, *, patterns_beyond: int | None, opened: Collection[int] = ()) -> SharedBoxes:
    """Build the boxes of a graph.

    Args:
        folding: The graph.
        patterns_beyond: Where there are more boxes than this, patterns are folded too; None: never.
        opened: First nodes of instances of a pattern that stand open.
    """
    first = {call: tuple(run) for run in folding.runs for call in run}
    ids: dict[int, str] = {}
    calls: dict[str, tuple[int, ...]] = {}
    nodes: defaultdict[Box, list[int]] = defaultdict(list)
    for node, call in folding.found.items():
        if call is None:
            ids[node] = f"t{folding.leaves[node]}" if node in folding.leaves else f"n{node}"
            nodes["node", node].append(node)
            continue
        run = first.get(call, (call,))
        ids[node] = f"c{run[0]}x{len(run)}" if len(run) > 1 else f"c{call}"
        calls[ids[node]] = run
        nodes["call", call].append(node)
    plain = SharedBoxes(ids=ids, calls=calls, instances={}, instance_of={})
    return (
        _with_patterns(folding, plain, nodes, opened)
        if patterns_beyond is not None and plain.count > patterns_beyond
        else plain
    )


def _with_patterns(
    folding: Folding, plain: SharedBoxes, nodes: Mapping[Box, Sequence[int]], opened: Collection[int]
) -> SharedBoxes:
    ids, instances, instance_of = dict(plain.ids), dict[str, tuple[int, ...]](), dict[int, int]()
    parts = elements(list(in_order(folding.ops, folding.found, folding.made)), folding.runs)
    for pattern in patterns(parts, folding.kinds):
        firsts = {instance: min(nodes[instance[0]]) for instance in pattern}
        chosen = [instance for instance, first in firsts.items() if first in opened]
        for part in apart(pattern, chosen):
            if not part:
                continue
            name = f"p{firsts[part[0]]}x{len(part)}"
            instances[name] = tuple(firsts[instance] for instance in part)
            for instance in part:
                inside = [node for box in instance for node in nodes[box]]
                ids |= dict.fromkeys(inside, name)
                instance_of |= dict.fromkeys(inside, firsts[instance])
    _leaves_inside(folding, ids, instances)
    kept = set(ids.values())
    calls = {name: run for name, run in plain.calls.items() if name in kept}
    return SharedBoxes(ids=ids, calls=calls, instances=instances, instance_of=instance_of)


def _leaves_inside(folding: Folding, ids: dict[int, str], instances: Mapping[str, tuple[int, ...]]) -> None:
    """Put a leaf that one pattern alone leads to into that pattern's box."""
    over: defaultdict[int, set[str]] = defaultdict(set)
    for start, end in folding.ops.edges:
        if end in folding.leaves and folding.found[end] is None:
            over[end].add(ids[start])
    for node, boxes in over.items():
        if len(boxes) == 1 and (box := next(iter(boxes))) in instances:
            ids[node] = box
