"""The files of a run lie in its working directory, at every level, as plain Python finds them there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from store.runs.limits import Limits
from tests.support.isolation import confined, warm
from workers.sandbox.process.scratch import PREFIX, lay_out
from workers.sandbox.supervisor.job import Job

pytestmark = pytest.mark.usefixtures("sandbox")

LEVELS = ("supervisor", "locked", "apart")
"""Fixtures of a warm process at `none`, `process` and `namespace`; that of `gvisor` is in test_gvisor.py."""


@pytest.fixture(params=LEVELS)
def level(request):
    return request.getfixturevalue(request.param)


def test_files_are_opened_executed_imported_and_run_as_plain_python_does(level, of_several_files):
    of_several_files(level)


def test_a_module_is_run_as_by_m_with_its_relative_imports(level, of_a_module):
    of_a_module(level)


def test_a_module_runs_where_nothing_may_be_written_and_its_files_are_in_memory_then(level, of_a_module):
    of_a_module(level, disk_bytes=0)


@pytest.mark.parametrize(
    "source",
    [
        "print(open(__file__).read() == open('main.py').read() != '')",
        "import os\nprint(os.listdir() == ['main.py'])",
        "import sys\nprint(len(open(sys.argv[0]).read()) > 0)",
        "print(len(open('main.py').read()) > 0)",
    ],
)
def test_one_file_that_looks_for_itself_is_there(level, start, source):
    outcome = start(level, source)
    assert (outcome.status, outcome.facts.stdout) == ("succeeded", b"True\n"), outcome.facts.stderr


def test_one_file_that_opens_nothing_is_written_nowhere():
    job = Job(files={"main.py": "import torch\nprint(torch.ones(2))\n"}, entry="main.py")
    assert not job.on_disk
    assert not Job(files={"a.py": "import b", "b.py": ""}, entry="a.py", limits=Limits(disk_bytes=0)).on_disk
    assert Job(files={"a.py": "import b", "b.py": ""}, entry="a.py").on_disk


def test_a_traceback_and_a_record_name_files_by_their_path_in_the_program(level):
    main = "import sub.net, torch, warnings\ntorch.ones(1, requires_grad=True).register_hook(sub.net.f)\n"
    main += "warnings.warn('odd')\nsub.net.f(0)\n"
    files = {"main.py": main, "sub/net.py": "def f(_):\n    raise ValueError('no')\n"}
    outcome = level.run(Job(files=files, entry="main.py"))
    assert (outcome.error.type, outcome.error.path, outcome.error.line) == ("ValueError", "sub/net.py", 2)
    assert outcome.facts.stderr.decode().count('File "/') == 2
    assert {source.path for source in outcome.record.sources} == {"main.py", "sub/net.py"}
    assert [row.path for row in outcome.record.warned] == ["main.py"]
    assert [hook.path for hook in outcome.record.hooks] == ["sub/net.py"]
    assert b'"/tmp' not in msgspec.json.encode(outcome.record)


def test_at_level_process_the_folder_is_read_and_nothing_else_is_done_to_it(locked):
    tries = {
        "write": "open('data.txt', 'w')",
        "make": "open('new.txt', 'x')",
        "append": "open('data.txt', 'a')",
        "folder": "os.mkdir('new')",
        "rename": "os.rename('data.txt', 'other.txt')",
        "remove": "os.unlink('data.txt')",
        "link": "os.symlink('/etc/passwd', 'link')",
        "hard link": "os.link('data.txt', 'link')",
        "truncate": "os.truncate('data.txt', 0)",
        "mode": "os.chmod('data.txt', 0o777)",
        "times": "os.utime('data.txt')",
        "above": "os.listdir('..')",
        "others": "open('../../passwd')",
    }
    source = (
        f"import os, json\ntold = {{}}\nfor name, text in {tries!r}.items():\n"
        "    try: eval(text); told[name] = 'done'\n    except OSError as error: told[name] = type(error).__name__\n"
        "print(json.dumps(told), open('data.txt').read())\n"
    )
    outcome = locked.run(Job(files={"main.py": source, "data.txt": "7"}, entry="main.py"))
    told, _, left = outcome.facts.stdout.decode().rpartition(" ")
    assert left == "7\n", outcome.facts.stderr
    assert [name for name, said in json.loads(told).items() if said == "done"] == []


@pytest.mark.parametrize("name", ["supervisor", "locked"])
def test_nothing_is_left_of_them(name, request, wait_until):
    files = {"main.py": "import os\nprint(os.getcwd())\n", "a/b.txt": "1"}
    outcome = request.getfixturevalue(name).run(Job(files=files, entry="main.py"))
    folder = Path(outcome.facts.stdout.decode().strip())
    assert folder.parent.name.startswith(PREFIX)
    wait_until(lambda: not folder.exists(), 60)


def test_a_child_made_ahead_serves_a_run_of_several_files_where_it_can_write_them(of_several_files):
    with warm(confined("none")) as supervisor:
        of_several_files(supervisor)
        of_several_files(supervisor)


@pytest.mark.parametrize("path", ["../a", "/tmp/a", "a/../../b", "a//b", "", "a/./b"])
def test_no_path_leads_out_of_the_folder(tmp_path, path):
    with pytest.raises(ValueError, match="no path"):
        lay_out(str(tmp_path), {path: ""})
    assert list(tmp_path.iterdir()) == []


def test_no_link_is_followed_and_nothing_is_overwritten(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("as it was")
    folder = tmp_path / "folder"
    folder.mkdir()
    os.symlink(outside, folder / "a.py")
    with pytest.raises(FileExistsError):
        lay_out(str(folder), {"a.py": "other"})
    assert outside.read_text() == "as it was"


def test_names_are_written_as_they_are(tmp_path):
    files = {"é/ü.txt": "é", "-x": "1", "con": "2", "a b.py": "3"}
    lay_out(str(tmp_path), files)
    listed = subprocess.run(
        [sys.executable, "-c", "import os; print(sorted(os.listdir()))"], cwd=tmp_path, capture_output=True, check=True
    )
    assert listed.stdout.decode() == f"{sorted(['é', '-x', 'con', 'a b.py'])}\n"
    assert {path: (tmp_path / path).read_text() for path in files} == files
