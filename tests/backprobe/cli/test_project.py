"""`[tool.backprobe]` and the flags that take its place, as `rules check` follows them; no torch is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from backprobe.record import SCHEMA_VERSION, Environment, Header, Record, Source, dumps
from backprobe.rules import RULES

WRITTEN = "x = 1  # backprobe: ignore\n"
"""A comment that names no rule: BP909, a warning, in any record of this file."""


def check(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "backprobe", "rules", "check", "one.bprec", "--format", "concise", *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def folder(tmp_path) -> Path:
    header = Header(
        schema_version=SCHEMA_VERSION, backprobe_version="0", tier="full", entry="run",
        started_at="2026-01-01T00:00:00Z", environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    record = Record(header=header, sources=(Source(source=0, path="train.py", sha256="", text=WRITTEN),))
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    (inner / "one.bprec").write_bytes(dumps(record))
    return inner


def settings(folder: Path, text: str, header: str = "[tool.backprobe]") -> None:
    (folder.parent / "pyproject.toml").write_text(f"{header}\n{text}\n")


def test_without_settings_all_rules_judge_and_a_warning_fails(folder) -> None:
    told = check(folder)
    assert told.returncode == 1
    assert f"{len(RULES)} rules" in told.stdout
    assert "BP909 warning" in told.stdout


def test_the_nearest_file_is_followed_and_flags_take_its_place(folder) -> None:
    settings(folder, 'select = ["BP1"]\nfail-on = "error"')
    chosen = [rule for rule in RULES if rule.RULE.code.startswith("BP1")]
    told = check(folder)
    assert f"{len(chosen)} rules" in told.stdout
    assert told.returncode == 0
    told = check(folder, "--select", "BP101,BP210", "--fail-on", "warning")
    assert "2 rules" in told.stdout
    assert told.returncode == 1
    (folder / "pyproject.toml").write_text('[tool.backprobe]\nignore = ["BP"]\n')
    assert "0 rules" in check(folder).stdout


def test_a_file_without_the_table_says_nothing(folder) -> None:
    settings(folder, 'name = "x"', "[project]")
    assert f"{len(RULES)} rules" in check(folder).stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selct = []", "`selct` is no setting of Backprobe; did you mean `select`?"),
        ('fail-on = "warnings"', "`fail-on` must be one of error, warning, note, not 'warnings'"),
        ('ignore = ["non-leaf-grad-red"]', "there is no rule `non-leaf-grad-red`; did you mean `non-leaf-grad-read`?"),
        ("severity = 3", "`severity` must be a table, not 3"),
        ("thresholds = {x = 1}", "no rule has a threshold `x`"),
        ("select = [", "is no TOML"),
    ],
)
def test_what_cannot_be_followed_is_2_and_names_the_file_and_what_is_near(folder, text, said) -> None:
    settings(folder, text)
    told = check(folder)
    assert told.returncode == 2
    assert said in told.stderr
    assert "pyproject.toml" in told.stderr


def test_a_flag_that_cannot_be_followed_does_not_blame_the_file(folder) -> None:
    settings(folder, "ignore = []")
    told = check(folder, "--select", "BP099")
    assert told.returncode == 2
    assert told.stderr == "backprobe: `select`: there is no rule `BP099`\n"
