"""`backprobe.check` and `pytest --backprobe`, in forks of a process that has torch loaded, and once under pytest-xdist."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest

import backprobe
from tests.support import forks
from tests.support.resources import ROOT

MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x):
        h = self.a(x).detach()
        return self.b(h)


def fit(net, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(4, 3)).sum().backward()
        optimizer.step()
"""

TESTS = """\
import pytest
import torch
from model import Net, fit


@pytest.fixture
def net():
    return Net()


@pytest.mark.parametrize("steps", [1, 2])
def test_cut(net, steps):
    fit(net, steps)


@pytest.mark.backprobe(ignore=["graph-break-detach"])
def test_ignored(net):
    fit(net, 2)


@pytest.mark.backprobe(fail_on="error")
def test_only_errors(net):
    fit(net, 2)


@pytest.mark.backprobe(off=True)
def test_off(net):
    fit(net, 2)


def test_sound():
    fit(torch.nn.Linear(3, 1), 2)


def test_false(net):
    fit(net, 1)
    assert {"norm": 2.0} == {"norm": 1.0}


def test_skipped(net):
    fit(net, 1)
    pytest.skip("half-way")


class TestGroup:
    backprobe_seen = []

    def test_method(self, net):
        fit(net, 1)


@pytest.mark.backprobe(off=True)
def test_own_code_is_back():
    import dis

    assert not any("__bp_" in str(one.argval) for one in dis.get_instructions(Net.forward))
"""

RUNNER = "import sys\nimport pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in {
        "model.py": MODEL,
        "test_net.py": TESTS,
        "runner.py": RUNNER,
        "pytest.ini": "[pytest]\n",
    }.items():
        (folder / name).write_text(text)
    return folder


ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": "1"}


def ran(project: Path, *options: str) -> dict:
    """Run the project's tests in a fork."""
    words = ["-p", "backprobe.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers", *options]
    job = forks.Job(mode="plain", path=str(project / "runner.py"), arguments=words, cwd=str(project), environment=ALONE)
    return forks.run([job])[0]


@pytest.fixture(scope="module")
def captured(project: Path) -> tuple[dict, dict[str, ET.Element]]:
    """What `pytest --backprobe` said, and its report by the name of the test."""
    found = ran(project, "--backprobe", "--junitxml", "report.xml", "test_net.py")
    cases = ET.parse(project / "report.xml").getroot().iter("testcase")
    return found, {case.get("name", ""): case for case in cases}


def outcome(case: ET.Element) -> str:
    return next((row.tag for row in case if row.tag in ("failure", "error", "skipped")), "passed")


def test_a_test_whose_training_code_has_findings_fails_and_policies_are_followed(captured) -> None:
    found, cases = captured
    assert {name: outcome(case) for name, case in cases.items()} == {
        "test_cut[1]": "failure",
        "test_cut[2]": "failure",
        "test_ignored": "passed",
        "test_only_errors": "passed",
        "test_off": "passed",
        "test_sound": "passed",
        "test_false": "failure",
        "test_skipped": "skipped",
        "test_method": "failure",
        "test_own_code_is_back": "passed",
    }
    assert found["code"] == 1
    assert "backprobe: 8 tests captured, 6 with findings (6 in all)" in found["out"]


def test_the_failure_is_the_findings_text_with_its_place_in_the_model(captured) -> None:
    said = captured[1]["test_cut[1]"].find("failure").text
    assert "1 finding of Backprobe in `test_cut[1]`" in said
    assert "graph-break-detach" in said
    assert "--> model.py:11:13" in said
    assert "pytest_plugin.py" not in said


def test_a_test_that_fails_by_itself_says_why_and_the_findings_stand_in_a_section(captured) -> None:
    found, cases = captured
    said = cases["test_false"].find("failure").text
    assert "assert {'norm': 2.0} == {'norm': 1.0}" in said
    assert "__bp_" not in said
    assert "findings of Backprobe, before the test failed" in found["out"]


WATCHED = """
import backprobe
import pytest
from model import Net, fit


@pytest.fixture
def net():
    net = Net()
    with backprobe.watch(net, report=False) as watching:
        yield net
    assert [found.rule.code for found in watching.findings] == ["BP601"]


def test_watched_by_a_fixture(net):
    fit(net, 2)


@pytest.mark.backprobe(fail_on="error")
def test_watches_itself():
    net = Net()
    with backprobe.watch(net) as watching:
        fit(net, 2)
    assert watching.findings == ()
"""


def test_a_test_that_watches_something_itself_passes(project) -> None:
    (project / "test_watched.py").write_text(WATCHED)
    found = ran(project, "--backprobe", "-q", "test_watched.py")
    assert found["code"] == 0, found["out"]
    assert "backprobe: 1 tests captured, 1 with findings (1 in all)" in found["out"]


def test_without_the_option_nothing_is_captured(project) -> None:
    found = ran(project, "test_net.py", "-k", "cut or sound", "-q")
    assert (found["code"], "3 passed" in found["out"], "tests captured" in found["out"]) == (0, True, False)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("(fail_on='eror')", "fail_on='eror' is none of error, warning, note"),
        ("(ignore=['no-such-rule'])", "no-such-rule"),
        ("(skip=True)", "the marker backprobe has no argument `skip`"),
        ("(True)", "the marker backprobe takes its arguments by name"),
    ],
)
def test_a_marker_that_cannot_be_followed_is_said_before_a_test_is_run(tmp_path, marker, said) -> None:
    (tmp_path / "runner.py").write_text(RUNNER)
    (tmp_path / "test_x.py").write_text(f"import pytest\n\n@pytest.mark.backprobe{marker}\ndef test_x():\n    pass\n")
    found = ran(tmp_path, "--backprobe", "-q", "test_x.py")
    assert found["code"] == 4
    assert said in found["err"] + found["out"]


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.timeout(900)
def test_it_works_in_the_processes_of_xdist(project) -> None:
    typo = 'import pytest\n\n@pytest.mark.backprobe(ignore=["nosuch"])\ndef test_typo():\n    pass\n'
    (project / "test_typo.py").write_text(typo)
    command = [
        sys.executable, "-m", "pytest", "-p", "backprobe.pytest_plugin", "-p", "xdist", "-p", "no:cacheprovider",
        "--backprobe", "-n", "1", "-q", "-k", "cut or sound or typo", "test_net.py", "test_typo.py",
    ]  # fmt: skip
    environment = {**os.environ, **ALONE, "PYTHONPATH": str(ROOT)}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        environment.pop(name, None)
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, 1 passed" in done.stdout
    assert "test_typo.py::test_typo: `ignore`: there is no rule `nosuch`" in done.stdout
    assert "backprobe: 3 tests captured, 2 with findings (2 in all)" in done.stdout


def test_pytest_finds_the_plug_in_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module = import_module(project["entry-points"]["pytest11"]["backprobe"])
    assert {"pytest_addoption", "pytest_configure"} <= set(vars(module))


CHECKED = """\
import warnings
import torch
import backprobe
from model import Net, fit

warnings.simplefilter("ignore")
own = Net.forward.__code__, fit.__code__
try:
    backprobe.check(fit, Net(), 2)
except AssertionError as error:
    print("raised", error.findings[0].rule.code, error.findings[0].location.path, "graph-break-detach" in str(error))
print("ignored", backprobe.check(fit, Net(), 2, ignore=["BP6"]))
print("listed", [one.rule.code for one in backprobe.check(fit, Net(), 2, fail_on=None)])
print("sound", backprobe.check(fit, net=torch.nn.Linear(3, 1), steps=2))

def raising():
    raise KeyError("own")

try:
    backprobe.check(raising)
except KeyError as error:
    print("its own", error)

def within():
    print("inner", backprobe.check(fit, Net(), 1))

print("outer", [one.rule.code for one in backprobe.check(within, fail_on=None)])
for bad in ({"fail_on": "eror"}, {"ignore": ["BP999"]}):
    try:
        backprobe.check(fit, Net(), 1, **bad)
    except ValueError as error:
        print("refused", error)

def local(steps):
    scale = 2.0

    def step(w):
        return (w * scale).sum()

    def train():
        w = torch.ones(3, requires_grad=True).double()
        step(w).backward()
        return w.grad

    return train

print("closure", [one.rule.code for one in backprobe.check(local(1), fail_on=None)])
assert own == (Net.forward.__code__, fit.__code__)
"""


def test_a_function_is_checked_in_place_and_has_its_own_code_back(project) -> None:
    (project / "checked.py").write_text(CHECKED)
    (found,) = forks.run([forks.Job(mode="plain", path=str(project / "checked.py"), cwd=str(project))])
    assert found["code"] == 0, found["err"]
    lines = found["out"].splitlines()
    assert lines[:5] == [
        "raised BP601 model.py True",
        "ignored ()",
        "listed ['BP601']",
        "sound ()",
        "its own 'own'",
    ]
    assert lines[5:7] == ["inner ()", "outer ['BP601']"]
    assert lines[7].startswith("refused fail_on='eror' is none of")
    assert "BP999" in lines[8]
    assert lines[9] == "closure ['BP101']"


def test_the_helper_is_public_and_torch_stays_unloaded() -> None:
    code = "import sys, backprobe; backprobe.check; import backprobe.pytest_plugin; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert backprobe.check is import_module("backprobe.checking").check
