"""Graphs that grow from step to step are counted, and once they do their holders are listed."""

from __future__ import annotations

from itertools import pairwise

from tests.backprobe.capture.in_process import recorded

LEAK = """\
import torch
cell = torch.nn.RNNCell(2, 2)
h = torch.zeros(1, 2)
for step in range(6):
    h = cell(torch.ones(1, 2), h){detached}
    h.sum().backward(retain_graph=True)
"""


def test_a_hidden_state_that_is_never_detached_grows_by_the_same_count_each_step() -> None:
    record = recorded(LEAK.format(detached=""))
    met = [call.nodes_met for call in record.backward_calls]
    counts = [row.live_nodes for row in record.growth]
    steps = {after - before for before, after in pairwise(met)}
    assert len(counts) == 6
    assert len(steps) == 1
    assert steps.pop() > 0
    assert counts == met


def test_a_hidden_state_that_is_detached_does_not_grow() -> None:
    record = recorded(LEAK.format(detached="\n    kept, h = h, h.detach().requires_grad_()"))
    counts = [row.live_nodes for row in record.growth]
    assert len(set(counts[1:])) == 1
    assert all(row.holder_search == "not-asked" for row in record.retentions if row.moment < record.moments[-1].moment)


def test_stored_losses_are_found_while_the_loop_runs() -> None:
    record = recorded(
        "import torch\nw = torch.ones(3, requires_grad=True)\nlosses = []\nfor step in range(8):\n"
        "    loss = w.exp().sum()\n    losses.append(loss)\n    loss.backward(retain_graph=True)\n"
    )
    held = [row.held_bytes or 0 for row in record.growth]
    assert held == sorted(held)
    assert held[0] < held[-1]
    early = [row for row in record.retentions if row.holders and row.moment < record.moments[-1].moment]
    assert early
    assert {row.moment for row in early} == {record.growth[3].moment}
    assert ("global losses[0]",) in {row.holders for row in early}
