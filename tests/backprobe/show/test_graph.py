"""The drawing of an autograd graph."""

import itertools
import random
import re
import time
import xml.etree.ElementTree as ET

import msgspec

from backprobe.record import Edge, Node, NodePass
from backprobe.show.drawing import graph, svg
from backprobe.show.drawing.box_layout import place, ranks
from tests.backprobe.show.records import two_leaves

SVG = "{http://www.w3.org/2000/svg}"


def test_leaves_nodes_and_what_was_freed_are_told_apart() -> None:
    drawn = graph.graph_of(two_leaves())
    assert {box.label: (box.kind, box.state) for box in drawn.boxes} == {
        "loss": ("non-leaf", "nothing"),
        "MulBackward0": ("node", "freed"),
        "w": ("leaf", "leaf"),
        "x": ("leaf-no-grad", "leaf"),
    }
    assert {(edge.start, edge.end, edge.wanted) for edge in drawn.edges} == {
        ("n0", "n1", True),
        ("n1", "t0", True),
        ("n1", "t1", False),
    }
    assert drawn.call == 1


def test_an_untracked_leaf_is_drawn_where_only_the_statement_knows_it() -> None:
    drawn = graph.graph_of(two_leaves(saved=()))
    assert ("n1", "t1", False) in {(edge.start, edge.end, edge.wanted) for edge in drawn.edges}


def test_held_is_told_from_freed() -> None:
    record = two_leaves()
    held = tuple(msgspec.structs.replace(node, freed_by=None) for node in record.nodes)
    drawn = graph.graph_of(two_leaves(nodes=held))
    assert {box.label: box.state for box in drawn.boxes}["MulBackward0"] == "held"


def test_boxes_beyond_the_cap_are_counted() -> None:
    drawn = graph.graph_of(two_leaves(), most=2)
    assert drawn.hidden == {"nodes": 1}
    assert "1 nodes not drawn" in svg.render(drawn)


def test_a_record_without_a_backward_call_has_an_empty_drawing() -> None:
    drawn = graph.graph_of(two_leaves(backward_calls=(), node_passes=(), nodes=(), edges=(), saved=(), tensor_nodes=()))
    assert drawn.boxes == ()
    assert "no graph to draw" in svg.render(drawn)


def test_a_drawing_is_well_formed_and_says_what_it_is() -> None:
    root = ET.fromstring(svg.render(graph.graph_of(two_leaves())))
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == root.get("aria-label") == "Autograd graph of backward call 1: 4 boxes"
    assert len([box for box in root.iter(f"{SVG}g") if "bp-box" in box.get("class", "")]) == 4


def test_a_drawing_for_a_page_brings_no_style_and_no_script() -> None:
    drawn = svg.render(graph.graph_of(two_leaves()), standalone=False)
    assert not re.search(r"<style|style=|<script|\son\w+=|href=", drawn)


def test_a_drawing_that_stands_alone_has_both_themes() -> None:
    drawn = svg.render(graph.graph_of(two_leaves()))
    assert "prefers-color-scheme:dark" in drawn
    for light, dark in svg.TOKENS.values():
        assert light in drawn
        assert dark in drawn


def test_names_from_a_snippet_are_escaped() -> None:
    evil = "<script>alert(1)</script>\"'&\x00\u202e\ud800"
    drawn = svg.render(graph.graph_of(two_leaves(names=(evil, "x", "loss"))))
    ET.fromstring(drawn)
    assert "<script" not in drawn
    assert "\x00" not in drawn
    assert "\u202e" not in drawn
    drawn.encode()


def test_every_edge_points_down_and_no_boxes_touch() -> None:
    generator = random.Random(0)
    for _ in range(30):
        count = generator.randint(2, 60)
        boxes = {f"b{number}": generator.uniform(40, 260) for number in range(count)}
        edges = [
            (f"b{a}", f"b{b}") for a in range(count) for b in range(a + 1, count) if generator.random() < 2 / count
        ]
        placed = place(boxes, edges, box_height=40, gap=10, row_gap=30)
        rows: dict[float, list[tuple[float, float]]] = {}
        for box, (x, y) in placed.centres.items():
            rows.setdefault(y, []).append((x - boxes[box] / 2, x + boxes[box] / 2))
        for upper, lower in edges:
            assert placed.centres[upper][1] < placed.centres[lower][1]
        for spans in rows.values():
            spans.sort()
            assert all(left[1] <= right[0] - 9.99 for left, right in itertools.pairwise(spans))
        assert all(left >= -0.01 and right <= placed.width + 0.01 for spans in rows.values() for left, right in spans)


def test_a_row_is_the_longest_way_from_a_root() -> None:
    assert ranks(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]) == {"a": 0, "b": 1, "c": 2}


def test_a_cycle_in_a_strangers_record_does_not_hang() -> None:
    assert ranks(["a", "b", "c"], [("a", "b"), ("b", "a"), ("c", "a")]) == {"c": 0, "a": 2, "b": 2}
    record = two_leaves()
    loop = (*record.edges, Edge(node=1, slot=2, to_node=0))
    assert svg.render(graph.graph_of(two_leaves(edges=loop)))


def test_a_chain_deeper_than_the_stack_is_drawn() -> None:
    """20 times the nodes may take 20 times as long, and a constant for the start: squared would be 400 times."""
    seconds = {}
    for count in (1000, 20_000):
        nodes = tuple(Node(node=n, type="MulBackward0", thread=0, first_seen=3, seq=count - n) for n in range(count))
        edges = tuple(Edge(node=n, slot=0, to_node=n + 1) for n in range(count - 1))
        passes = tuple(NodePass(call=0, node=n, position=n) for n in range(count))
        record = two_leaves(nodes=nodes, edges=edges, node_passes=passes, tensor_nodes=(), saved=())
        start = time.process_time()
        drawn = graph.graph_of(record, most=count)
        assert len(drawn.boxes) == count
        assert svg.render(drawn)
        seconds[count] = time.process_time() - start
    assert seconds[20_000] < 100 * seconds[1000]
