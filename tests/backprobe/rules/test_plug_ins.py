"""Rules of one's own: from the template to a package that is installed, judged with, and told of where it is broken."""

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from backprobe.cli.commands.plugin_template import begin
from backprobe.record import dumps
from backprobe.rules.framework.plugins import installed, loaded

NAME, PACKAGE = "rate-too-high", "rate_too_high_rules"
FAULTY = "import torch\nw = torch.ones(3, requires_grad=True)\nfast = torch.optim.SGD([w], lr=500.0)\n"


def distribution(folder: Path, value: str = f"{PACKAGE}:RULES") -> Path:
    """What an installer leaves beside a package: its metadata, with the entry point."""
    about = folder / "rate_too_high-0.1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(f"[backprobe.rules]\n{NAME} = {value}\n")
    return folder


def run_with_plug_in(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def plug_in(tmp_path_factory) -> Path:
    return distribution(begin(tmp_path_factory.mktemp("own"), NAME, "ACM"))


@pytest.fixture(scope="module")
def record(plug_in, captured) -> Path:
    path = plug_in / "one.bprec"
    path.write_bytes(dumps(captured(FAULTY)))
    return path


def checked(folder: Path, record: Path, *more: str) -> dict:
    target = folder / "told.json"
    run = run_with_plug_in(
        folder, "-m", "backprobe", "rules", "check", str(record), "--format", "json", "--output", str(target), *more
    )
    assert run.stderr == ""
    assert run.returncode in {0, 1}
    return json.loads(target.read_text())


@pytest.mark.usefixtures("fresh_python")
def test_the_template_keeps_the_laws_that_our_own_rules_keep(plug_in) -> None:
    run = run_with_plug_in(plug_in, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert run.returncode == 0, run.stdout
    assert "8 passed" in run.stdout


@pytest.mark.usefixtures("fresh_python")
def test_a_rule_that_breaks_a_law_is_told_by_the_kit(plug_in) -> None:
    rule = plug_in / PACKAGE / "rate_too_high.py"
    text = rule.read_text()
    rule.write_text(text.replace("if rate > most", "if rate > most / 10"))
    try:
        run = run_with_plug_in(plug_in, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    finally:
        rule.write_text(text)
    assert "1 failed, 7 passed" in run.stdout
    assert "what_is_right_is_left_alone" in run.stdout


def test_an_installed_rule_judges_is_listed_explained_and_chosen_like_ours(plug_in, record) -> None:
    (found,) = checked(plug_in, record)["findings"]
    assert found["rule"] == {"code": "ACM101", "name": NAME, "url": "/rules/ACM101"}
    assert found["location"]["region"]["start_line"] == 3
    assert checked(plug_in, record, "--ignore", "ACM")["findings"] == []
    assert "ACM101  rate-too-high" in run_with_plug_in(plug_in, "-m", "backprobe", "rules").stdout
    assert "overshoots" in run_with_plug_in(plug_in, "-m", "backprobe", "explain", "acm101").stdout


def test_a_threshold_of_an_installed_rule_is_a_setting(plug_in, record) -> None:
    project = plug_in / "pyproject.toml"
    text = project.read_text()
    project.write_text(f'{text}\n[tool.backprobe.thresholds]\n"{NAME}.most" = 1000\n')
    try:
        assert checked(plug_in, record)["findings"] == []
    finally:
        project.write_text(text)


def test_its_source_is_part_of_the_ruleset(plug_in, record) -> None:
    rule = plug_in / PACKAGE / "rate_too_high.py"
    text = rule.read_text()
    first = checked(plug_in, record)["ruleset"]
    assert checked(plug_in, record)["ruleset"] == first
    rule.write_text(text + "# changed\n")
    try:
        assert checked(plug_in, record)["ruleset"] != first
    finally:
        rule.write_text(text)


def test_one_that_cannot_be_loaded_costs_itself_and_is_told(plug_in, record) -> None:
    distribution(plug_in, "not_there:RULES")
    try:
        shown = checked(plug_in, record)
        listed = run_with_plug_in(plug_in, "-m", "backprobe", "rules")
    finally:
        distribution(plug_in)
    (found,) = shown["findings"]
    assert (found["rule"]["code"], found["level"]) == ("BP902", "note")
    assert f"plug-in `{NAME}`" in found["message"]
    assert "ModuleNotFoundError" in found["message"]
    assert listed.returncode == 0
    assert "is left out (ModuleNotFoundError): No module named 'not_there'" in listed.stderr


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("ACM101", "BP101", "2 to 4 capitals of the plug-in's own"),
        ("ACM101", "A101", "2 to 4 capitals of the plug-in's own"),
        (NAME, "non-leaf-grad-read", "there is a rule ACM101 or `non-leaf-grad-read` already"),
        ('needs=("optimizer",)', 'needs=("weather",)', "needs ['weather'], which no record holds"),
        ("What it finds:", "What it sees:", "has a section `What it sees`"),
        ("def check", "def chek", "it needs a `RULE` and a function `check`"),
    ],
)
def test_a_declaration_that_would_break_the_set_is_refused(tmp_path, monkeypatch, was, now, said) -> None:
    folder = begin(tmp_path, NAME, "ACM")
    rule = folder / PACKAGE / "rate_too_high.py"
    rule.write_text(rule.read_text().replace(was, now))
    monkeypatch.syspath_prepend(str(folder))
    for name in (PACKAGE, f"{PACKAGE}.rate_too_high"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = loaded([EntryPoint(name=NAME, value=f"{PACKAGE}:RULES", group="backprobe.rules")])
    for name in (PACKAGE, f"{PACKAGE}.rate_too_high"):
        sys.modules.pop(name, None)
    assert found.modules == ()
    (left_out,) = found.left_out
    assert said in left_out.why


def test_nothing_is_installed_where_these_tests_run() -> None:
    assert installed().modules == ()
    assert installed().left_out == ()
