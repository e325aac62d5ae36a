"""The compiled core is optional: what chooses it, and what an install makes without a compiler."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hatch_build

pytestmark = pytest.mark.usefixtures("fresh_python")

ROOT = Path(__file__).parents[3]
SAY = "from backprobe.capture.torch_access import native as core; print(core.kind, core.native is None, core.reason)"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    rest = {name: value for name, value in os.environ.items() if name != "BACKPROBE_CORE"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=rest | environment, capture_output=True, text=True, check=False
    )


def wheel(folder: Path, **environment: str) -> tuple[Path, str]:
    code = (
        "import sys; from hatchling.builders.wheel import WheelBuilder\n"
        "print(*WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=['standard']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), str(folder)],
        cwd=folder,
        env=dict(os.environ) | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.splitlines()[-1]), done.stdout + done.stderr


def test_the_twin_serves_when_it_is_asked_for():
    assert python(SAY, BACKPROBE_CORE="python").stdout == "python True BACKPROBE_CORE=python\n"


def test_the_compiled_core_serves_unasked_and_when_asked(require):
    require("core")
    assert python(SAY).stdout == "c False \n"
    assert python(SAY, BACKPROBE_CORE="c").stdout == "c False \n"


def test_a_word_that_names_no_core_is_refused():
    done = python(SAY, BACKPROBE_CORE="rust")
    assert done.returncode == 1
    assert "BACKPROBE_CORE is 'rust'" in done.stderr


HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "backprobe.capture._core":
            raise ImportError("no such module here")
sys.meta_path.insert(0, Hidden())
"""


def test_without_the_extension_the_twin_serves_and_says_why():
    assert python(HIDE + SAY).stdout == "python True no compiled core: no such module here\n"


def test_the_compiled_core_asked_for_and_absent_is_an_error():
    done = python(HIDE + SAY, BACKPROBE_CORE="c")
    assert done.returncode == 1
    assert "no such module here; `make core` builds it" in done.stderr


def test_an_extension_of_another_version_is_left_alone():
    other = "import sys, types; sys.modules['backprobe.capture._core'] = types.SimpleNamespace(API=0)\n"
    assert "python True the compiled core is of another version" in python(other + SAY).stdout


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A copy of what a wheel is made of, in which nothing was compiled."""
    copy = tmp_path / "checkout"
    subprocess.run(["git", "init", "-q", str(copy)], check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in listed:
        if name.startswith("backprobe/") or ("/" not in name and name):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    for package in ("store", "workers", "service", "migrations"):
        (copy / package).mkdir()
    for name in hatch_build.ASSETS:  # else the build tries to make them; what is in them is not asked here
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("{}")
    monkeypatch.setitem(globals(), "ROOT", copy)
    return copy


def test_a_wheel_made_without_a_compiler_is_pure_python_and_says_why(checkout, tmp_path):
    made, said = wheel(tmp_path, CC="/nowhere/cc", LDSHARED="/nowhere/cc -shared")
    assert made.name.endswith("-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(made).namelist() if "_core" in name]
    assert "no compiled core, its Python twin will serve" in said


def test_a_wheel_made_with_a_compiler_carries_the_core_and_no_source_of_it(checkout, require, tmp_path):
    require("core")
    made, _ = wheel(tmp_path)
    assert not made.name.endswith("-py3-none-any.whl")
    names = [name for name in zipfile.ZipFile(made).namelist() if "_core" in name]
    assert len(names) == 1
    assert names[0].startswith("backprobe/capture/_core.")
