"""Graphs as folding takes them, made by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from backprobe.show.drawing.module_boxes import Ops


@st.composite
def graphs(draw):
    """Calls as intervals of the sequence inside each other, edges from later to earlier nodes, leaves at the end."""
    parents, call_of, stack, count = {}, {}, [], draw(st.integers(1, 30))
    for node in range(count):
        for step in draw(st.lists(st.booleans(), max_size=3)):
            if step:
                parents[len(parents)] = stack[-1] if stack else None
                stack.append(len(parents) - 1)
            elif stack:
                stack.pop()
        call_of[node] = stack[-1] if stack else None
    edges = [(late, early) for late in range(1, count) for early in draw(st.sets(st.integers(0, late - 1), max_size=3))]
    leaves = {count + n for n in range(draw(st.integers(0, 4)))}
    edges += [(draw(st.integers(0, count - 1)), leaf) for leaf in leaves for _ in range(2)]
    return Ops(call_of=call_of | dict.fromkeys(leaves), edges=edges, accumulators=leaves, parents=parents)
