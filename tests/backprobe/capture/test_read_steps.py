"""Of a watched job with short steps most are counted and not read; what goes wrong in them is recorded all the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import backprobe
from backprobe.capture.instrument.taps import Active
from backprobe.capture.tracking import read_steps, step_rows
from backprobe.capture.tracking.read_steps import ReadSteps
from backprobe.record import Record
from backprobe.record.rows.series import steps_looked_at

MS = 1_000_000
READ = [*range(50), *range(50, 131, 10)]
"""Of 131 short steps."""


def nothing(step: int, loss: torch.Tensor) -> torch.Tensor:
    return loss


def watched(
    steps: int = 131,
    change: Callable[[int, torch.Tensor], torch.Tensor] = nothing,
    *,
    optimizers: Callable[[nn.Module, int], list[torch.optim.Optimizer]] | None = None,
) -> Record:
    """A job of so many steps; `change(step, loss)` is walked back, `optimizers(model, step)` step then."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    own = torch.optim.SGD(model.parameters(), lr=0.01)
    stepping = optimizers or (lambda _model, _step: [own])
    with backprobe.watch(model, own, url="", report=False) as watching:
        for step in range(steps):
            using = stepping(model, step)
            for optimizer in using:
                optimizer.zero_grad()
            change(step, model(torch.ones(2, 3)).pow(2).mean()).backward()
            for optimizer in using:
                optimizer.step()
    assert watching.record is not None
    assert watching.record.end is not None
    assert watching.record.end.own_errors == 0, watching.record.end.own_error
    return watching.record


def numbers(record: Record) -> list[int]:
    return [row.step for row in record.steps]


def test_who_is_run_whole_and_whose_steps_are_long_is_read_at_each_step() -> None:
    long, short, whole = ReadSteps(thins=True), ReadSteps(thins=True), ReadSteps(thins=False)
    for _ in range(10):
        long.took(60 * MS)
        short.took(40 * MS)
        whole.took(40 * MS)
    assert all(long.is_read(step) and whole.is_read(step) for step in range(200))
    assert [step for step in range(131) if short.is_read(step)] == READ


def test_what_it_decided_once_it_keeps() -> None:
    steps = ReadSteps(thins=True)
    assert steps.is_read(51), "nothing is known of how long they take"
    steps.took(40 * MS)
    assert not steps.is_read(52)
    for _ in range(100):
        steps.took(1000 * MS)
    assert not steps.is_read(53)


def test_a_watched_job_has_rows_of_its_first_steps_then_of_each_tenth_and_of_the_last() -> None:
    record = watched(135)
    assert numbers(record) == [*READ, 134]
    assert steps_looked_at(record.steps)[1] == 135
    read = [row for row in record.steps if row.step != 134]
    assert all(row.loss is not None and row.grad_norm is not None and row.learning_rate == 0.01 for row in read)
    assert all(row.backward_calls == 1 for row in read)
    assert record.steps[-1].loss is None, "it was counted, not read"


def test_steps_that_take_long_have_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_steps, "_SHORT_NS", 0)
    assert numbers(watched()) == list(range(131))


def test_a_loss_that_stays_nan_is_told_at_the_next_step_that_is_read() -> None:
    record = watched(change=lambda step, loss: loss * (math.nan if step >= 73 else 1))
    odd = next(row for row in record.steps if row.anomaly is not None)
    assert (odd.step, odd.anomaly) == (80, "non-finite")
    assert {row.step for row in record.steps if row.why == "after-anomaly"} >= {81, 82}


def warn(step: int, loss: torch.Tensor) -> torch.Tensor:
    if step == 73:
        nn.functional.mse_loss(loss, torch.ones(2))
    return loss


def test_a_warning_of_torch_in_a_step_that_is_not_read_has_its_row() -> None:
    with pytest.warns(UserWarning, match="target size"):
        record = watched(change=warn)
    odd = [row for row in record.steps if row.anomaly is not None]
    assert [(row.step, row.anomaly) for row in odd] == [(73, "warning")]
    assert {row.step for row in record.steps if row.why == "after-anomaly"} == {74, 75}
    assert {80, 90, 100} < set(numbers(record))


def test_the_last_step_is_told_though_rows_thin_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_rows, "is_kept", lambda times, _in_full: times <= 10)
    rows = [row.step for row in watched(195).steps if not row.sampled]
    assert rows[-1] == 194
    assert len(rows) == len(set(rows)) < 20


@pytest.mark.parametrize("steps", [51, 52])
def test_the_row_of_a_last_step_that_was_read_stays(steps: int) -> None:
    record = watched(steps)
    assert numbers(record) == list(range(steps))
    assert record.steps[50].loss is not None


def test_another_optimizers_steps_are_no_steps_of_the_job() -> None:
    made: dict[int, torch.optim.Optimizer] = {}

    def two(model: nn.Module, step: int) -> list[torch.optim.Optimizer]:
        first, second = (made.setdefault(at, torch.optim.SGD(model.parameters(), lr=0.01)) for at in (0, 1))
        return [first, second, second]

    record = watched(optimizers=two)
    assert numbers(record) == READ


def test_a_job_whose_optimizer_is_replaced_goes_on_counting() -> None:
    made: list[torch.optim.Optimizer] = []

    def renewed(model: nn.Module, step: int) -> list[torch.optim.Optimizer]:
        if step in (0, 75):
            made[:] = [torch.optim.SGD(model.parameters(), lr=0.01)]
        return made

    record = watched(optimizers=renewed)
    assert steps_looked_at(record.steps)[1] == 131


def test_calls_that_are_open_when_a_step_ends_inside_of_them_are_closed() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step_at_once(_: Any) -> None:
        optimizer.step()
        assert Active.recorder is not None
        timeline = Active.recorder.timeline()
        was_open = [*timeline.calls], [*timeline.entries]
        with torch.enable_grad():
            leaf = torch.ones(1, requires_grad=True)
            torch.autograd.grad((leaf * 2).sum(), leaf)
        assert ([*timeline.calls], [*timeline.entries]) == was_open

    model[1].weight.register_post_accumulate_grad_hook(step_at_once)
    with backprobe.watch(model, optimizer, url="", report=False) as watching:
        for _ in range(131):
            model(torch.ones(2, 3)).pow(2).mean().backward()
            assert Active.recorder is not None
            assert not Active.recorder.timeline().entries
            assert not Active.recorder.timeline().calls
    record = watching.record
    assert record is not None
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert steps_looked_at(record.steps)[1] in (131, 132)
    assert all(call.outcome == "finished" for call in record.backward_calls)


@pytest.mark.parametrize("steps", [49, 50, 51, 59, 60, 61, 69, 70, 300])
def test_a_record_tells_how_many_steps_were_made_wherever_the_job_ends(steps: int) -> None:
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    other = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.01)
    with backprobe.watch(model, optimizer, url="", report=False) as watching:
        for _ in range(steps):
            model(torch.ones(2, 3)).pow(2).mean().backward()
            optimizer.step()
            other.step()
    looked_at, made = steps_looked_at(watching.record.steps)
    assert made == steps
    assert looked_at <= made
