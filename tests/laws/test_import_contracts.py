"""The import contracts of pyproject.toml hold, and each breaks when violated on purpose."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("backprobe", "store", "workers", "service", "migrations")
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

# contract number, the file that gets a line, the line
VIOLATIONS = [
    (1, "service/planted.py", "import workers"),
    (1, "workers/planted.py", "import service"),
    (1, "store/planted.py", "import service"),
    (1, "backprobe/planted.py", "import store"),
    (2, "backprobe/record/planted.py", "import backprobe.rules"),
    (2, "backprobe/rules/planted.py", "import backprobe.capture"),
    (2, "backprobe/capture/planted.py", "import backprobe.rules"),
    (2, "backprobe/rules/planted.py", "import backprobe.show"),
    (2, "backprobe/show/planted.py", "import backprobe.cli"),
    (2, "backprobe/show/planted.py", "import backprobe.mcp_server"),
    (2, "backprobe/notebook/planted.py", "import backprobe.cli"),
    (3, "backprobe/cli/planted.py", "import flask"),
    (3, "backprobe/show/planted.py", "import sqlalchemy"),
    (3, "backprobe/capture/planted.py", "import redis"),
    (4, "backprobe/rules/planted.py", "import torch"),
    (4, "store/planted.py", "import torch.nn"),
    (4, "workers/planted.py", "import torch"),
    (5, "workers/planted.py", "import sqlalchemy"),
    (5, "service/planted.py", "from alembic import command"),
    (6, "service/planted.py", "import backprobe.capture"),
    (7, "migrations/planted.py", "import backprobe.record"),
    (7, "migrations/planted.py", "import service"),
    (8, "backprobe/capture/torch_access/planted.py", "import backprobe.capture.output.text"),
    (8, "backprobe/capture/output/planted.py", "import backprobe.capture.tracking.sampler"),
    (8, "backprobe/capture/tracking/graph/planted.py", "import backprobe.capture.program.launch"),
    (9, "store/database/planted.py", "import store.runs.claims"),
    (9, "store/runs/planted.py", "import store.queries"),
    (10, "service/web/planted.py", "import service.api.runs.runs"),
    (10, "service/api/runs/planted.py", "import service.server.serve"),
    (11, "backprobe/rules/analysis/graph/planted.py", "import backprobe.rules.graph"),
    (11, "backprobe/rules/graph/planted.py", "import backprobe.rules.leaf"),
]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The packages and the contracts, in a folder of their own."""
    folder = tmp_path_factory.mktemp("contracts")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def broken(folder: Path) -> set[int]:
    """Numbers of the contracts that import-linter finds broken in this folder."""
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    verdicts = re.findall(r"^(\d+)\. .*(KEPT|BROKEN)", done.stdout, re.MULTILINE)
    assert verdicts, done.stdout + done.stderr
    return {int(number) for number, verdict in verdicts if verdict == "BROKEN"}


def test_every_contract_is_kept(copied):
    assert broken(copied) == set()


def test_every_contract_has_a_planted_violation():
    numbers = re.findall(r'^name = "(\d+)\. ', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert {int(n) for n in numbers} == {number for number, _, _ in VIOLATIONS}


@pytest.mark.parametrize(("contract", "path", "line"), VIOLATIONS, ids=str)
def test_a_planted_violation_breaks_its_contract(copied, contract, path, line):
    planted = copied / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(f'"""Planted by a test."""\n{line}\n')
    try:
        assert contract in broken(copied)
    finally:
        planted.unlink()
