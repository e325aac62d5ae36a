"""The extension for VS Code: small, pinned, checked by its compiler and its own tests where the tools are there."""

import json
import re
import subprocess

import pytest

from backprobe.language_server.settings import settings_from
from tests.support.resources import ROOT, require

FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())


def test_the_extension_is_thin():
    lines = sum(len(path.read_text().splitlines()) for path in (FOLDER / "src").glob("*.ts"))
    assert 0 < lines < 300


def test_every_tool_is_pinned_and_the_lock_names_no_registry():
    wanted = PACKAGE["devDependencies"]
    assert [name for name, version in wanted.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []
    lock = (FOLDER / "package-lock.json").read_text()
    assert json.loads(lock)["packages"][""]["devDependencies"] == wanted
    assert '"resolved"' not in lock
    assert "registry" not in lock


def test_what_leads_code_to_run_or_text_to_leave_waits_for_trust():
    limited = PACKAGE["capabilities"]["untrustedWorkspaces"]
    assert limited["supported"] == "limited"
    assert set(limited["restrictedConfigurations"]) >= {
        "backprobe.interpreter",
        "backprobe.entries",
        "backprobe.service.url",
    }


def test_the_editor_offers_no_setting_that_the_server_does_not_take():
    told: dict = {}
    for name, described in PACKAGE["contributes"]["configuration"]["properties"].items():
        *folders, last = name.removeprefix("backprobe.").split(".")
        place = told
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = described["default"] or {"string": None, "array": [], "boolean": False}[described["type"]]
    assert settings_from(told, {})[1] == []


def test_the_commands_of_the_extension_are_no_names_of_the_servers():
    """The client registers the server's own commands; two of a name, and neither works."""
    declared = {row["command"] for row in PACKAGE["contributes"]["commands"]}
    text = (ROOT / "backprobe" / "language_server" / "server.py").read_text()
    ours = set(re.findall(r'@server\.command\("([^"]+)"\)', text))
    assert ours and declared
    assert not declared & ours


@pytest.mark.parametrize("script", ["check", "test"])
def test_the_compiler_and_the_extensions_own_tests_are_content(script):
    require("vscode-tools")
    done = subprocess.run(["npm", "run", script], cwd=FOLDER, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
