"""What a long training and an interrupted one are under capture: no larger, nothing kept alive, and signals as plain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import run

HERE = Path(__file__).parent
FOLDER = HERE / "programs" / "trainings"
MIB = 1 << 20


def long_run(tmp_path: Path, core: str | None) -> dict[str, Any]:
    """What `long.py` says of itself, plain (`core` None) or captured with the usual caps."""
    command = [str(FOLDER / "long.py")]
    if core is not None:
        command = [str(HERE / "capture_with.py"), str(tmp_path / "note"), "full", "usual", *command]
    environment = {**os.environ, "BACKPROBE_CORE": core or "python"}
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    if core is not None:
        assert json.loads((tmp_path / "note").read_text())["own_errors"] == 0
    return json.loads(done.stdout)


@pytest.mark.parametrize("core", ["c", "python"])
def test_two_thousand_steps_leave_the_process_as_large_as_five_hundred_did(core: str, tmp_path: Path, require) -> None:
    if core == "c":
        require("core")
    plain, captured = long_run(tmp_path, None), long_run(tmp_path, core)
    assert captured["last"] == plain["last"]
    rows = [captured["told"][key] for key in ("500", "1000", "1500", "2000")]
    assert [alive for _, _, alive in rows] == [0, 0, 0, 0], "tensors that the program let go of"
    objects, sizes = [row[0] for row in rows], [row[1] for row in rows]
    assert objects[-1] - objects[0] < 300, objects
    assert sizes[-1] - sizes[0] < 6 * MIB, sizes


SIGNALS = [("alarm", "counts"), ("alarm", "raises"), ("term", "counts"), ("term", "raises"), ("int", "counts")]
SIGNALS += [("int", "raises"), ("int", "default")]


@pytest.fixture(scope="module")
def signalled() -> dict[tuple[str, str, str], dict[str, Any]]:
    keys = [(*pair, mode) for pair in SIGNALS for mode in ("plain", "captured-grad", "captured-full")]
    path = str(FOLDER / "signals.py")
    jobs = [(mode, path, [name, how]) for name, how, mode in keys]
    return dict(zip(keys, run(jobs), strict=True))


@pytest.mark.parametrize(("name", "how"), SIGNALS)
def test_a_signal_is_met_as_plain(name: str, how: str, signalled: Any) -> None:
    plain = signalled[name, how, "plain"]
    assert plain["code"] == (130 if how == "default" else 0), plain["err"]
    assert plain["out"].count("\n") >= 2
    for mode in ("captured-grad", "captured-full"):
        ran = signalled[name, how, mode]
        assert (ran["out"], ran["err"], ran["code"]) == (plain["out"], plain["err"], plain["code"]), mode
        assert ran["own_errors"] == 0, ran["own_error"]


@pytest.mark.parametrize("mode", ["plain", "captured"])
def test_a_process_that_is_terminated_ends_by_the_signal(mode: str, tmp_path: Path) -> None:
    command = [str(FOLDER / "signals.py"), "term", "default"]
    if mode == "captured":
        command = [str(HERE / "capture_with.py"), str(tmp_path / "note"), "full", "usual", *command]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-15, "", "")
