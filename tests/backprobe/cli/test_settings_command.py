"""`config`, and the hints of the command line, in this process: nothing is run."""

from __future__ import annotations

import argparse
import json

import pytest

from backprobe.cli import main
from backprobe.cli.commands.comparison import changes
from backprobe.cli.misplaced_options import find_misplaced_option


def command(capsys, *words):
    code = main(list(words))
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("BACKPROBE_URL", "BACKPROBE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_each_setting_has_its_source_and_a_key_is_never_shown(folder, capsys, monkeypatch):
    (folder / "pyproject.toml").write_text('[tool.backprobe]\nfail-on = "error"\nignore = ["BP2"]\n')
    monkeypatch.setenv("BACKPROBE_API_KEY", "bp_secret")
    monkeypatch.setenv("BACKPROBE_URL", "https://backprobe.example")
    code, out, _ = command(capsys, "config", "--format", "json")
    found = {setting["name"]: (setting["value"], setting["source"]) for setting in json.loads(out)}
    assert code == 0
    assert found["fail-on"] == ("error", str(folder / "pyproject.toml"))
    assert found["ignore"] == (["BP2"], str(folder / "pyproject.toml"))
    assert found["tier"] == ("full", "default")
    assert found["url"] == ("https://backprobe.example", "environment BACKPROBE_URL")
    assert found["api-key"] == ("set", "environment BACKPROBE_API_KEY")
    text = command(capsys, "config")[1]
    assert "bp_secret" not in out + text
    assert any(line.split()[:2] == ["fail-on", "error"] for line in text.splitlines())


def test_an_unknown_setting_is_2_with_the_nearest_key(folder, capsys):
    (folder / "pyproject.toml").write_text('[tool.backprobe]\nfailon = "error"\n')
    code, out, err = command(capsys, "config")
    assert (code, out) == (2, "")
    assert "`failon` is no setting of Backprobe; did you mean `fail-on`?" in err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["run", "--tier", "ful", "x.py"], "full"),
        (["run", "--fail-on", "warnings", "x.py"], "warning"),
        (["submit", "--isolation", "namespaces", "x.py"], "namespace"),
        (["rules", "--format", "jsn"], "json"),
    ],
)
def test_a_value_that_is_no_choice_gets_the_nearest_one(folder, capsys, words, near):
    code, _, err = command(capsys, *words)
    assert (code, f"did you mean `{near}`?" in err) == (2, True)


def parser():
    made = argparse.ArgumentParser()
    made.add_argument("--tier")
    made.add_argument("--fail-on")
    return made


@pytest.mark.parametrize(
    ("arguments", "source", "found"),
    [
        (["--tier", "grad"], "print(1)", "--tier"),
        (["x", "--fail-on=error"], "print(1)", "--fail-on"),
        (["--tier", "grad"], "parser.add_argument('--tier')", None),
        (["--fail-on", "x"], "class Settings: fail_on: str", None),
        (["--", "--tier", "grad"], "print(1)", None),
        (["--help"], "print(1)", None),
        (["--epochs", "3"], "print(1)", None),
    ],
)
def test_an_option_of_ours_behind_the_script_is_seen_where_the_script_does_not_know_it(arguments, source, found):
    assert find_misplaced_option(arguments, parser(), [source]) == found


def change(line, after):
    tensor = {"fqn": None, "name": "h", "tensor": 3, "path": "train.py", "line": line, "is_leaf": True}
    return {"a": tensor, "b": tensor | {"is_leaf": after}, "changed": ["is_leaf"]}


def test_what_changes_alike_in_each_round_of_a_loop_is_one_row():
    listed = [change(4, False)] * 5 + [change(5, False)]
    assert list(changes(listed, 6)) == [
        "train.py:4 h: is_leaf True -> False  (5 times)",
        "train.py:5 h: is_leaf True -> False",
    ]
    assert list(changes([change(at, False) for at in range(60)], 900))[-1].startswith("... and 860 more")
