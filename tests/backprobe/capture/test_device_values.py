"""Tensors that lie on another device: their values come over once a step, and are those of the same run on the CPU.

The device is written in Python and counts what is asked of it. It must be known before the first backward call of a
process, so each core has its own process, which runs all programs and prints what it found.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from backprobe.capture.torch_access import native
from tests.support.resources import ROOT

pytestmark = [
    pytest.mark.timeout(700),
    pytest.mark.usefixtures("fresh_python"),
]  # the first case of a core waits for its process

CORES = ["python", *(["c"] if native.native is not None else [])]


@cache
def run_on_held_device(kind: str, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.backprobe.capture.on_held_device", *words]
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=os.environ | {"BACKPROBE_CORE": kind},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", CORES)
def test_a_step_in_full_waits_once_and_a_plain_one_never(kind: str) -> None:
    waits = run_on_held_device(kind)["waits"]
    assert waits["plain"] == 0
    assert waits["full, 13 steps"] - waits["full, 3 steps"] == 10
    assert waits["state, 3 steps"] == waits["grad, 3 steps"] == 0


@pytest.mark.parametrize("kind", CORES)
def test_the_numbers_are_those_of_the_same_run_on_the_cpu(kind: str) -> None:
    there, here = run_on_held_device(kind)["held"], run_on_held_device(kind)["cpu"]
    assert there.keys() == here.keys()
    for key, numbers in here.items():
        assert there[key] == pytest.approx(numbers, rel=1e-4, abs=1e-4), key


@pytest.mark.parametrize("kind", CORES)
def test_so_they_are_of_tensors_of_every_size(kind: str) -> None:
    there, here = run_on_held_device(kind)["sizes held"], run_on_held_device(kind)["sizes cpu"]
    assert there.keys() == here.keys()
    for key, numbers in here.items():
        assert there[key] == pytest.approx(numbers, rel=1e-4, abs=1e-4), key


@pytest.mark.parametrize("kind", CORES)
@pytest.mark.parametrize("count", [4, 1000, 5000, 140_000])
@pytest.mark.parametrize("odd", [[], [math.nan], [math.inf], [math.nan, -math.inf, math.inf]])
def test_what_is_not_finite_is_counted_in_tensors_of_every_size(kind: str, count: int, odd: list[float]) -> None:
    told = run_on_held_device(kind)["odd"][f"{count} {odd}"]
    assert told["counts"] == [sum(map(math.isnan, odd)), sum(map(math.isinf, odd)), 1, count]
    assert (told["norm"] is not None) == (not odd)


@pytest.mark.parametrize("kind", CORES)
@pytest.mark.parametrize(("sizes", "each"), [("small", 1.25), ("large", 2.5)])
def test_a_measured_tensor_costs_few_operations_on_its_device(kind: str, sizes: str, each: float) -> None:
    cost = run_on_held_device(kind)["cost"][sizes]
    assert cost["values"] + cost["arrived"] > 30
    assert 0 < cost["added"] < each * (cost["values"] + cost["arrived"])


def test_a_gradient_is_asked_for_once_as_it_comes_and_not_again_where_it_stays(require) -> None:
    require("core")
    for sizes in ("small", "large"):
        assert (
            run_on_held_device("c")["cost"][sizes]["added"] < 0.9 * run_on_held_device("python")["cost"][sizes]["added"]
        )


@pytest.mark.parametrize("kind", CORES)
def test_at_tier_state_the_device_is_asked_for_nothing(kind: str) -> None:
    assert run_on_held_device(kind)["cost"]["small"]["state"]
    assert run_on_held_device(kind)["cost"]["large"]["state"]


def test_an_ordinary_tensor_of_another_device_is_described_in_c(require) -> None:
    require("core")
    assert run_on_held_device("c")["states"]["slow"] == []
    assert len(run_on_held_device("python")["states"]["slow"]) > 20


def test_both_cores_tell_the_same_of_tensors_of_another_device(require) -> None:
    require("core")
    ours, twins = (run_on_held_device(kind)["states"]["rows"] for kind in ("c", "python"))
    for table, rows in twins.items():
        assert ours[table] == rows, table
        assert rows, table


def test_only_what_is_plain_is_told_and_its_elements_are_never_read(require) -> None:
    require("core")
    told = run_on_held_device("c")["told"]
    assert told["plain"]
    assert told["others"] == [False] * len(told["others"])
    assert not told["elements"]
    assert not told["statistics"]


def test_a_device_whose_tensors_are_not_what_they_say_is_asked_by_attributes(require) -> None:
    require("core")
    lying = run_on_held_device("c", "lying")
    assert not lying["told"]["plain"]
    assert lying["sizes"] == [6 * 6 * 4 + 1]


@pytest.mark.parametrize("kind", CORES)
def test_a_program_without_steps_has_its_values_at_its_end(kind: str) -> None:
    told = run_on_held_device(kind)["without steps"]
    assert told["values"] == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [2.0, 2.0, 2.0]]
    assert told["waits"] == 1


@pytest.mark.parametrize("kind", CORES)
def test_the_values_of_inference_tensors_come_too(kind: str) -> None:
    told = run_on_held_device(kind)["inference"]
    assert told["values"] == [[2.0, 4.0, 6.0]]
    assert told["norms"] == [pytest.approx((count * 56) ** 0.5) for count in (100, 2_000, 50_000)]


@pytest.mark.parametrize("kind", CORES)
def test_while_somebody_watches_operations_none_of_ours_runs(kind: str) -> None:
    watched = run_on_held_device(kind)["watched"]
    assert watched["ours"] == []
    assert watched["own_errors"] == 0


@pytest.mark.parametrize("kind", CORES)
def test_a_device_that_fails_costs_the_values_and_is_told(kind: str) -> None:
    failing = run_on_held_device(kind)["failing"]
    assert failing["printed"] == "done"
    assert failing["own_errors"] == 0
    assert failing["values"] == 0
    assert failing["snapshots"] > 0
    assert failing["why"] == ["values did not come from held:0: RuntimeError"]
