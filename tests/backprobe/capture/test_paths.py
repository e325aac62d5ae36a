"""Which file a path names, and what the program sees of itself: as plain Python has it, whatever the path."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from backprobe.capture import run_module, run_path
from tests.support import forks

FACTS = """
import json, os, sys
import beside
def here(): pass
spec = __spec__ and [__spec__.name, __spec__.origin]
print(json.dumps([
    "{who}", beside.who, __name__, __file__, here.__code__.co_filename, __package__, spec, __cached__ and "cached",
    getattr(__loader__, "path", None) or __loader__.archive,
    sys.argv, sys.path[:2], os.path.realpath(__file__), sorted(vars(sys.modules["__main__"])),
]))
"""
PATHS = {
    "a name": ["x.py", "1", "-m", "--tier"],
    "a dot": ["./x.py"],
    "two dots": ["sub/../x.py"],
    "dots and slashes": [".//sub/.././/x.py"],
    "two dots behind a link": ["lnk/../x.py"],
    "a link to a folder": ["lnk/x.py"],
    "a link to a file": ["sub/linked.py"],
    "a link to a link": ["twice.py"],
    "an absolute link": ["{folder}/sub/linked.py"],
    "an absolute path with dots": ["{folder}/sub/../lnk/../x.py"],
    "from inside": ["../x.py"],
    "no suffix": ["program"],
    "a folder": ["app"],
    "a folder with a slash": ["./app/"],
    "a folder behind a link": ["lnk/../app"],
    "an archive": ["sub/../app.zip", "1"],
    "a module": ["-m", "x", "1"],
    "a package": ["-m", "app"],
    "a module in a package": ["-m", "app.inner"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`x.py` at the top, another one in `real`, where the link `lnk` to `real/a` leads; packages and archives."""
    for name in ("sub", "real/a", "app", "real/app"):
        place = tmp_path / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "beside.py").write_text(f"who = {name!r}\n")
    (tmp_path / "beside.py").write_text("who = 'top'\n")
    (tmp_path / "real" / "beside.py").write_text("who = 'real'\n")
    for name in (
        "x.py",
        "program",
        "real/x.py",
        "real/a/x.py",
        "app/__main__.py",
        "app/inner.py",
        "real/app/__main__.py",
    ):
        (tmp_path / name).write_text(FACTS.replace("{who}", name))
    (tmp_path / "app" / "__init__.py").write_text("")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", FACTS.replace("{who}", "zip"))
        archive.writestr("beside.py", "who = 'zipped'\n")
    (tmp_path / "lnk").symlink_to("real/a")
    (tmp_path / "sub" / "linked.py").symlink_to("../real/x.py")
    (tmp_path / "twice.py").symlink_to("sub/linked.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)  # of an archive: it is not ours to forget
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return tmp_path


@pytest.mark.usefixtures("fresh_python")
@pytest.mark.parametrize("given", PATHS.values(), ids=PATHS.keys())
def test_a_program_is_told_of_itself_what_plain_python_tells_it(given, folder, monkeypatch, capfd) -> None:
    if given == PATHS["from inside"]:
        monkeypatch.chdir(folder / "sub")
    arguments = [part.format(folder=folder) for part in given]
    plain = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    path, before = list(sys.path), list(sys.argv)
    if arguments[0] == "-m":
        end = run_module(arguments[1], arguments[2:])
    else:
        end = run_path(arguments[0], arguments[1:])
    assert (sys.path, sys.argv) == (path, before)
    told = capfd.readouterr().out
    assert end.exit_code == 0
    expected, seen = json.loads(plain.stdout), json.loads(told)
    assert seen[10][0] == expected[10][0]
    del expected[10], seen[10]  # the rest of the path is pytest's own
    assert seen == expected


def test_the_command_line_hands_a_path_on_as_it_was_given(folder) -> None:
    shown = forks.backprobe("run", "./lnk/../x.py", cwd=folder)
    seen = json.loads(shown.stdout)
    assert (seen[0], seen[9]) == ("real/x.py", ["./lnk/../x.py"])
    assert seen[3] == f"{os.getcwd()}/./lnk/../x.py"


@pytest.mark.usefixtures("fresh_python")
def test_a_folder_without_a_main_is_refused_and_nothing_is_run(folder) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "backprobe", "run", "sub"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 2
    assert "`sub` is a folder: name the script in it that is to be run" in shown.stderr
