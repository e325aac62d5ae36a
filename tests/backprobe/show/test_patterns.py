"""Boxes that come again and again share one, and that makes no cycle."""

from __future__ import annotations

from graphlib import TopologicalSorter
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backprobe.show.drawing import repeated_patterns
from backprobe.show.drawing.module_boxes import Ops, fold_nodes, part_of_call
from backprobe.show.drawing.repeated_patterns import LONGEST, MOST_BOXES, elements, patterns
from backprobe.show.drawing.shared_boxes import Folding, shared_boxes
from tests.backprobe.show.graphs import graphs


def find_patterns(text):
    """Patterns of a word, as (start, instance, times); a space is equal to nothing."""
    parts = elements([("node", at) for at in range(len(text))], ())
    kinds = {("node", at): letter for at, letter in enumerate(text) if letter != " "}
    return [(found[0][0][1], "".join(text[box[1]] for box in found[0]), len(found)) for found in patterns(parts, kinds)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("xabcabcabcy", [(1, "abc", 3)]),
        ("aaaa", [(0, "a", 4)]),
        ("aaa", []),  # two boxes spared are no gain
        ("abab abab", []),
        ("ababab abcabc", [(0, "ab", 3), (7, "abc", 2)]),
        ("xyxyxyxyzz" * 3, [(0, "xyxyxyxyzz", 3)]),  # the longer one spares more
        ("", []),
    ],
)
def test_what_comes_again_and_again_is_found(text, found):
    assert find_patterns(text) == found


def test_equal_calls_that_share_a_box_are_one_element_of_a_pattern():
    order = [("call", 1), ("call", 2), ("node", 9), ("call", 3), ("call", 4), ("node", 8)]
    parts = elements(order, [(1, 2), (3, 4)])
    assert parts == [tuple(order[:2]), tuple(order[2:3]), tuple(order[3:5]), tuple(order[5:])]


def loop(steps):
    """A loop of `steps` times three nodes in a row, each step with a separate leaf, behind a root; and one for all."""
    nodes = range(1 + 3 * steps)
    leaves = {1000 + step: step for step in range(steps)} | {5000: 77}
    edges = [(at, at + 1) for at in list(nodes)[:-1]]
    edges += [(2 + 3 * step, 1000 + step) for step in range(steps)] + [(0, 5000), (1, 5000)]
    ops = Ops(call_of=dict.fromkeys([*nodes, *leaves]), edges=edges, accumulators=set(leaves), parents={})
    kinds = {("node", node): "abc"[(node - 1) % 3] for node in nodes if node}
    made = {node: 10_000 - node for node in nodes}
    return Folding(ops=ops, found=fold_nodes(ops, 0), runs=(), made=made, leaves=leaves, kinds=kinds)


def test_a_loop_without_modules_is_one_box_with_its_leaves_and_opens_instance_by_instance():
    whole = loop(40)
    seen = shared_boxes(whole, patterns_beyond=MOST_BOXES)
    assert seen.count == 3
    assert seen.instances == {"p1x40": tuple(range(1, 121, 3))}
    assert {seen.ids[0], seen.ids[1], seen.ids[1039], seen.ids[5000]} == {"n0", "p1x40", "t77"}
    opened = shared_boxes(whole, patterns_beyond=MOST_BOXES, opened=[31])
    assert set(opened.instances) == {"p1x10", "p34x29"}
    assert {opened.ids[node] for node in (31, 32, 33, 1010)} == {"n31", "n32", "n33", "t10"}
    assert opened.instance_of[1] == opened.instance_of[3] == 1


def test_few_boxes_are_shown_each():
    assert shared_boxes(loop(40), patterns_beyond=None).count == 162
    few = loop((MOST_BOXES - 2) // 4)
    assert shared_boxes(few, patterns_beyond=MOST_BOXES).instances == {}


def test_a_pattern_is_not_looked_for_beyond_its_longest():
    text = "".join(chr(200 + at) for at in range(LONGEST + 1)) * 2
    assert find_patterns(text) == []


def square_free(length):
    """Of three symbols, none of its parts twice in a row: the gaps between the zeros of the Thue-Morse word."""
    ones = [at.bit_count() % 2 for at in range(4 * length)]
    zeros = [at for at, item in enumerate(ones) if not item]
    return [second - first for first, second in pairwise(zeros)][:length]


@pytest.fixture
def looked_at(monkeypatch):
    """How many boxes were looked at, each as often as it was."""
    counts = []
    likely = repeated_patterns._likely
    monkeypatch.setattr(repeated_patterns, "_likely", lambda text: counts.append(len(text)) or likely(text))
    return counts


def test_many_small_patterns_that_spare_alike_are_found_by_few_looks(looked_at):
    text = "".join("abc"[symbol - 1] * 4 for symbol in square_free(500))
    assert find_patterns(text) == [(4 * at, letter, 4) for at, letter in enumerate(text[::4])]
    assert sum(looked_at) <= 2 * len(text)


def test_what_has_a_pattern_of_each_size_is_not_looked_at_without_end(looked_at):
    text = "".join(chr(200 + size % 7) * size for size in range(100, 3, -1))
    found = find_patterns(text)
    assert found[0] == (0, text[0], 100)
    assert sum(looked_at) <= 21 * len(text)


LOADED = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
"""A machine with other work on it draws slowly."""


@LOADED
@given(graphs(), st.integers(1, 3), st.data())
def test_no_pattern_makes_a_cycle(ops, variety, data):
    found = fold_nodes(ops, data.draw(st.integers(0, 2)))
    made = {node: -node for node in ops.call_of if node not in ops.accumulators}
    kinds = {("node", node): node % variety for node, call in found.items() if call is None}
    kinds |= {("call", call): call % variety for call in found.values() if call is not None}
    leaves = {node: node for node in ops.accumulators}
    folding = Folding(ops=ops, found=found, runs=(), made=made, leaves=leaves, kinds=kinds)
    seen = shared_boxes(folding, patterns_beyond=0)
    ways = {(seen.ids[start], seen.ids[end]) for start, end in ops.edges}
    before = {box: {start for start, end in ways if end == box and start != box} for box in seen.ids.values()}
    list(TopologicalSorter(before).static_order())
    assert seen.ids.keys() == ops.call_of.keys()


@LOADED
@given(graphs(), st.data())
def test_what_is_seen_of_one_call_is_made_in_it_or_a_leaf_of_it_alone(ops, data):
    calls = sorted({call for call in ops.call_of.values() if call is not None})
    focus = data.draw(st.sampled_from(calls)) if calls else 0
    part = part_of_call(ops, focus)
    for node in part.call_of:
        if node in ops.accumulators:
            assert {start for start, end in ops.edges if end == node} <= part.call_of.keys()
        else:
            call = ops.call_of[node]
            while call != focus:
                call = ops.parents[call]
    assert set(part.edges) <= set(ops.edges)
