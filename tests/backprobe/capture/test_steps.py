"""The row of a training step: loss, norm of the gradients, learning rate, parameters without a gradient."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import backprobe
from backprobe.record import Step


def trained(steps: int, **options) -> tuple[tuple[Step, ...], list[tuple[float, float, float]]]:
    """The rows of a loop's steps, and what the program itself saw in each: loss, norm, learning rate."""
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    idle = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([*model.parameters(), idle], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    seen = []
    with backprobe.watch(model, optimizer, report=False, **options) as watching:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(torch.ones(2, 3)).pow(2).mean()
            loss.backward()
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            rate = optimizer.param_groups[0]["lr"]
            optimizer.step()
            schedule.step()
            seen.append((loss.item(), norm.item(), rate))
    return watching.record.steps, seen


@pytest.mark.parametrize("every", [1, 4], ids=["each in full", "one of four in full"])
def test_a_step_has_its_loss_its_norm_and_its_learning_rate(every):
    rows, seen = trained(6, every=every)
    assert [row.sampled for row in rows[:6]] == [index % every == 0 for index in range(6)]
    for row, (loss, norm, rate) in zip(rows, seen, strict=False):
        assert (row.loss, row.grad_norm) == (pytest.approx(loss), pytest.approx(norm))
        assert (row.learning_rate, row.parameters_without_grad) == (rate, 1)


def test_the_loss_of_a_step_taken_in_full_is_a_tensor_of_the_record():
    rows, _ = trained(2, every=1)
    assert all(row.loss_tensor is not None for row in rows)
    assert rows[0].loss_tensor != rows[1].loss_tensor


def test_a_loss_with_many_elements_has_no_value():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    with backprobe.watch(w, optimizer, report=False) as watching:
        (w * 2).backward(torch.ones(2))
        optimizer.step()
    (row,) = watching.record.steps
    assert (row.loss, row.backward_calls) == (None, 1)


def test_histograms_are_taken_at_each_step_in_full_where_they_are_asked_for():
    net, idle = torch.nn.Linear(3, 2), torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([*net.parameters(), idle], lr=0.5)
    records = []
    for asked in (True, False):
        with backprobe.watch(net, optimizer, report=False, every=2, histograms=asked) as watching:
            for _ in range(4):
                optimizer.zero_grad()
                net(torch.ones(4, 3)).square().sum().backward()
                optimizer.step()
        records.append(watching.record)
    record, without = records
    told = Counter((record.tensors[row.tensor].fqn, row.of) for row in record.histograms)
    assert told["net.weight", "value"] == told["net.weight", "grad"] == told["net.bias", "grad"] == 2
    assert told[record.tensors[0].fqn, "value"] == 2
    assert (sum(told.values()), len(told)) == (10, 5), "what has no gradient has no histogram of one"
    for row in record.histograms:
        numel = record.tensors[row.tensor].numel
        assert sum(row.counts) + row.zeros + row.below + row.above + row.nonfinite == numel
        assert (row.scale, row.low, row.high) == ("log2", 2.0**-40, 2.0**24)
    assert not without.histograms
