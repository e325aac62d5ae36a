"""Which nodes of a graph share a box: those of a module call that is shown closed.

1. A call is one box while it is closed; open, its own nodes stand alone and the calls made in it are boxes.
2. The node that adds to a leaf's `.grad` belongs to no call: it lies in the box of all that lead to it, if that is one.
3. Within a thread autograd's sequence number orders the nodes, and a call is an interval of it: folding makes no cycle.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

MOST_DEPTH: Final = 64
"""Depth of calls inside each other that are drawn apart; what is deeper belongs to the last of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ops:
    """A graph as far as folding needs it.

    Attributes:
        call_of: Of each node the innermost module call that it was made in; None: in none.
        edges: (node, next node), both in `call_of`.
        accumulators: Nodes that add to a leaf's `.grad`.
        parents: Of each module call the one that it was made in; None: in none.
    """

    call_of: Mapping[int, int | None]
    edges: Sequence[tuple[int, int]]
    accumulators: Collection[int]
    parents: Mapping[int, int | None]


def chains(ops: Ops) -> dict[int, tuple[int, ...]]:
    """Of each module call with nodes: the calls that it was made in and itself, outermost first."""
    found: dict[int, tuple[int, ...]] = {}
    for call in {call for call in ops.call_of.values() if call is not None}:
        chain, at = [call], ops.parents.get(call)
        while at is not None and at not in chain and len(chain) < 4 * MOST_DEPTH:
            chain.append(at)
            at = ops.parents.get(at)
        found[call] = tuple(reversed(chain))[:MOST_DEPTH]
    return found


def deepest(ops: Ops) -> int:
    """Return the depth at which every node stands alone."""
    return max((len(chain) for chain in chains(ops).values()), default=0)


def part_of_call(ops: Ops, focus: int) -> Ops:
    """Cut out the part of a graph that one module call made, and the leaves that it alone leads to."""
    inside = {call for call, chain in chains(ops).items() if focus in chain}
    kept = {node for node, call in ops.call_of.items() if call in inside}
    over: defaultdict[int, set[bool]] = defaultdict(set)
    for start, end in ops.edges:
        if end in ops.accumulators:
            over[end].add(start in kept)
    kept |= {node for node, led in over.items() if led == {True}}
    return Ops(
        call_of={node: call for node, call in ops.call_of.items() if node in kept},
        edges=[(start, end) for start, end in ops.edges if start in kept and end in kept],
        accumulators={node for node in ops.accumulators if node in kept},
        parents=ops.parents,
    )


def fold_nodes(ops: Ops, depth: int, opened: Iterable[int] = ()) -> dict[int, int | None]:
    """Of each node the module call whose box it lies in; None: it stands alone.

    Args:
        depth: Levels of module calls that are open; 0: the outermost ones are boxes.
        opened: Module calls that are open beside; so are those that they were made in.
    """
    known = chains(ops)
    ways = {call: chain for chain in known.values() for call in chain}
    open_calls = {outer for call in opened for outer in _outer(ways, call)}
    box = {call: _find_closed_call(chain, depth, open_calls) for call, chain in known.items()}
    found = {node: None if call is None else box[call] for node, call in ops.call_of.items()}
    above: defaultdict[int, set[int | None]] = defaultdict(set)
    kept = set(ops.accumulators)
    for start, end in ops.edges:
        if end in kept:
            above[end].add(found[start])
    for node in kept:
        boxes = above[node]
        found[node] = next(iter(boxes)) if len(boxes) == 1 else None
    return found


def _outer(ways: Mapping[int, tuple[int, ...]], call: int) -> tuple[int, ...]:
    if call not in ways:
        return (call,)
    chain = ways[call]
    return chain[: chain.index(call) + 1]


def _find_closed_call(chain: Sequence[int], depth: int, opened: Collection[int]) -> int | None:
    """Find the outermost call of a chain that is closed; None if all are open."""
    return next((call for at, call in enumerate(chain) if at >= depth and call not in opened), None)


def boxes(found: Mapping[int, int | None]) -> int:
    """How many boxes a fold has."""
    return sum(call is None for call in found.values()) + len({call for call in found.values() if call is not None})


def fitting(
    ops: Ops, most: int, opened: Iterable[int] = (), *, count: Callable[[Mapping[int, int | None]], int] = boxes
) -> int | None:
    """Find the greatest depth with at most so many boxes; None if even the outermost calls are too many.

    Args:
        count: Boxes of a fold. It is taken to rise with the depth: where it does not, a lesser depth may be told.
    """
    asked = tuple(opened)
    low, high = -1, deepest(ops)
    while low < high:
        middle = (low + high + 1) // 2
        if count(fold_nodes(ops, middle, asked)) <= most:
            low = middle
        else:
            high = middle - 1
    return None if low < 0 else low


def from_the_root(ops: Ops, roots: Iterable[int]) -> list[int]:
    """All nodes, nearest to the roots first; roots that nothing leads to are found beside those that are given."""
    following: defaultdict[int, list[int]] = defaultdict(list)
    for start, end in ops.edges:
        following[start].append(end)
    fed = {end for _, end in ops.edges}
    starts = sorted({node for node in ops.call_of if node not in fed} | {n for n in roots if n in ops.call_of})
    seen, order, waiting = set(starts), [], deque(reversed(starts))
    while waiting:
        node = waiting.popleft()
        order.append(node)
        for end in following[node]:
            if end not in seen:
                seen.add(end)
                waiting.append(end)
    return [*order, *sorted(set(ops.call_of) - seen)]
