"""`backprobe audit --local`, and what both ways have in common: what is audited, the policy's file, formats, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest

from backprobe.cli import main
from backprobe.cli.audit.commits import changed_programs
from backprobe.cli.audit.policy_file import policy_file
from backprobe.cli.audit.programs import programs
from backprobe.cli.exit_codes import UsageError
from backprobe.imported_files import imported_files
from backprobe.record import dumps
from tests.support import samples


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


@pytest.fixture
def record(folder):
    """A record with one finding of level warning, BP101."""
    (folder / "records").mkdir()
    path = folder / "records" / "job.bprec"
    path.write_bytes(dumps(samples.tutorial()))
    return path


def policy(folder, text):
    path = folder / "policy.toml"
    path.write_text(text)
    return path


def audit(*arguments):
    return main(["audit", "--local", *map(str, arguments)])


def test_records_are_judged_by_the_policy_and_the_exit_code_says_it(folder, record, capsys):
    assert audit("records") == 0
    assert "audit passed: 1 warn; 1 finding" in capsys.readouterr().out
    strict = policy(folder, '[policy]\nname = "pre-merge"\nfail = ["BP1"]\n')
    assert audit("records", "--policy", strict) == 1
    said = capsys.readouterr().out
    assert re.search(r"^fail     records/job.bprec$", said, re.MULTILINE)
    assert "pre-merge failed: 1 fail; 1 finding" in said
    assert audit("records", "--policy", strict, "--exit-zero") == 0


def test_known_findings_do_not_fail_where_only_new_ones_count(folder, record, capsys):
    strict = policy(folder, '[policy]\nfail = ["BP101"]\nnew-only = true\n')
    assert audit(record, "--policy", strict, "--format", "json", "--output", "before.json") == 1
    assert audit(record, "--policy", strict, "--baseline", "before.json") == 0
    said = capsys.readouterr()
    assert "1 pass; 1 finding (0 new, 1 known, 0 gone)" in said.out
    assert said.err == ""
    assert audit(record, "--baseline", "before.json") == 0
    assert capsys.readouterr().err.startswith("backprobe: the policy has no `new-only = true`")
    assert audit(record, "--baseline", "aud_01J9ZZZZZZZZZZZZZZZZZZZZZZ") == 2
    assert "with --local `--baseline` is the JSON report" in capsys.readouterr().err
    assert main(["audit", "--url", "http://127.0.0.1:9", "--baseline", "before.json", str(record)]) == 2
    assert "on a service `--baseline` is an audit's id" in capsys.readouterr().err
    assert audit(record, "--baseline", "policy.toml") == 2
    assert "not what `backprobe audit --format json` writes" in capsys.readouterr().err


def test_one_audit_is_written_in_every_format(folder, record, capsys, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    pairs = [(form, f"out.{form}") for form in ("json", "sarif", "junit", "github", "html")]
    flat = [word for form, path in pairs for word in ("--format", form, "--output", path)]
    assert audit(record, *flat, "--format", "text") == 0
    assert "BP101" in capsys.readouterr().out
    told = json.loads((folder / "out.json").read_text())
    assert (told["schema"], told["verdict"], told["counts"]) == ("backprobe.audit/1", "passed", {"warn": 1})
    (run,) = json.loads((folder / "out.sarif").read_text())["runs"]
    assert run["automationDetails"]["id"] == "backprobe/audit/"
    assert [result["ruleId"] for result in run["results"]] == ["BP101"]
    assert ET.parse(folder / "out.junit").getroot().get("failures") == "0", "it warns only"
    lines = (folder / "out.github").read_text().splitlines()
    assert lines[0].startswith("::warning file=")
    assert lines[-1] == "backprobe: 1 warning; audit passed: 1 warn; 1 finding"
    page = (folder / "out.html").read_text()
    assert "BP101" in page
    assert re.findall(r"<script|<link|src=|href=|@import|url\(", page) == [], "nothing is loaded by it"
    assert "| warn | `records/job.bprec` | non-leaf-grad-read |" in (folder / "summary.md").read_text()


def test_without_the_reports_scripts_the_other_formats_are_written(folder, record, capsys, monkeypatch):
    from backprobe.show.html_report import assets

    monkeypatch.setattr(assets.assets, "__defaults__", (folder / "nowhere",))
    html = ("--format", "html", "--output", "out.html")
    assert audit(record, *html, "--format", "json", "--output", "out.json") == 0
    assert "no HTML report is written: the scripts of the report were not built" in capsys.readouterr().err
    assert ((folder / "out.json").exists(), (folder / "out.html").exists()) == (True, False)
    assert audit(record, *html) == 2
    assert "--format html: the scripts" in capsys.readouterr().err


def test_a_strangers_text_is_no_markup(folder):
    from backprobe.show.audits import html
    from backprobe.show.audits.report import AuditedItem, AuditReport
    from backprobe.show.formats.program_report import Reported

    bad = "<script>alert(1)</script>"
    told = Reported(name=bad, findings=(), ended_well=False, ending=bad, ruleset=None, rules_judged=0, problem=bad)
    item = AuditedItem(name=bad, verdict=None, cells=(), reported=told)
    assert "<script" not in html.render(AuditReport(name=bad, word="failed", items=[item]))


def test_what_could_not_be_judged_never_passes(folder, capsys):
    (folder / "broken.bprec").write_bytes(b"no record")
    assert audit("broken.bprec") == 1
    assert "not-run  broken.bprec: it is no record that can be read" in capsys.readouterr().out
    lenient = policy(folder, '[policy]\nnot-run = "warn"\n')
    assert audit("broken.bprec", "--policy", lenient) == 0


def test_a_program_with_fewer_backward_calls_than_the_policy_demands_was_not_judged(folder, record, capsys):
    calls = len(samples.tutorial().backward_calls)
    enough = policy(folder, f"[policy]\nmin-backward-calls = {calls}\n")
    assert audit("records", "--policy", enough) == 0
    capsys.readouterr()
    more = policy(folder, f"[policy]\nmin-backward-calls = {calls + 1}\n")
    written = ("--format", "junit", "--output", "out.xml", "--format", "github")
    assert audit("records", "--policy", more, *written) == 1
    said = f"the policy demands at least {calls + 1} (min-backward-calls)"
    assert said in capsys.readouterr().out
    assert said in (folder / "out.xml").read_text()
    lenient = policy(folder, f'[policy]\nmin-backward-calls = {calls + 1}\nnot-run = "warn"\n')
    assert audit("records", "--policy", lenient) == 0
    assert audit("records", "--policy", policy(folder, "[policy]\nmin-backward-calls = -1\n")) == 2


def test_findings_are_marked_as_known_or_new_and_gone_counts_what_was_audited_again(folder, record, capsys):
    for name in ("left_out", "fixed"):
        (folder / "records" / f"{name}.bprec").write_bytes(dumps(samples.tutorial(path=f"{name}.py")))
    assert audit("records", "--format", "json", "--output", "before.json") == 0
    (folder / "records" / "left_out.bprec").unlink()
    (folder / "records" / "fixed.bprec").write_bytes(dumps(samples.tutorial(path="added.py")))
    assert (
        audit("records", "--baseline", "before.json", "--format", "json", "--output", "out.json", "--format", "text")
        == 0
    )
    said = capsys.readouterr().out
    assert "3 findings" not in said
    assert "2 findings (1 new, 1 known, 1 gone)" in said
    assert "added.py:5:1: non-leaf-grad-read BP101 warning (new): " in said
    assert "snippet.py:5:1: non-leaf-grad-read BP101 warning (known): " in said
    told = json.loads((folder / "out.json").read_text())["items"]
    assert [finding["known"] for item in told for finding in item["findings"]] == [False, True]


def committed(folder, text):
    """A commit of all files of the folder; its name."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (["init", "--quiet"], ["add", "--all"], [*identity, "commit", "--quiet", "--message", text]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_commit_is_a_baseline_and_only_what_changed_since_is_audited(folder, record, capsys):
    (folder / "records" / "other.bprec").write_bytes(dumps(samples.tutorial(path="other.py")))
    first = committed(folder, "first")
    nothing = ("--changed-since", first, "--format", "json", "--output", "out.json", "--format", "text")
    assert audit("records", *nothing) == 0
    said = capsys.readouterr()
    assert f"0 of 2 programs changed since {first}" in said.err
    assert "audit passed: nothing was judged" in said.out
    assert json.loads((folder / "out.json").read_text())["items"] == []
    (folder / "records" / "other.bprec").write_bytes(dumps(samples.tutorial(path="added.py")))
    committed(folder, "second")
    strict = policy(folder, '[policy]\nfail = ["BP101"]\nnew-only = true\n')
    assert audit("records/job.bprec", "--policy", strict, "--baseline-commit", first) == 0
    assert "1 finding (0 new, 1 known, 0 gone)" in capsys.readouterr().out
    assert audit("records", "--policy", strict, "--baseline-commit", first, "--changed-since", first) == 1
    assert "1 finding (1 new, 0 known, 1 gone)" in capsys.readouterr().out
    assert audit("records", "--changed-since", "no-such-commit") == 2
    assert "git: fatal: bad revision 'no-such-commit'" in capsys.readouterr().err
    assert audit("records", "--baseline", "out.json", "--baseline-commit", first) == 2


def test_a_program_changes_with_what_it_imports_and_with_the_files_of_its_policy(folder):
    for name, text in {
        "jobs/a.py": "from lib import x\n", "jobs/b.py": "x = 1\n", "jobs/c.py": "y = 1\n", "lib/__init__.py": "", "lib/x.py": "",
        "words.txt": "",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    told = policy_file(policy(folder, '[policy]\nentries = ["jobs/*.py"]\n[run."jobs/b.py"]\nfiles = ["*.txt"]\n'))
    chosen = programs([], told)
    first = committed(folder, "first")

    def changed():
        return [program.name for program in changed_programs(chosen, first, told)]

    assert changed() == []
    (folder / "lib" / "x.py").write_text("x = 2\n")
    assert changed() == ["jobs/a.py"]
    (folder / "words.txt").write_text("a")
    committed(folder, "second")
    (folder / "jobs" / "d.py").write_text("")
    chosen = programs([], told)
    assert changed() == ["jobs/a.py", "jobs/b.py", "jobs/d.py"]


@pytest.mark.usefixtures("fresh_python")
def test_programs_run_side_by_side_and_keep_their_order(folder, capsys):
    """Each waits for the other: one after the other, neither ends."""
    (folder / "jobs").mkdir()
    for mine, other in (("a", "b"), ("b", "a")):
        (folder / "jobs" / f"{mine}.py").write_text(
            f"import time\nfrom pathlib import Path\nPath('{mine}').touch()\n"
            f"while not Path('{other}').exists():\n    time.sleep(0.01)\n"
        )
    assert audit("jobs", "--jobs", 2, "--format", "json", "--output", "out.json") == 0
    told = json.loads((folder / "out.json").read_text())
    assert [(item["name"], item["verdict"]) for item in told["items"]] == [("jobs/a.py", "pass"), ("jobs/b.py", "pass")]
    assert audit("jobs", "--jobs", 0) == 2


@pytest.mark.usefixtures("fresh_python")
def test_scripts_are_run_with_their_arguments_and_named_as_the_repository_names_them(folder, capsys):
    (folder / "jobs").mkdir()
    (folder / "jobs" / "a.py").write_text(f"import sys\nassert sys.argv[1:] == ['--steps', '2']\n{samples.TUTORIAL}")
    (folder / "jobs" / "slow.py").write_text("import time\ntime.sleep(600)\n")
    told = policy(
        folder,
        '[policy]\nentries = ["jobs/*.py"]\nfail = ["BP101"]\n[run."jobs/a.py"]\narguments = ["--steps", "2"]\n'
        '[run."jobs/slow.py"]\nlimits = { wall_seconds = 1 }\n',
    )
    assert audit("--policy", told, "--format", "json", "--output", "out.json") == 1
    first, slow = json.loads((folder / "out.json").read_text())["items"]
    assert (first["name"], first["verdict"], first["findings"][0]["location"]["path"]) == (
        "jobs/a.py",
        "fail",
        "jobs/a.py",
    )
    assert slow["verdict"] in ("not-run", "error"), "by whether its record had begun"
    assert slow["problem"] == "it was stopped after 1 s"


PACKAGE = """\
import torch

def train(net):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        loss = net(x).pow(2).mean()
        loss.backward()
        opt.step()
"""
MAIN = "import torch\nfrom fitting.loops import train\ntrain(torch.nn.Linear(3, 1))\n"


@pytest.mark.usefixtures("fresh_python")
def test_a_package_of_the_repository_is_judged_as_the_scripts_own(folder, capsys, monkeypatch):
    for path, text in (("jobs/main.py", MAIN), ("fitting/__init__.py", ""), ("fitting/loops.py", PACKAGE)):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    strict = policy(folder, '[policy]\nfail = ["BP210"]\n')
    assert audit("jobs/main.py", "--policy", strict) == 1
    said = capsys.readouterr().out
    assert "fitting/loops.py:7:9: missing-zero-grad BP210" in said
    assert "fail     jobs/main.py" in said


@pytest.mark.usefixtures("fresh_python")
def test_sources_lie_around_the_script_and_are_not_copied_for_trials(folder, capsys):
    (folder / "jobs").mkdir()
    for path in ("jobs/main.py", "other.py"):
        (folder / path).write_text("x = 1\n")
    assert main(["run", "--sources", "jobs", "other.py"]) == 2
    assert "other.py is not inside the folder of --sources, jobs" in capsys.readouterr().err
    assert main(["run", "--sources", ".", "--try-fixes", "other.py"]) == 2
    assert "--sources cannot be used when fixes are tried" in capsys.readouterr().err
    assert main(["run", "--sources", ".", "-m", "other"]) == 2
    assert "--sources goes with a script" in capsys.readouterr().err


@pytest.mark.usefixtures("fresh_python")
def test_a_program_that_raised_is_told_with_its_exception(folder, capsys):
    (folder / "model.py").write_text("def rows():\n    raise ValueError('no rows\\nat all')\n")
    (folder / "train.py").write_text("import model\nmodel.rows()\n")
    assert audit("train.py") == 1
    assert "error    train.py: ValueError: no rows (model.py:2)" in capsys.readouterr().out
    assert audit("train.py", "--format", "junit", "--output", "out.xml", "--format", "github") == 1
    title = "title=the program did not end well"
    assert capsys.readouterr().out.splitlines() == [
        f"::error file=model.py,line=2,{title}::train.py: ValueError: no rows (model.py:2)",
        "backprobe: 1 error; audit failed: 1 error; 0 findings",
    ]
    error = ET.parse(folder / "out.xml").getroot().find(".//error")
    assert error is not None
    assert error.get("message") == "ValueError: no rows (model.py:2)"


def test_ctrl_c_ends_it_with_one_line(folder, capsys, monkeypatch):
    def pressed(*_anything):
        raise KeyboardInterrupt

    (folder / "train.py").write_text("")
    monkeypatch.setattr("backprobe.cli.audit.local._run", pressed)
    assert audit("train.py") == 130
    said = capsys.readouterr().err.splitlines()
    assert said == ["backprobe: stopped by Ctrl-C with 0 of 1 programs done; no report is written"]


def test_a_patch_is_told(folder, record, capsys):
    assert audit(record, "--patch", "fixes.diff") == 0
    assert "backprobe: 0 confirmed safe fixes in fixes.diff" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[policy]\nfial = []\n", "did you mean `fail`"),
        ('[policy]\nfail = ["non-leaf-grad-raed"]\n', "non-leaf-grad-read"),
        ('[policy]\nfail = ["level:bad"]\n', "there are level:error"),
        ('[policy]\nfail = "BP1"\n', "must be a list of texts"),
        ('[policy]\nnot-run = "maybe"\n', "one of fail, warn"),
        ("[policy]\nlimits = { wall_seconds = -1 }\n", "a table of numbers from 1"),
        ('[run."a.py"]\nargs = []\n', "did you mean `arguments`"),
        ('[run]\n"a.py" = 1\n', "must be a table"),
        ("policy = 1\n", "must be a table"),
        ("[policy", "is no TOML"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused_with_what_can(folder, text, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        policy_file(policy(folder, text))


def test_a_policy_is_what_it_says(folder):
    found = policy_file(
        policy(folder, '[policy]\nname = "p"\nfail = ["BP1"]\nmin-confidence = "likely"\ntier = "grad"\n')
    )
    assert (found.name, found.rules.fail, found.rules.min_confidence, found.defaults.tier) == (
        "p",
        ["BP1"],
        "likely",
        "grad",
    )
    assert found.body == {
        "name": "p", "fail": ["BP1"], "warn": ["*"], "min_confidence": "likely", "new_only": False, "not_run": "fail",
        "min_backward_calls": 0,
    }  # fmt: skip


def test_a_path_is_a_script_a_folder_a_list_or_a_run(folder, record):
    (folder / "jobs" / "deep").mkdir(parents=True)
    for name in ("jobs/a.py", "jobs/deep/b.py", "jobs/.hidden.py", "jobs/__init__.py"):
        (folder / name).write_text("")
    (folder / "list.txt").write_text("# ours\njobs/deep\n\nrun_01J9ZZZZZZZZZZZZZZZZZZZZZZ\n")
    plain = policy_file(None)
    assert [program.name for program in programs(["jobs"], plain)] == ["jobs/a.py", "jobs/deep/b.py"]
    assert [program.name for program in programs(["@list.txt", "jobs/a.py", "jobs/a.py"], plain)] == [
        "jobs/deep/b.py", "run_01J9ZZZZZZZZZZZZZZZZZZZZZZ", "jobs/a.py",
    ]  # fmt: skip
    assert [program.name for program in programs(["records"], plain)] == ["records/job.bprec"]
    twice = policy_file(policy(folder, '[[run."jobs/a.py"]]\narguments = ["1"]\n[[run."jobs/a.py"]]\nname = "two"\n'))
    assert [(program.name, program.settings.arguments) for program in programs([], twice)] == [
        ("jobs/a.py #1", ("1",)),
        ("two", ()),
    ]
    for paths, said in (
        (["gone.py"], "there is no file"),
        ([], "nothing to audit"),
        (["@gone"], "cannot read the list"),
    ):
        with pytest.raises(UsageError, match=said):
            programs(paths, plain)


def test_a_pattern_of_entries_that_is_no_file_is_refused_also_beside_a_run(folder):
    (folder / "a.py").write_text("")
    wrong = policy_file(policy(folder, '[policy]\nentries = ["jbos/*.py"]\n[run."a.py"]\nseed = 1\n'))
    with pytest.raises(UsageError, match=r"nothing to audit: no file is `jbos/\*.py`"):
        programs([], wrong)


def test_modules_of_the_project_come_along_and_libraries_do_not(folder):
    for name, text in {
        "jobs/train.py": "import torch, model\nfrom lib.data import rows\nfrom lib import words\nimport gone\n",
        "jobs/model.py": "import json\nfrom lib import data\n",
        "lib/__init__.py": "",
        "lib/data.py": "from . import words\nfrom .deep.one import x\n",
        "lib/words.py": "import train\n",
        "lib/deep/one.py": "not python (",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = folder / "jobs" / "train.py"
    found = imported_files(script, (script.parent, folder))
    assert [path.relative_to(folder).as_posix() for path in found] == [
        "jobs/train.py", "jobs/model.py", "lib/__init__.py", "lib/data.py", "lib/words.py", "lib/deep/one.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ["--output", "a", "--output", "b"],
        ["--format", "json", "--format", "text"],
        ["--format", "json", "--output", "no/a"],
    ],
)
def test_formats_and_files_come_in_pairs(record, arguments, capsys):
    assert audit(record, *arguments) == 2
    assert "backprobe:" in capsys.readouterr().err
