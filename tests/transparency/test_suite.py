"""The comparison of PyTorch's own suite says so when it compared nothing."""

import subprocess
import sys
from pathlib import Path


def test_a_suite_of_which_no_test_ran_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "autograd").mkdir()
    (tmp_path / "test_autograd.py").write_text("import a_package_that_nobody_has\n")
    command = [sys.executable, "-m", "tests.transparency.suite", str(tmp_path), "--tiers", "state", "--cores", "c"]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "no test ran" in ended.stdout
