"""What the programs beside this one have in common."""

import torch
from torch import nn

from backprobe.record import check

STEPS = 4


def data():
    return [(torch.full((2, 3), float(n)), torch.ones(2, 1)) for n in range(STEPS)]


def whole(watching, names):
    record = watching.record
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert {row.fqn for row in record.tensors if row.role == "parameter"} == names
    assert [row.kind for row in record.optimizer_events].count("step") == STEPS
    assert len(record.steps) == STEPS
    return record


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 1)

    def forward(self, x, labels):
        return {"loss": nn.functional.mse_loss(self.body(x), labels)}
