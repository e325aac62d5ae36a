"""The training loops of Lightning, transformers and Accelerate, watched: tiny models, the real libraries.

Each is a separate program: these libraries change what is loaded in a process for all tests behind them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import inherited
from tests.support.resources import ROOT

pytestmark = pytest.mark.usefixtures("fresh_python")

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("lightning_training", ["watched", "raised", "not watched twice", "every=0: a step is taken at every so many, so it is 1 or more"]),
        ("transformers_training", ["watched"]),
        ("accelerate_loop", ["watched"]),
    ],
)  # fmt: skip
def test_a_training_loop_of_others_is_watched(program, printed, tmp_path):
    environment = inherited() | {"PYTHONPATH": str(ROOT), "BACKPROBE_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(PROGRAMS / f"{program}.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    assert said == printed, done.stdout
