"""`make` finds a Python that will do, or says in one line what is missing and the way out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "venv"


@pytest.fixture
def make_venv(tmp_path):
    """`make_venv("python3"=body, ...)`: run the script with only these programs on the path."""

    def run(python: str | None = None, **programs: str) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "bin"
        path.mkdir()
        for name, body in programs.items():
            program = path / name.replace("_", ".")
            program.write_text(f"#!/bin/sh\n{body}\n")
            program.chmod(0o755)
        environment = {"PATH": str(path)} | ({"PYTHON": python} if python else {})
        command = ["/bin/sh", str(SCRIPT), str(tmp_path / "venv")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return run


def version(number: str, good: bool, venv: bool = True) -> str:
    """A program that answers the script's three questions as a Python of this version would."""
    return (
        f'case "$2" in *print*) echo {number};; *exit*) exit {0 if good else 1};; *ensurepip*) exit {0 if venv else 1};; esac\n'
        '[ "$1" = -m ] && echo "made by $0" && exit 0\nexit 0'
    )


def test_the_first_python_that_will_do_is_taken(make_venv):
    done = make_venv(python3=version("3.12.3", good=True))
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"Making .*venv with python3 \(3\.12\.3\)\.\nmade by .*/python3\n", done.stdout)


def test_an_old_python3_is_passed_over_for_a_newer_one(make_venv):
    done = make_venv(python3=version("3.9.2", good=False), python3_13=version("3.13.1", good=True))
    assert done.returncode == 0
    assert "with python3.13 (3.13.1)" in done.stdout


def test_only_an_old_python_gives_one_line_with_the_way_out(make_venv):
    done = make_venv(python3=version("3.9.2", good=False))
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "needs Python 3.11 to 3.14; python3 is 3.9.2" in line
    assert "make run PYTHON=" in line


def test_no_python_at_all_gives_one_line(make_venv):
    done = make_venv()
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "no python3 was found" in done.stderr


def test_a_debian_python_without_venv_names_the_package(make_venv):
    done = make_venv(python3=version("3.11.2", good=True, venv=False))
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert "apt-get install python3-venv" in line


def test_a_named_python_is_the_only_one_asked(make_venv):
    done = make_venv(python="python3.12", python3=version("3.13.0", good=True), python3_12=version("3.12.1", good=True))
    assert "with python3.12 (3.12.1)" in done.stdout


def test_a_shim_that_fails_is_no_python(make_venv):
    done = make_venv(python3='echo "python3: command not found" >&2; exit 127', python3_12=version("3.12.1", good=True))
    assert done.returncode == 0
    assert "with python3.12" in done.stdout


def test_the_versions_said_are_the_versions_tested():
    """The script's own question, put to this interpreter."""
    question = re.search(r"good='(.*)'", SCRIPT.read_text())[1]
    done = subprocess.run([sys.executable, "-c", question], check=False, env=os.environ)
    assert done.returncode == 0
    text = (ROOT / "pyproject.toml").read_text()
    assert re.search(r'requires-python = ">=3\.11"', text)


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert targets == set(re.findall(r"^  make ([\w-]+)", done.stdout, re.MULTILINE))


def test_every_dependency_has_a_tested_version():
    """`constraints.txt` pins whatever `pyproject.toml` asks for."""
    listed = {
        re.split(r"[\[>=<]", line)[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if re.match(r"\w", line)
    }
    text = (ROOT / "pyproject.toml").read_text()
    part = text[text.index("[project]") : text.index("[project.scripts]")]
    asked = {re.split(r"[\[>=<]", name)[0].lower() for name in re.findall(r'"([\w-]+(?:\[\w+\])?>=[^"]*)"', part)}
    assert asked - listed == set()
    assert "torch" in listed
