"""Settings, the files of a program, stored results, and answers read. Pure, or in a folder of the test's own."""

import sys
from pathlib import Path

import pytest

from backprobe.language_server.runs.answers import from_report, from_service
from backprobe.language_server.runs.cache import MOST_KEPT, Cache
from backprobe.language_server.runs.program import NotAProgram, read_program
from backprobe.language_server.runs.results import Failure, Unreadable, place_result
from backprobe.language_server.settings import Entry, Settings, entry_of, judging, settings_from
from backprobe.snippet_digest import snippet_digest
from tests.backprobe.language_server.samples import PATH, result


def test_nothing_is_trusted_and_everything_is_shown_until_an_editor_says_otherwise():
    assert settings_from(None, {}) == (Settings(), [])
    assert settings_from({}, {"BACKPROBE_URL": "http://127.0.0.1:8000"})[0].url == "http://127.0.0.1:8000"
    assert (Settings().trusted, Settings().interpreter, Settings().hints) == (
        False,
        sys.executable,
        {"leaf", "gradient", "held"},
    )


def test_settings_are_taken_as_an_editor_writes_them():
    told = {
        "trusted": True,
        "runOnSave": False,
        "entries": ["train.py", {"program": "jobs/*.py", "args": ["--steps", "3"], "env": {"SEED": "1"}}],
        "interpreter": "/usr/bin/python3",
        "seconds": 3,
        "tier": "grad",
        "service": {"url": "https://bp.example", "isolation": "namespace", "seconds": 9},
        "hints": {"held": False},
    }
    settings, wrong = settings_from(told, {"BACKPROBE_URL": "http://127.0.0.1:8000"})
    assert wrong == []
    assert settings == Settings(
        trusted=True,
        run_on_save=False,
        entries=(
            Entry(program="train.py"),
            Entry(program="jobs/*.py", arguments=("--steps", "3"), environment={"SEED": "1"}),
        ),
        interpreter="/usr/bin/python3",
        seconds=3.0,
        tier="grad",
        url="https://bp.example",
        isolation="namespace",
        service_seconds=9.0,
        hints=frozenset({"leaf", "gradient"}),
    )


ENTRIES = "is a list of patterns, or of objects of `program`, `args`, `env`"


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"trusted": "yes"}, "`trusted` is true or false, not 'yes'"),
        ({"entries": "train.py"}, f"`entries` {ENTRIES}, not 'train.py'"),
        ({"entries": [{"args": ["a"]}]}, f"`entries` {ENTRIES}, not [{{'args': ['a']}}]"),
        ({"entries": [{"program": "a", "args": [1]}]}, f"`entries` {ENTRIES}, not [{{'program': 'a', 'args': [1]}}]"),
        ({"seconds": 0}, "`seconds` is a number of seconds, above 0, not 0"),
        ({"seconds": True}, "`seconds` is a number of seconds, above 0, not True"),
        ({"tier": "all"}, "`tier` is one of state, grad, full, deep, not 'all'"),
        ({"trustd": True}, "`trustd` is no setting; did you mean `trusted`?"),
        ({"service": {"uri": 1}}, "`service` is an object of `url`, `isolation`, `seconds`, not {'uri': 1}"),
        ({"service": {"url": "file:///etc"}}, "`service.url` begins with http:// or https://, not 'file:///etc'"),
        (
            {"hints": {"leafs": True}},
            "`hints` is true, false, or an object of leaf, gradient, held, not {'leafs': True}",
        ),
        ([], "the settings must be an object"),
    ],
)
def test_what_is_wrong_is_told_and_the_rest_holds(told, problem):
    settings, wrong = settings_from(told, {})
    assert wrong == [problem]
    assert settings == Settings()


def test_hints_can_be_switched_off_together():
    assert settings_from({"hints": False}, {})[0].hints == frozenset()


def test_an_entry_is_told_by_its_path_in_the_workspace():
    folder, jobs = Path("/w"), Entry(program="jobs/*.py", arguments=("1",))
    assert entry_of("/w/jobs/a.py", folder, [Entry(program="a.py"), jobs, Entry(program="*")]) is jobs
    assert entry_of("/w/train.py", folder, [jobs]) is None
    assert entry_of("/w/train.py", folder, []) is None


def test_a_project_says_by_which_rules_a_service_judges():
    assert judging({"ignore": ["BP3"], "min-confidence": "likely", "tier": "grad"}) == {
        "ignore": ["BP3"],
        "min_confidence": "likely",
    }


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_program_has_what_it_imports_of_the_workspace(tmp_path):
    write(
        tmp_path,
        jobs__train="import torch, model\nfrom lib.parts import block\nimport package.part\n",
        src__package__part="from . import near\nfrom .deep.far import x\n",
        src__package__near="",
        src__package__deep__far="from ..near import x\n",
        jobs__model="import far\n",
        far="x = 1\n",
        lib__parts="import json\n",
        unused="y = 1\n",
    )
    (tmp_path / "lib" / "__init__.py").write_text("")
    program = read_program(tmp_path / "jobs" / "train.py", tmp_path)
    assert program.entry == "jobs/train.py"
    assert sorted(program.files) == [
        "far.py", "jobs/model.py", "jobs/train.py", "lib/__init__.py", "lib/parts.py",
        "src/package/deep/far.py", "src/package/near.py", "src/package/part.py",
    ]  # fmt: skip
    bodies = {path: text.encode() for path, text in program.files.items()}
    assert program.sha256 == snippet_digest("jobs/train.py", bodies).hex()


def test_no_link_leads_a_program_out_of_the_workspace(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "w").mkdir()
    (tmp_path / "out" / "secret.py").write_text("key = 1\n")
    (tmp_path / "w" / "secret.py").symlink_to(tmp_path / "out" / "secret.py")
    write(tmp_path / "w", train="import secret\nimport sys\n")
    assert list(read_program(tmp_path / "w" / "train.py", tmp_path / "w").files) == ["train.py"]


def test_a_file_outside_the_workspace_is_a_program_of_its_own_folder(tmp_path):
    write(tmp_path, a="x = (\n")
    program = read_program(tmp_path / "a.py", tmp_path / "elsewhere")
    assert (program.root, program.entry) == (tmp_path, "a.py")


def test_what_cannot_be_run_says_why(tmp_path):
    (tmp_path / "a.py").write_bytes(b"\xff")
    (tmp_path / "b.py").write_text("#" * ((1 << 20) + 1))
    for name, why in (("a.py", "no UTF-8"), ("b.py", "1,048,577 bytes"), ("c.py", "save it first")):
        with pytest.raises(NotAProgram, match=why):
            read_program(tmp_path / name, tmp_path)


def test_a_stored_result_is_its_owners_alone_and_the_oldest_goes(tmp_path):
    cache = Cache(tmp_path)
    assert cache.get("a" * 64) is None
    cache.put("a" * 64, result())
    assert cache.get("a" * 64) == result()
    assert (tmp_path / "editor").stat().st_mode & 0o077 == 0
    assert next((tmp_path / "editor").iterdir()).stat().st_mode & 0o077 == 0
    for n in range(MOST_KEPT + 2):
        cache.put(f"{n:064}", result())
    assert len(list((tmp_path / "editor").iterdir())) == MOST_KEPT
    (tmp_path / "editor" / f"{'b' * 64}.json").write_text("{}")
    assert cache.get("b" * 64) is None


def test_a_home_that_cannot_be_written_loses_the_result_and_nothing_else(tmp_path):
    (tmp_path / "file").write_text("")
    Cache(tmp_path / "file").put("a" * 64, result())


def report(**other):
    return {
        "script": "train.py",
        "findings": [],
        "tensors": [],
        "backward_calls": [],
        "exit_code": 0,
        "exception": None,
        "summary": "none",
    } | other


def test_a_failure_is_placed_on_the_line_that_raised():
    raised = {"type": "RuntimeError", "message": "x", "path": "model.py", "line": 7}
    assert from_report(report(exception=raised, exit_code=1)).failure == Failure(
        message="RuntimeError: x", path="model.py", line=7
    )
    syntax = {"type": "SyntaxError", "message": "'(' was never closed (train.py, line 3)", "path": None, "line": None}
    assert from_report(report(exception=syntax, exit_code=1)).failure == Failure(
        message="SyntaxError: '(' was never closed (train.py, line 3)", line=3
    )
    elsewhere = syntax | {"message": "invalid syntax (model.py, line 3)"}
    assert from_report(report(exception=elsewhere, exit_code=1)).failure.line is None
    assert from_report(report(exit_code=3)).failure == Failure(message="the program ended with exit code 3")


@pytest.mark.parametrize(
    "told", [None, [], {}, report(findings=[{}]), report(tensors=[{"path": "a", "line": 1}]), report(tensors=4)]
)
def test_a_report_of_another_shape_is_refused(told):
    with pytest.raises(Unreadable, match="the report of the run"):
        from_report(told)
    with pytest.raises(Unreadable, match="what the service says"):
        from_service({"entry": "a"}, findings=[{}], tensors=[], calls=[], page="")


def test_what_speaks_of_files_that_are_not_the_programs_is_left_out():
    there = place_result(
        result(failure=Failure(message="x", path="/elsewhere", line=4)), "/e/train.py", {PATH: ("/e/train.py", "text")}
    )
    assert there.texts == {"/e/train.py": "text"}
    assert {finding.location.path for finding in there.findings} == {"/e/train.py"}
    assert {edit.path for finding in there.findings for fix in finding.fixes for edit in fix.edits} == {"/e/train.py"}
    assert there.failure == Failure(message="x")
    nothing = place_result(result(), "/e/train.py", {})
    assert (nothing.findings, nothing.tensors, nothing.calls) == ((), (), ())
