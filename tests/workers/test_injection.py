"""What a program prints, raises and names reaches logs, API, pages and the CLI as data: bounded, escaped, on one line."""

import dataclasses
import json
import os
import subprocess
import sys
import unicodedata

import pytest

from service.app import create_app
from service.settings import Settings

MARK = "2026-11-22 00:00:00 CRITICAL forged"
EVIL = f"\x1b]0;owned\x07\x1b[2J\r\n{MARK} %s %n {{0}} ${{jndi:x}}\u202e\u2066\x9b31m\x00<script>alert(1)</script>"
HUGE = "L" * 300_000

PROGRAMS = {
    "raises": f"import torch\nraise ValueError({EVIL!r} + {HUGE!r})",
    "prints": f"import sys\nfor stream in (sys.stdout, sys.stderr): stream.write({EVIL!r} + '\\n'); stream.write({HUGE!r})",
    "warns": f"import warnings\nwarnings.warn({EVIL!r})\nraise KeyError({EVIL!r})",
    "names": f"import torch\nE = type({(EVIL.replace(chr(0), '') + 'x' * 900)!r}, (Exception,), {{}})\nraise E('no')",
    "names tensors": f"import torch\nglobals()[{EVIL!r}] = w = torch.ones(2, requires_grad=True)\ny = w * 2\ny.sum().backward()\nprint(y.grad)",
    "exits": f"raise SystemExit({EVIL!r})",
}  # fmt: skip


def controls(text: str) -> set[str]:
    """Characters that drive a terminal or turn the reading order round, but for line feeds and tabs."""
    return {
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf") and character not in "\n\t\u200b"
    }


@pytest.fixture
def at_work(embedded):
    embedded.start("worker", "--concurrency", "1")
    return embedded


def test_a_stranger_text_is_data_in_logs_api_and_pages(at_work) -> None:
    runs = {name: at_work.submit(source) for name, source in PROGRAMS.items()}
    for name, run in runs.items():
        row = at_work.wait_for_end(run, 240)
        assert row.status in ("failed", "succeeded"), (name, row.status)
        assert row.status == "succeeded" or row.error is not None
        assert row.error is None or len(row.error.message) < 20_000
    log = at_work.log()
    assert MARK not in log
    assert "LLLL" not in log
    assert not controls(log)
    environment = dataclasses.replace(Settings.from_environment(at_work.environment))
    app = create_app(environment)
    try:
        client = app.test_client()
        for name, run in runs.items():
            answer = client.get(f"/v1/runs/{run}")
            assert answer.status_code == 200
            # JSON is data for programs: it has its own escapes for what ASCII calls control, and no line in a text
            assert not [control for control in controls(answer.text) if control < " "], (name, controls(answer.text))
            assert answer.text.strip().count("\n") == 0
            assert len(answer.text) < 400_000
            json.loads(answer.text)
            page = client.get(f"/runs/{run}", headers={"Accept": "text/html"})
            assert page.status_code == 200
            assert not controls(page.text), (name, controls(page.text))
            assert "<script>alert" not in page.text
            shown = client.get(f"/v1/runs/{run}/findings?format=sarif")
            assert shown.status_code == 200, shown.text
            assert not [control for control in controls(shown.text) if control < " "], (name, controls(shown.text))
            assert MARK not in shown.text.splitlines()
    finally:
        app.extensions["backprobe"].close()


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.parametrize("name", ["names tensors", "warns"])
def test_the_command_line_escapes_what_it_says_of_a_program(name, tmp_path) -> None:
    """Not what the program itself writes to its own terminal: that is the user's own program there."""
    source = PROGRAMS[name].replace("raise KeyError", "KeyError").replace("warnings.warn", "str")
    (tmp_path / "evil.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "backprobe", "run", "--exit-zero", "evil.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert "rules" in done.stderr
    assert not controls(done.stderr), controls(done.stderr)
    assert MARK not in [line.strip() for line in done.stderr.splitlines()]
