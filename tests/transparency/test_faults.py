"""Whatever function of the engine raises while a program runs, the program does what it does without us.

A test run takes every 24th function; `BACKPROBE_FAULTS=all` takes them all, which lasts some twenty minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FENCES = {
    "torch_access.fence.Guard.run": "the fence around everything that a tap calls",
    "torch_access.fence.Guard.apart": "the fence around what is done when the program has ended",
    "torch_access.fence.Gate.is_mine": "a comparison before that fence",
    "torch_access.fence.Gate.leave": "what that fence does last",
    "torch_access.fence.Guard.lightly": "the fence around the marks of a step that is not taken in full",
    "torch_access.fence.without_ours": "a loop over frames; what it leaves out would show",
    "program.launch._finish": "steps that are each fenced",
    "program.exit.exit_code": "three comparisons",
    "program.exit.show": "the program's own traceback is printed by it",
    "tracking.graph.nodes.Nodes._on_arrival": "a look-up before the fence",
    "tracking.graph.passes.Passes.take_gradients": "one call of the fence",
    "instrument.taps.step_begins": "one call of the fence",
    "instrument.taps.step_ended": "one call of the fence",
}
"""Functions that are the fence itself, or stand outside of it, with what they consist of."""
PARTS = 24
TAKEN = range(PARTS if os.environ.get("BACKPROBE_FAULTS") == "all" else 1)
REACHED = 3
"""Least number of functions of a part that the program reaches; fewer would mean that the harness plants nothing."""


@pytest.fixture(scope="module", params=[(c, p) for c in ("python", "c") for p in TAKEN], ids=str)
def run_faults(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, require: Any
) -> dict[str, Any]:
    if request.param[0] == "c":
        require("core")
    results = tmp_path_factory.mktemp("faults") / "results.json"
    environment = {**os.environ, "BACKPROBE_CORE": request.param[0]}
    command = [sys.executable, str(HERE / "faults.py"), str(results), f"{request.param[1]}/{PARTS}"]
    subprocess.run(command, check=True, timeout=280, env=environment)
    return json.loads(results.read_text())


def test_the_program_never_notices(run_faults: dict[str, Any]) -> None:
    plain = run_faults[""]
    assert plain["own_errors"] == 0
    assert plain["code"] == 1
    reached = {name: ran for name, ran in run_faults.items() if ran.get("reached")}
    assert len(reached) >= REACHED
    noticed = [n for n, ran in reached.items() if any(ran[key] != plain[key] for key in ("out", "err", "code"))]
    assert set(noticed) <= set(FENCES)


def test_each_error_is_counted_and_the_first_one_told(run_faults: dict[str, Any]) -> None:
    for name, ran in run_faults.items():
        if ran.get("reached") and name not in FENCES:
            assert ran["own_errors"] > 0, name
            assert "planted in" in ran["own_error"], name
