"""Folding by module call keeps every node in one box, refines with depth and makes no cycle."""

from __future__ import annotations

from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from backprobe.show.drawing.module_boxes import Ops, boxes, chains, deepest, fitting, fold_nodes, from_the_root
from tests.backprobe.show.graphs import graphs

TWO_BLOCKS = Ops(  # model(0) calls block(1) and block(2), block(2) calls lin(3); node 9 adds to a leaf of block 1 alone
    call_of={0: None, 1: 3, 2: 2, 3: 1, 4: 1, 9: None},
    edges=[(0, 1), (1, 2), (2, 3), (3, 4), (4, 9)],
    accumulators={9},
    parents={0: None, 1: 0, 2: 0, 3: 2},
)


def test_a_closed_call_holds_its_nodes_those_of_inner_calls_and_its_leaves():
    assert fold_nodes(TWO_BLOCKS, 0) == {0: None, 1: 0, 2: 0, 3: 0, 4: 0, 9: 0}
    assert fold_nodes(TWO_BLOCKS, 1) == {0: None, 1: 2, 2: 2, 3: 1, 4: 1, 9: 1}
    assert fold_nodes(TWO_BLOCKS, 2) == {0: None, 1: 3, 2: None, 3: None, 4: None, 9: None}
    assert set(fold_nodes(TWO_BLOCKS, deepest(TWO_BLOCKS)).values()) == {None}


def test_a_call_is_opened_with_those_that_it_was_made_in():
    assert fold_nodes(TWO_BLOCKS, 0, [2]) == {0: None, 1: 3, 2: None, 3: 1, 4: 1, 9: 1}
    assert fold_nodes(TWO_BLOCKS, 0, [3]) == {0: None, 1: None, 2: None, 3: 1, 4: 1, 9: 1}


def test_a_leaf_of_two_boxes_stands_alone():
    shared = Ops(call_of={1: 1, 2: 2, 9: None}, edges=[(1, 9), (2, 9)], accumulators={9}, parents={1: None, 2: None})
    assert fold_nodes(shared, 0) == {1: 1, 2: 2, 9: None}


def test_a_call_that_was_made_in_itself_is_told_once():
    assert chains(Ops(call_of={0: 1}, edges=[], accumulators=set(), parents={1: 2, 2: 1})) == {1: (2, 1)}


@given(graphs(), st.data())
def test_any_fold_has_no_cycle_refines_with_depth_and_fits(ops, data):
    opened = data.draw(st.sets(st.sampled_from(sorted(ops.parents)))) if ops.parents else set()
    counts = []
    for depth in range(deepest(ops) + 1):
        found = fold_nodes(ops, depth, opened)
        assert set(found) == set(ops.call_of)
        named = {node: ("n", node) if call is None else ("c", call) for node, call in found.items()}
        after = {}
        for start, end in ops.edges:
            if named[start] != named[end]:
                after.setdefault(named[start], set()).add(named[end])
        TopologicalSorter(after).prepare()  # raises CycleError
        counts.append(boxes(found))
        assert counts[-1] == len(set(named.values()))
    assert counts == sorted(counts)
    assert counts[-1] == len(ops.call_of)
    most = data.draw(st.integers(1, 40))
    fits = [depth for depth, count in enumerate(counts) if count <= most]
    assert fitting(ops, most, opened) == (fits[-1] if fits else None)


@given(graphs())
def test_the_order_from_the_root_has_every_node_once(ops):
    assert sorted(from_the_root(ops, [])) == sorted(ops.call_of)


def test_nodes_nearest_to_the_root_come_first():
    assert from_the_root(TWO_BLOCKS, [0]) == [0, 1, 2, 3, 4, 9]
