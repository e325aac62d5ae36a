"""A `torch.autograd.Function` of the program is a node of its graph, and what a checkpoint does again is recorded."""

from __future__ import annotations

from tests.backprobe.capture.in_process import line_of, recorded

DOUBLE = """\
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
w = torch.ones(3, requires_grad=True)
y = Double.apply(w)
y.sum().backward()
"""

CHECKPOINT = """\
import torch
from torch.utils.checkpoint import checkpoint
w = torch.ones(3, requires_grad=True)
def body(a):
    return torch.nn.functional.dropout(a, 0.5).exp()
y = checkpoint(body, w, use_reentrant={reentrant})
y.sum().backward()
"""


def test_a_custom_function_is_a_node_at_its_line_with_what_it_saved() -> None:
    record = recorded(DOUBLE)
    (node,) = [row for row in record.nodes if row.type == "DoubleBackward"]
    assert line_of(record, node.site) == 11
    bound = {row.name: row.tensor for row in record.bindings}
    assert [row.tensor for row in record.tensor_nodes if row.node == node.node] == [bound["y"]]
    targets = {edge.to_node for edge in record.edges if edge.node == node.node}
    assert [row.type for row in record.nodes if row.node in targets] == ["AccumulateGrad"]
    assert any(row.node == node.node for row in record.node_passes)


def test_a_checkpoint_is_told_with_the_function_that_runs_again_inside_backward() -> None:
    for reentrant in (True, False):
        record = recorded(CHECKPOINT.format(reentrant=reentrant))
        names = [row.function.rpartition(".")[2] for row in record.watched_calls]
        assert names == ["dropout", "checkpoint", "dropout"]
        call = record.watched_calls[1]
        assert (call.arguments["use_reentrant"], line_of(record, call.site)) == (reentrant, 6)
        before = next(row.moment_before for row in record.backward_calls if row.parent is None)
        assert call.moment is not None
        assert call.moment <= before <= (record.watched_calls[2].moment or 0)
        assert any(row.kind != "untouched" for row in record.leaf_grads)
