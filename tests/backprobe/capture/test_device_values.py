"""Tensors that lie on another device: their values come over once a step, and are those of the same run on the CPU.

The device is written in Python and counts what is asked of it. It must be known before the first backward call of a
process, so each core has a process of its own, which runs all programs and prints what it found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from backprobe.capture.torch_access import native
from tests.support.resources import ROOT

pytestmark = pytest.mark.timeout(700)  # the first case of a core waits for its process

CORES = ["python", *(["c"] if native.native is not None else [])]


@cache
def found(kind: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.backprobe.capture.on_held_device"]
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
    waits = found(kind)["waits"]
    assert waits["plain"] == 0
    assert waits["full, 13 steps"] - waits["full, 3 steps"] == 10
    assert waits["state, 3 steps"] == waits["grad, 3 steps"] == 0


@pytest.mark.parametrize("kind", CORES)
def test_the_numbers_are_those_of_the_same_run_on_the_cpu(kind: str) -> None:
    there, here = found(kind)["held"], found(kind)["cpu"]
    assert there.keys() == here.keys()
    for key, numbers in here.items():
        assert there[key] == pytest.approx(numbers, rel=1e-4, abs=1e-4), key


@pytest.mark.parametrize("kind", CORES)
def test_a_program_without_steps_has_its_values_at_its_end(kind: str) -> None:
    told = found(kind)["without steps"]
    assert told["values"] == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [2.0, 2.0, 2.0]]
    assert told["waits"] == 1


@pytest.mark.parametrize("kind", CORES)
def test_the_values_of_inference_tensors_come_too(kind: str) -> None:
    told = found(kind)["inference"]
    assert told["values"] == [[2.0, 4.0, 6.0]]
    assert told["norms"] == [pytest.approx((100 * 56) ** 0.5)]


@pytest.mark.parametrize("kind", CORES)
def test_while_somebody_watches_operations_none_of_ours_runs(kind: str) -> None:
    watched = found(kind)["watched"]
    assert watched["ours"] == []
    assert watched["own_errors"] == 0


@pytest.mark.parametrize("kind", CORES)
def test_a_device_that_fails_costs_the_values_and_is_told(kind: str) -> None:
    failing = found(kind)["failing"]
    assert failing["printed"] == "done"
    assert failing["own_errors"] == 0
    assert failing["values"] == 0
    assert failing["snapshots"] > 0
    assert failing["why"] == ["values did not come from held:0: RuntimeError"]
