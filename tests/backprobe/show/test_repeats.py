"""Equal calls that follow each other share a box, and that makes no cycle."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backprobe.show.drawing.module_boxes import Ops, deepest, fold_nodes
from backprobe.show.drawing.repeated_calls import MOST_APART, mask_chain, repeats
from tests.backprobe.show.graphs import graphs


def chain(calls, edges=(), accumulators=()):
    """A chain of calls with one node each, the last one made first in it; node n is of the n-th call."""
    call_of = dict(enumerate(calls)) | dict.fromkeys(accumulators)
    steps = [(n, n + 1) for n in range(len(calls) - 1)]
    parents = {call: None for call in calls if call is not None}
    return Ops(call_of=call_of, edges=[*steps, *edges], accumulators=set(accumulators), parents=parents)


def runs(ops, kinds, **more):
    made = {node: 1000 - node for node in ops.call_of if node not in ops.accumulators}
    return repeats(ops, fold_nodes(ops, 0), made, kinds, **more)


def test_equal_neighbours_are_folded_and_others_divide_them():
    ops = chain([0, 1, 2, 3, None, 4, 5])
    assert runs(ops, dict.fromkeys(range(6), "block")) == ((0, 1, 2, 3), (4, 5))
    assert runs(ops, dict.fromkeys(range(6), "block") | {2: "head"}) == ((0, 1), (4, 5))
    assert runs(ops, {call: call for call in range(6)}) == ()


def test_leaves_beside_the_way_do_not_divide_it():
    shared = chain([0, 1, 2], edges=[(0, 9), (1, 9), (2, 9)], accumulators=[9])
    assert runs(shared, dict.fromkeys(range(3), "block")) == ((0, 1, 2),)


def test_two_towers_are_told_one_after_the_other():
    """By the order in which they were made; by breadth, their calls would take turns and nothing would be folded."""
    ops = Ops(
        call_of={0: None, 1: 1, 2: 3, 3: 5, 11: 2, 12: 4, 13: 6},
        edges=[(0, 1), (1, 2), (2, 3), (0, 11), (11, 12), (12, 13)],
        accumulators=set(),
        parents=dict.fromkeys(range(1, 7)),
    )
    kinds = {1: "a", 3: "a", 5: "a", 2: "b", 4: "b", 6: "b"}
    assert runs(ops, kinds) == ((1, 3, 5), (2, 4, 6))


def test_what_a_gradient_goes_through_between_two_equal_calls_keeps_them_apart():
    """Also where it was made before both, as on another thread: else the fold would lead to itself."""
    ops = Ops(
        call_of={0: 0, 1: 1, 2: None}, edges=[(0, 1), (0, 2), (2, 1)], accumulators=set(), parents={0: None, 1: None}
    )
    assert repeats(ops, fold_nodes(ops, 0), {0: 9, 1: 8, 2: 1}, {0: "block", 1: "block"}) == ()


@pytest.mark.parametrize(
    ("many", "folded_as"), [(MOST_APART, ((0, 1), (10, 11))), (MOST_APART + 1, (tuple(range(12)),))]
)
def test_calls_apart_leave_their_run_unless_they_are_too_many(many, folded_as):
    ops = chain(list(range(12)))
    assert runs(ops, dict.fromkeys(range(12), "block"), apart=range(2, 2 + many)) == folded_as


def test_the_digits_of_a_chain_are_no_part_of_its_kind():
    assert mask_chain("net#0.h.12#0.lin#3") == "net#*.h.*#*.lin#*"


@given(graphs(), st.data())
def test_no_fold_makes_a_cycle_and_every_run_is_of_one_kind(ops, data):
    found = fold_nodes(ops, data.draw(st.integers(0, deepest(ops))))
    calls = sorted({call for call in found.values() if call is not None})
    kinds = {call: data.draw(st.sampled_from("ab")) for call in calls}
    apart = data.draw(st.sets(st.sampled_from(calls))) if calls else set()
    made = {node: data.draw(st.integers(0, 60)) for node in ops.call_of if data.draw(st.booleans())}
    told = repeats(ops, found, made, kinds, apart)
    folded_calls = [call for run in told for call in run]
    assert len(folded_calls) == len(set(folded_calls))
    assert all(len(run) > 1 and len({kinds[call] for call in run}) == 1 for run in told)
    first = {call: run[0] for run in told for call in run}
    named = {node: ("n", node) if call is None else ("c", first.get(call, call)) for node, call in found.items()}
    after = {}
    for start, end in ops.edges:
        if named[start] != named[end]:
            after.setdefault(named[start], set()).add(named[end])
    TopologicalSorter(after).prepare()  # raises CycleError
