"""`python -m backprobe.cli.standby`: a process that waits with torch loaded for the arguments of one command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import backprobe
from tests.support.waiting import wait_until

SCRIPT = """import sys, torch
from pathlib import Path
x = torch.ones(3, requires_grad=True)
h = x * 2
h.sum().backward()
Path(__file__).with_name("told").write_text(f"{h.grad} {sys.argv[1:]} {sys.stdin.read()!r} {sys.orig_argv[2]}")
"""


@pytest.fixture
def standby(tmp_path: Path, fresh_python: str):
    """One that waits, in a folder from which it takes Backprobe, and the line that tells it what to run."""
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "backprobe").symlink_to(Path(backprobe.__file__).parent)
    arguments = ["run", "--exit-zero", "--format", "json", "--output", str(tmp_path / "report.json")]
    line = json.dumps([*arguments, str(tmp_path / "train.py"), "a"]).encode() + b"\n"
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    command = [fresh_python, "-m", "backprobe.cli.standby"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=tmp_path)
    yield process, line
    process.kill()
    process.communicate()


def has_torch(process: subprocess.Popen[bytes]) -> bool:
    return "libtorch" in Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.parametrize("installed", [False, True])
def test_it_runs_the_command_that_it_is_told(standby, tmp_path, installed):
    process, line = standby
    wait_until(lambda: has_torch(process), "torch is loaded")
    if installed:
        (tmp_path / "site" / "something-1.0.dist-info").mkdir()
    process.communicate(line, timeout=120)
    assert process.returncode == 0
    module = "backprobe" if installed else "backprobe.cli.standby"
    assert (tmp_path / "told").read_text() == f"None ['a'] '' {module}"
    told = json.loads((tmp_path / "report.json").read_text())
    assert [finding["rule"]["code"] for finding in told["findings"]] == ["BP101"]


def test_it_ends_with_its_input(standby):
    process, _ = standby
    process.communicate(timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize("command", ["run", "watch"])
def test_a_script_can_read_that_it_is_run_to_be_looked_at(tmp_path, fresh_python, command):
    script = tmp_path / "a.py"
    script.write_text("import os\nprint(os.environ.get('BACKPROBE_RUN'))\n")
    environment = {name: value for name, value in os.environ.items() if name != "BACKPROBE_RUN"}
    words = [fresh_python, "-m", "backprobe", command, str(script)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == ("1\n" if command == "run" else "None\n")
