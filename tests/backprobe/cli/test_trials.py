"""`backprobe run --try-fixes`: each fix is tried in a separate run, and the confirmed safe ones are handed out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import msgspec
import pytest

from backprobe.cli import main
from backprobe.cli.audit import local
from backprobe.cli.exit_codes import OutputLost, UsageError
from backprobe.cli.parser import parse
from backprobe.cli.trials import trial_runs
from backprobe.cli.trials.options import hand_out
from backprobe.cli.trials.patch import confirmed_safe, diff, edit_texts, write
from backprobe.cli.trials.program_start import Started
from backprobe.cli.trials.taken_fixes import TakenFixes
from backprobe.cli.trials.trial_runs import Trials
from backprobe.rules import Edit, Region, judge
from backprobe.rules.framework.finding import Trial
from backprobe.rules.manual_programs import programs
from backprobe.show.audits.report import AuditReport
from tests.support import forks

PROGRAM = """\
import torch
torch.manual_seed(0)
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
kept = []
for _ in range(8):
    loss = (w * w).sum()
    loss.backward()
    opt.step()
    kept.append(loss)
print(len(kept))
"""
LEAK = PROGRAM.replace("    loss.backward", "    opt.zero_grad()\n    loss.backward")
MENDED = LEAK.replace("kept.append(loss)", "kept.append(loss.item())")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


@pytest.mark.usefixtures("fresh_python")
def test_a_fix_is_told_with_its_verdict_and_written_and_its_patch_makes_the_mended_program(folder):
    (folder / "train.py").write_text(LEAK)
    done = forks.backprobe(
        "run", "--write-fixes", "--patch", "p", "--format", "json", "--output", "r.json", "train.py", cwd=folder
    )
    assert (done.returncode, done.stdout) == (1, "8\n"), done.stderr
    (finding,) = json.loads((folder / "r.json").read_text())["findings"]
    assert [fix["trial"] for fix in finding["fixes"]] == [{"verdict": "confirmed", "why": ""}]
    assert [line for line in done.stderr.splitlines() if line.startswith("backprobe: ")] == [
        "backprobe: trying fixes, run 1 of 2: as it is",
        "backprobe: trying fixes, run 2 of 2: BP305 train.py:11",
        "backprobe: 1 confirmed safe fix in p",
        "backprobe: wrote 1 confirmed safe fix into train.py",
    ]
    assert (folder / "train.py").read_text() == MENDED
    apply("p", folder, "--reverse")
    assert (folder / "train.py").read_text() == LEAK


def apply(patch, folder, *options):
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(["git", "apply", *options, patch], cwd=folder, check=True, env=environment)


def started(folder, **more):
    return Started(program="train.py", files=folder, folder=folder, environment=dict(os.environ), seed=0, **more)


def trials(folder, text, **more):
    """The judgement of a program, and what tries its fixes."""
    (folder / "train.py").write_text(text)
    record = programs().captured(text)
    judgement = judge(record)
    told = []
    return (
        judgement,
        Trials(started(folder, **more), record, judgement, None, lambda *arguments: told.append(arguments)),
        told,
    )


def fixes_of(judgement):
    return [fix for finding in judgement.findings for fix in finding.fixes if fix.edits]


def test_a_file_that_changed_after_the_run_is_not_tried(folder):
    _judgement, started_trials, told = trials(folder, PROGRAM)
    (folder / "train.py").write_text("# " + PROGRAM)
    assert [fix.trial for fix in fixes_of(started_trials.try_fixes())] == [
        Trial(verdict="not-tried", why="train.py has changed since the program ran")
    ] * 2
    assert told == []


@pytest.mark.usefixtures("fresh_python")
def test_a_program_that_ends_otherwise_when_it_runs_again_tells_nothing_of_a_fix(folder):
    text = PROGRAM + f"import os\nif os.path.exists({str(folder / 'seen')!r}):\n    raise SystemExit(3)\n"
    _judgement, started_trials, _told = trials(folder, text)
    (folder / "seen").touch()
    found = {fix.trial for fix in fixes_of(started_trials.try_fixes())}
    assert {trial.verdict for trial in found} == {"not-tried"}
    assert "it fails (exit code 3)" in found.pop().why


@pytest.mark.usefixtures("fresh_python")
def test_a_trial_that_does_not_end_is_killed_and_breaks(folder, monkeypatch):
    record = programs().captured(PROGRAM)
    judgement = judge(record)
    (folder / "train.py").write_text(PROGRAM)
    hanging = edit((1, 1), (1, 1), "while True: pass\n")
    finding = judgement.findings[0]
    fix = msgspec.structs.replace(finding.fixes[0], edits=(hanging,))
    only = replace(judgement, findings=(msgspec.structs.replace(finding, fixes=(fix,)),))

    def short(number, *_):
        if number > 1:  # the run without a fix has its minute
            monkeypatch.setattr(trial_runs, "MORE_SECONDS", 0.5)

    (tried,) = fixes_of(Trials(started(folder), record, only, None, short).try_fixes())
    assert tried.trial == Trial(verdict="breaks", why="the program fails: it did not end within 0 s")


@pytest.mark.usefixtures("fresh_python")
def test_more_fixes_than_are_tried_are_told(folder, monkeypatch):
    monkeypatch.setattr(trial_runs, "MOST_TRIALS", 1)
    _judgement, started_trials, told = trials(folder, PROGRAM)
    assert [fix.trial for fix in fixes_of(started_trials.try_fixes())] == [
        Trial(verdict="confirmed"), Trial(verdict="not-tried", why="1 fixes of a program are tried, and no more"),
    ]  # fmt: skip
    assert [number for number, total, _what in told if total == 2] == [1, 2]


def edit(start, end, text):
    region = Region(start_line=start[0], start_col=start[1], end_line=end[0], end_col=end[1])
    return Edit(path="train.py", region=region, text=text)


def build_judgement(*fixes):
    """A judgement of the program with these fixes, as (safety, verdict, edit); all of one finding or one each."""
    judgement = judge(programs().captured(PROGRAM))
    like = judgement.findings[0].fixes[0]
    made = [
        msgspec.structs.replace(like, safety=safety, edits=(edit,), trial=Trial(verdict=verdict))
        for safety, verdict, edit in fixes
    ]
    return replace(
        judgement, findings=tuple(msgspec.structs.replace(judgement.findings[0], fixes=(fix,)) for fix in made)
    )


def test_only_fixes_that_are_safe_and_confirmed_are_taken_and_none_over_another():
    first, over, apart = edit((2, 1), (2, 6), "a"), edit((2, 4), (2, 9), "b"), edit((4, 1), (4, 2), "c")
    told = build_judgement(
        ("safe", "confirmed", first), ("safe", "confirmed", over), ("safe", "changes-values", apart),
        ("unsafe", "confirmed", edit((5, 1), (5, 2), "d")), ("safe", "confirmed", apart),
    )  # fmt: skip
    assert [fix.edits for _finding, fix in confirmed_safe(told.findings)] == [(first,), (apart,)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\n", b"a\nB\n"),
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        (b"a\nb", b"a\nB"),
        (b"a\nb\x0cb\n", b"a\nB\x0cb\n"),
    ],
)
def test_files_keep_their_line_ends_and_their_mode_and_the_diff_can_be_applied(tmp_path, monkeypatch, before, after):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_bytes(before)
    path.chmod(0o755)
    fixes = confirmed_safe(build_judgement(("safe", "confirmed", edit((2, 1), (2, 2), "B"))).findings)
    texts = edit_texts(tmp_path, fixes, {"train.py": before.decode().replace("\r\n", "\n")})
    (tmp_path / "p").write_bytes(diff(texts).encode())
    subprocess.run(
        ["git", "apply", "p"], cwd=tmp_path, check=True, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    )
    assert path.read_bytes() == after
    path.write_bytes(before)
    write(texts)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (after, 0o755)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "train.py"]


@pytest.mark.parametrize("now", ["# added\n" + LEAK, "pass\n"])
def test_a_file_that_changed_while_fixes_were_tried_is_not_edited(folder, now):
    judgement, started_trials, _told = trials(folder, LEAK)
    fixes = [(finding, finding.fixes[0]) for finding in judgement.findings]
    assert edit_texts(folder, fixes, started_trials.texts)[folder / "train.py"] == (LEAK, MENDED)
    (folder / "train.py").write_text(now)
    args = parse(["run", "--write-fixes", "--patch", str(folder / "p"), "train.py"])
    confirmed = [msgspec.structs.replace(fix, trial=Trial(verdict="confirmed")) for _finding, fix in fixes]
    told = replace(judgement, findings=(msgspec.structs.replace(judgement.findings[0], fixes=tuple(confirmed)),))
    with pytest.raises(OutputLost, match=r"could not be written \(train.py has changed since the program ran\)"):
        hand_out(args, started_trials, told, folder, StringIO())
    assert (folder / "train.py").read_text() == now
    assert not (folder / "p").exists()


@pytest.mark.parametrize("text", [b"a\r\nb\nc\n", b"# a\rb\nc\n", b"a\rb\rc\r", b"a\r\nb\rc\r\n"])
def test_a_file_of_mixed_line_ends_is_left_as_it_is(folder, text):
    (folder / "train.py").write_bytes(text)
    fixes = confirmed_safe(build_judgement(("safe", "confirmed", edit((2, 1), (2, 2), "B"))).findings)
    with pytest.raises(OSError, match=r"train\.py has mixed line ends"):
        edit_texts(folder, fixes, {"train.py": text.decode()})


def test_a_fix_in_a_file_of_mixed_line_ends_is_not_tried(folder):
    judgement, started_trials, told = trials(folder, LEAK)
    (folder / "train.py").write_bytes(LEAK.replace("\n", "\r\n", 1).encode())
    assert [fix.trial for fix in fixes_of(started_trials.try_fixes())] == [
        Trial(verdict="not-tried", why="train.py has mixed line ends")
    ] * len(fixes_of(judgement))
    assert (len(fixes_of(judgement)), told) == (1, [])


INTERRUPTED = """\
import sys
from backprobe.cli import main
from backprobe.cli.trials import trial_runs

def interrupted(*_):
    raise KeyboardInterrupt

trial_runs._await_exit = interrupted
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.usefixtures("fresh_python")
def test_what_the_run_found_is_told_when_its_trials_are_interrupted(folder):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "run", "--patch", "p", "--format", "json", "--output", "r.json", "train.py"],
        cwd=folder, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "8\n"), done.stderr
    assert done.stderr.splitlines()[-1] == "backprobe: interrupted: fixes were not tried"
    findings = json.loads((folder / "r.json").read_text())["findings"]
    assert {finding["rule"]["code"] for finding in findings} == {"BP210", "BP305"}
    assert not any("trial" in fix for finding in findings for fix in finding["fixes"])


def test_watch_tries_no_fix():
    with pytest.raises(UsageError, match="unknown option"):
        parse(["watch", "--try-fixes", "train.py"])
    assert parse(["run", "--patch", "f", "train.py"]).patch == Path("f")


@pytest.mark.usefixtures("fresh_python")
def test_an_audit_makes_one_patch_of_all_its_programs_and_edits_a_shared_file_once(folder, capsys, monkeypatch):
    (folder / "meter.py").write_text("kept = []\n\n\ndef keep(loss):\n    kept.append(loss)\n")
    text = (
        LEAK.replace("kept = []", "import meter")
        .replace("kept.append(loss)", "meter.keep(loss)")
        .replace("kept", "meter.kept")
    )
    for name in ("train.py", "second.py"):
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    assert main(["audit", "--local", "--patch", "p", "train.py", "second.py"]) == 0
    assert "trying fixes, run 2 of 2: BP305" in capsys.readouterr().err
    apply("p", folder)
    assert (folder / "meter.py").read_text() == "kept = []\n\n\ndef keep(loss):\n    kept.append(loss.item())\n"
    assert (folder / "train.py").read_text() == text


@pytest.mark.usefixtures("fresh_python")
def test_a_file_that_changed_during_an_audit_is_left_out_of_its_patch(folder, capsys, monkeypatch):
    taken = TakenFixes()
    monkeypatch.chdir(folder)
    texts = {"one.py": "a\nb\n", "two.py": "c\n", "three.py": "d\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)

    def edit_at(path, line, text):
        return msgspec.structs.replace(edit((line, 1), (line, 2), text), path=path)

    taken.take(folder, (edit_at("one.py", 2, "B"),), texts)
    taken.take(folder, (edit_at("one.py", 1, "A"), edit_at("two.py", 1, "C")), texts)
    taken.take(folder, (edit_at("three.py", 1, "D"),), texts)
    taken.take(folder, (edit_at("three.py", 2, "E"),), {"three.py": "x\nd\n"})  # places in another text
    (folder / "two.py").write_text("")
    (folder / "p").write_text(taken.patch())
    said = "backprobe: two.py has changed since the program ran: its fixes are not in the patch\n"
    assert capsys.readouterr().err == said
    apply("p", folder)
    assert {name: (folder / name).read_text() for name in texts} == {
        "one.py": "a\nB\n", "two.py": "", "three.py": "D\n",
    }  # fmt: skip


def test_a_patch_that_cannot_be_written_is_refused_before_an_audit_begins(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(local, "run_local_audit", lambda *_: pytest.fail("it began"))
    assert main(["audit", "--local", "--patch", "away/p", "train.py"]) == 2
    assert "there is no folder `away`" in capsys.readouterr().err


def test_an_audit_is_told_where_its_patch_cannot_be_written_any_more(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "to").mkdir()

    def without_its_folder(*_):
        (folder / "to" / "p").unlink(missing_ok=True)
        (folder / "to").rmdir()
        return AuditReport(name="nightly", word="passed", items=[])

    monkeypatch.setattr(local, "run_local_audit", without_its_folder)
    assert main(["audit", "--local", "--patch", "to/p", "--format", "json", "train.py"]) == 3
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "passed"
    assert "`to/p` was not written (No such file or directory)" in err
