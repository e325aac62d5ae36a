"""Clipping, schedules and gradient scalers are recorded with their numbers, and only once each."""

from __future__ import annotations

import math

import pytest

from tests.backprobe.capture.in_process import line_of, recorded

HEAD = """\
import torch
p = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
opt = torch.optim.SGD([p], lr=0.5)
(p * p).sum().backward()
"""


def test_clipping_tells_the_norm_before_it_and_whose_tensors_they_are() -> None:
    record = recorded(
        HEAD + "n = torch.nn.utils.clip_grad_norm_([p], 1.0)\ntorch.nn.utils.clip_grad_value_([p], 0.25)\n"
    )
    norm, value = record.optimizer_events
    assert norm.kind == "clip_grad_norm"
    assert (norm.limit, norm.norm_type, norm.optimizer, norm.with_grad) == (1.0, 2.0, 0, 1)
    assert norm.total_norm == pytest.approx(math.hypot(6, 8))
    assert line_of(record, norm.site) == 5
    assert (value.kind, value.limit, value.with_grad) == ("clip_grad_value", 0.25, 1)


def test_a_generator_of_parameters_is_clipped_as_it_would_be() -> None:
    source = HEAD + "torch.nn.utils.clip_grad_norm_((x for x in [p]), 1.0)\nassert p.grad.norm() < 1.001\n"
    record = recorded(source)
    assert record.end is not None
    assert record.end.ending == "ended"
    assert record.optimizer_events[0].with_grad == 1


SCHEDULES = {
    "StepLR(opt, 1, gamma=0.1)": (0.05,),
    "ReduceLROnPlateau(opt)": (0.5,),
    "CosineAnnealingWarmRestarts(opt, 2)": (0.25,),
    "SequentialLR(opt, [torch.optim.lr_scheduler.ConstantLR(opt, 0.5), torch.optim.lr_scheduler.ConstantLR(opt, 1.0)], [9])": (
        0.25,
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedules_step_is_one_event_and_its_first_of_its_own_none(schedule: str) -> None:
    given = "1.0" if "Plateau" in schedule else ""
    record = recorded(HEAD + f"s = torch.optim.lr_scheduler.{schedule}\nopt.step()\ns.step({given})\n")
    (row,) = [row for row in record.optimizer_events if row.kind == "scheduler_step"]
    assert row.learning_rates == pytest.approx(SCHEDULES[schedule])
    assert (row.optimizer, row.cls, line_of(record, row.site)) == (0, schedule.split("(", maxsplit=1)[0], 7)


SCALED = """\
import torch
p = torch.nn.Parameter(torch.tensor([3.0]))
opt = torch.optim.SGD([p], lr=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
scaler.scale((p * {factor}).sum()).backward()
scaler.unscale_(opt)
scaler.step(opt)
scaler.update()
"""


def test_a_scaler_that_finds_no_infinity_steps() -> None:
    rows = recorded(SCALED.format(factor=2)).optimizer_events
    kinds = ["scaler_scale", "scaler_unscale", "step", "scaler_step", "scaler_update"]
    assert [row.kind for row in rows] == kinds
    by = {row.kind: row for row in rows}
    assert (by["scaler_unscale"].found_inf, by["scaler_step"].skipped, by["scaler_scale"].scale_before) == (
        False,
        False,
        4.0,
    )


def test_a_scaler_that_finds_an_infinity_skips_the_step_and_lowers_its_factor() -> None:
    by = {row.kind: row for row in recorded(SCALED.format(factor="float('inf')")).optimizer_events}
    assert "step" not in by
    assert (by["scaler_unscale"].found_inf, by["scaler_step"].skipped) == (True, True)
    assert (by["scaler_update"].scale_before, by["scaler_update"].scale_after) == (4.0, 2.0)
    assert by["scaler_update"].found_inf is True


def test_a_parameter_group_that_is_added_later_is_told_the_first_ones_are_not() -> None:
    record = recorded(HEAD + "opt.add_param_group({'params': [torch.nn.Parameter(torch.ones(1))], 'lr': 0.1})\n")
    assert [(row.kind, row.learning_rates) for row in record.optimizer_events] == [("add_param_group", (0.5, 0.1))]
