"""The bytes that a graph holds for backward, beside those of the memory that torch packs when it is built."""

from __future__ import annotations

import pytest
import torch

from tests.backprobe.capture.in_process import recorded

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
x = torch.linspace(0.1, 1.2, 12).reshape(3, 4).requires_grad_()
w = torch.ones(4, 5, requires_grad=True)
"""
PROGRAMS = (
    "z = x.exp().sum()",
    "z = (x * x).sum()",
    "z = (x @ w).relu().pow(2).sum()",
    "z = (x[1:] * x[:2].sigmoid()).sum()",
    "z = nn.LayerNorm(4)(x).tanh().mean()",
    "z = torch.nn.functional.cross_entropy(x @ w, torch.tensor([0, 1, 2]))",
    "z = nn.Conv1d(3, 2, 2)(x[None]).sum()",
    "z = (x + 1).sum()",
)


def packed(program: str) -> int:
    """Bytes of the distinct memory that is handed to a pack hook while the graph is built; it stays alive."""
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), storage)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        exec(HEAD + program, {})
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_graph_holds_the_bytes_that_torch_packed(program):
    record = recorded(f"{HEAD}{program}\nz.backward()\n")
    (call,) = record.backward_calls
    assert call.held_bytes == call.freed_bytes == packed(program)
