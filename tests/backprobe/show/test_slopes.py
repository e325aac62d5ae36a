"""Backward calls of one statement whose counts grow are one row with the slope."""

from __future__ import annotations

from dataclasses import replace

from backprobe.show.backward_calls import CallRow
from backprobe.show.formats.terminal_report import _call_lines
from backprobe.show.slopes import slope_text

ROW = CallRow(
    number=1, path="train.py", line=6, entry="Tensor.backward", roots=("loss",), retain_graph=True,
    retain_graph_given=True, create_graph=False, nodes_met=3, nodes_run=3, nodes_freed=0, held_bytes=12,
    freed_bytes=0, outcome="returned", truncated=False,
)  # fmt: skip


def rows(*nodes: int) -> list[CallRow]:
    return [
        replace(ROW, number=at, nodes_met=count, nodes_run=count, held_bytes=4 * count)
        for at, count in enumerate(nodes, start=1)
    ]


def test_equal_steps_are_told_exactly():
    told = slope_text(rows(3, 6, 9, 12))
    assert told == "4 calls: 3 to 12 nodes, +3 a call; freed 0 B saved each; still held: 12 B to 48 B, +12 B a call"


def test_unequal_steps_are_told_about_and_a_zigzag_has_its_bounds():
    assert "3 to 12 nodes, about +4 a call" in slope_text(rows(3, 4, 12))  # (12 - 3) / 2 = 4.5, to even
    assert "2 to 9 nodes;" in slope_text(rows(3, 9, 2))
    assert "9 to 3 nodes, -3 a call" in slope_text(rows(9, 6, 3))


def test_the_row_names_the_calls_and_their_place():
    lines = _call_lines(rows(3, 6, 9, 12))
    assert lines[0].startswith("  1-4  line 6  Tensor.backward from `loss`")
    assert "+3 a call" in lines[1]
