"""Where Python lies changes no level: below /tmp, in a closed folder, with bubblewrap and without."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backprobe.isolation import IsolationLevel
from tests.support.addresses import own_uid
from tests.support.isolation import confined
from workers.sandbox.levels import capabilities
from workers.sandbox.process import landlock, namespaces, private_root

ROOT = Path(__file__).parents[3]
PACKAGES = ("backprobe", "store", "workers")
ORDINARY_PATH = "/usr/local/bin:/usr/bin:/bin"
NO_BUBBLEWRAP = "/nowhere"
SECRET = "beside"

PROGRAM = """
import os
import wave
import torch

def attempt(action, name):
    try:
        found.append((name, action()))
    except OSError:
        pass

found = []
for path in {secrets}:
    attempt(lambda: open(path).read(), path)
for folder in {folders}:
    attempt(lambda: os.listdir(folder), folder)
for folder in {writable}:
    attempt(lambda: open(folder + "/new", "w").close(), folder)
x = torch.ones(2, requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist(), found)
"""

WORKER = """
import json, sys
from store.runs.limits import Limits
from workers.sandbox.levels.capabilities import confinement
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.job import Job
from workers.sandbox.supervisor.supervisor import Supervisor

asked, uid, program, disk_bytes = json.loads(sys.argv[1])
chosen = confinement(asked, uid)
with Supervisor(lambda: exec_zygote("", chosen, further=False), confinement=chosen, ahead=False) as supervisor:
    assert supervisor.wait_warm(120), supervisor.failure
    limits = Limits(wall_seconds=60, disk_bytes=disk_bytes)
    outcome = supervisor.run(Job(files={"main.py": program}, entry="main.py", limits=limits))
answer = [chosen.level, outcome.status, outcome.facts.stdout.decode(), outcome.facts.stderr.decode()]
print(json.dumps(answer + [outcome.facts.broken]))
"""


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """A clone and its environment in a folder of mode 0700 below /tmp, beside files that everybody might read."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="backprobe-clone-") as name:
        folder = Path(name)
        (folder / ".ssh").mkdir()
        for file in (folder / "beside.txt", folder / ".ssh" / "id_ed25519", folder / "clone" / ".env"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(SECRET, encoding="ascii")
        for package in PACKAGES:
            left_out = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / package, folder / "clone" / package, ignore=left_out)
        (folder / "clone" / "workers" / "open_to_all").mkdir()
        (folder / "clone" / "workers" / "open_to_all").chmod(0o777)
        environment = folder / "clone" / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", environment], check=True)
        (environment / "beside.txt").write_text(SECRET, encoding="ascii")
        (site,) = environment.glob("lib/python*/site-packages")
        places = [entry for entry in sys.path if Path(entry).name == "site-packages"]
        (site / "elsewhere.pth").write_text("\n".join(places), encoding="utf-8")
        yield folder / "clone"


@pytest.fixture
def other_run() -> Iterator[Path]:
    """A folder of another run, closed by no mode."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="backprobe-zygote-") as name:
        Path(name).chmod(0o777)
        (Path(name) / "main.py").write_text(SECRET, encoding="ascii")
        yield Path(name)


def run_there(clone: Path, level: str, program: str, path: str = ORDINARY_PATH, disk_bytes: int = 0) -> list[str]:
    """Run a program by a worker whose Python and code are the clone's: level, status, stdout, stderr, what broke."""
    words = json.dumps([level, own_uid(), program, disk_bytes])
    done = subprocess.run(
        [clone / ".venv" / "bin" / "python", "-P", "-s", "-c", WORKER, words],
        env={"PATH": path, "PYTHONPATH": str(clone)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize(("level", "disk_bytes"), [("namespace", 0), ("namespace", 1 << 20), ("process", 0)])
def test_a_clone_below_tmp_is_isolated_and_shows_nothing_but_python(clone, other_run, level, disk_bytes) -> None:
    confined(level)
    beside = clone.parent
    program = PROGRAM.format(
        secrets=[
            str(beside / "beside.txt"),
            str(beside / ".ssh/id_ed25519"),
            str(clone / ".env"),
            str(clone / ".venv" / "beside.txt"),
            f"{other_run}/main.py",
        ],
        folders=[
            str(Path.home()),
            str(Path.home() / ".ssh"),
            str(other_run),
            *([str(beside)] if level == "process" else []),
        ],
        writable=[str(clone / "workers" / "open_to_all"), str(clone / ".venv" / "lib"), str(other_run)],
    )
    path = ORDINARY_PATH if level == "namespace" else NO_BUBBLEWRAP
    given, status, stdout, stderr, broken = run_there(clone, "auto", program, path, disk_bytes)
    assert (given, status, broken) == (level, "succeeded", None), stderr
    assert stdout == "[2.0, 2.0] []\n"


@pytest.mark.usefixtures("sandbox")
def test_a_private_tmp_shows_the_way_to_python_only(clone) -> None:
    confined("namespace")
    program = """
import os
print(sorted(os.listdir("/tmp")), sorted(os.listdir(CLONE)))
open("/tmp/private-file", "w").close()
try:
    os.rename(CLONE + "/workers", "/tmp/workers")
except OSError:
    print("stays")
""".replace("CLONE", repr(str(clone)))
    _, status, stdout, stderr, _ = run_there(clone, "namespace", program, disk_bytes=1 << 20)
    assert status == "succeeded", stderr
    assert stdout == f"{[clone.parent.name]} {sorted(['.venv', *PACKAGES])}\nstays\n"


@pytest.mark.usefixtures("sandbox")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs become another user")
def test_what_root_shows_to_its_programs_is_read_only_at_every_level(clone) -> None:
    program = PROGRAM.format(
        secrets=[str(clone.parent / "beside.txt")], folders=[], writable=[str(clone / "workers" / "open_to_all")]
    )
    given, status, stdout, stderr, _ = run_there(clone, "none", program, NO_BUBBLEWRAP)
    assert (given, status, stdout) == ("none", "succeeded", "[2.0, 2.0] []\n"), stderr


@pytest.mark.parametrize("level", ["none", "process", "namespace"])
def test_a_folder_of_python_that_no_mount_can_open_is_named_with_the_command_that_opens_it(
    level: IsolationLevel, monkeypatch, tmp_path
) -> None:
    closed, other = tmp_path / "bin", tmp_path / "lib"
    for folder in (closed, other):
        folder.mkdir(mode=0o700)
    monkeypatch.setattr(landlock, "python_paths", lambda: (str(closed), str(other)))
    monkeypatch.setattr(landlock.os, "geteuid", lambda: 0)
    line = f"uid 12345 cannot read {closed} (chmod -R o+rX {closed} {other})"
    assert line in capabilities.lacking(level, 12345)


@pytest.mark.parametrize("level", ["none", "process"])
def test_a_root_that_may_not_mount_says_which_command_shows_python(level, monkeypatch) -> None:
    monkeypatch.setattr(landlock, "hidden", lambda _: ("/root",))
    monkeypatch.setattr(landlock, "unreadable", lambda _: ())
    monkeypatch.setattr(namespaces, "may_mount", lambda: False)
    line = "uid 12345 cannot read /root, and root may not mount here (chmod o+x /root)"
    assert line in capabilities.lacking(level, 12345)


def test_an_absent_private_root_is_named_with_the_one_command_that_brings_it(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", NO_BUBBLEWRAP)
    line = "no private root: bubblewrap (bwrap) is not installed (apt-get install bubblewrap)"
    assert line in capabilities.lacking("namespace")
    monkeypatch.setattr(private_root.shutil, "which", lambda _: "/usr/bin/bwrap")
    monkeypatch.setattr(private_root.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(private_root, "_SETTINGS", tmp_path)
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "max_user_namespaces").write_text("0\n", encoding="ascii")
    assert private_root.remedy() == "sysctl -w user.max_user_namespaces=10000"
