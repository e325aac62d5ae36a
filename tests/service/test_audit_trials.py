"""`backprobe audit --try-fixes` against a real server: fixes are tried there, and the confirmed safe ones are one patch."""

from __future__ import annotations

import dataclasses
import subprocess
import threading
import time

import msgspec
import pytest

from backprobe.cli import main
from backprobe.cli.audit import remote, remote_trials
from backprobe.client import requests
from backprobe.rules import judge
from backprobe.rules.framework.finding import Edit, Fix, Region
from store.audits import judging

SECONDS = 60
"""Within which a test's audit ends; only a fault takes so long."""


@pytest.fixture
def job(tmp_path, monkeypatch, samples):
    monkeypatch.chdir(tmp_path)
    for where in (remote, remote_trials):
        monkeypatch.setattr(where, "_WAIT_SECONDS", 1)
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(requests, "LONGEST_PAUSE_SECONDS", 0.0)
    (tmp_path / "train.py").write_text(samples.TUTORIAL)
    return tmp_path


@pytest.fixture
def record(samples):
    return samples.tutorial(path="train.py")


def fix(line, text, safety="safe"):
    place = Region(start_line=line, start_col=1, end_line=line, end_col=1)
    return Fix(title="Do", safety=safety, edits=(Edit(path="train.py", region=place, text=text),))


def judge_with_fixes(record, *fixes):
    """Return the judgement of the record with its finding once per fix. Each has another line and another fix."""
    judged = judge(record)
    (finding,) = judged.findings
    findings = []
    for at, its in enumerate(fixes):
        region = msgspec.structs.replace(finding.location.region, start_line=3 + at, end_line=3 + at)
        location = msgspec.structs.replace(finding.location, region=region)
        findings.append(
            msgspec.structs.replace(finding, location=location, fingerprint=f"{at:016x}", fixes=(its,), evidence={})
        )
    return dataclasses.replace(judged, findings=tuple(findings))


class Workers(threading.Thread):
    """Ends what is queued: the audit's run with `first`, and what tries fixes with what `edited` says of its text.

    Attributes:
        texts: The edited texts that ran, in order.
    """

    def __init__(self, site, record, first, edited):
        super().__init__()
        self._site, self._record, self._first, self._edited = site, record, first, edited
        self.texts, self.over = [], threading.Event()

    def run(self):
        until = time.monotonic() + SECONDS
        while not self.over.is_set() and time.monotonic() < until:
            for query in ("", "&origin=trial"):
                newest_first = self._site.client.get(f"/v1/runs?status=queued{query}").json["items"]
                for row in reversed(newest_first):  # the oldest is claimed first
                    self._end(row)
            judging.settle(self._site.context.database)

    def _end(self, row):
        text = self._site.client.get(f"/v1/snippets/{row['snippet']}/files/train.py").text
        is_first = not self.texts and row["origin"] != "trial"
        if not is_first:
            self.texts.append(text)
        judgement = self._first if is_first else self._edited(text)
        self._site.finish(row["id"], self._record, judgement=judgement)


def audit(served, record, first, edited, *options):
    """Exit code of the command, and the edited texts that ran."""
    site, url = served
    workers = Workers(site, record, first, edited)
    workers.start()
    try:
        code = main(["audit", "train.py", "--url", url, "--exit-zero", *options])
    finally:
        workers.over.set()
        workers.join()
    return code, workers.texts


def test_a_fix_is_tried_there_and_is_told_and_patched(served, job, record, samples, capsys):
    silent = judge_with_fixes(record)
    done = audit(served, record, judge_with_fixes(record, fix(4, "# A\n")), lambda _: silent, "--patch", "p")
    lines = samples.TUTORIAL.splitlines(keepends=True)
    edited = "".join([*lines[:3], "# A\n", *lines[3:]])
    assert done == (0, [edited])
    out, err = capsys.readouterr()
    assert "tried: confirmed" in out
    assert "trying fixes, 1 of 1: BP101 train.py:3" in err
    subprocess.run(["git", "apply", "p"], cwd=job, check=True)
    assert (job / "train.py").read_text() == edited


def test_a_fix_that_leaves_the_finding_or_is_not_safe_is_told_and_not_patched(served, job, record, capsys):
    first = judge_with_fixes(record, fix(4, "# A\n"), fix(5, "# B\n", safety="unsafe"))

    def edited(text):
        return first if "# A" in text else judge_with_fixes(record, fix(4, "# A\n"))

    code, _texts = audit(served, record, first, edited, "--patch", "p")
    out = capsys.readouterr().out
    assert code == 0
    assert ("tried: insufficient" in out, "tried: confirmed" in out) == (True, True)
    assert (job / "p").read_text() == ""


@pytest.mark.parametrize("is_well", [True, False], ids=["well", "not well"])
def test_two_fixes_of_a_program_run_once_more_together(served, job, record, capsys, is_well):
    first_fix, second_fix = fix(4, "# A\n"), fix(6, "# B\n")
    first = judge_with_fixes(record, first_fix, second_fix)

    def edited(text):
        if "# A" in text and "# B" in text:
            return judge_with_fixes(record) if is_well else first
        (left,) = [at for at, mark in enumerate(("# A", "# B")) if mark not in text]
        kept = judge_with_fixes(record, first_fix, second_fix).findings[left]
        return dataclasses.replace(first, findings=(kept,))

    code, texts = audit(served, record, first, edited, "--patch", "p")
    assert (code, len(texts)) == (0, 3)
    patch = (job / "p").read_text()
    assert ("+# A" in patch, "+# B" in patch) == (is_well, is_well)
    assert ("not together: none is in the patch" in capsys.readouterr().err) is not is_well
    site, _url = served
    newest, first_run = site.client.get("/v1/runs").json["items"]
    assert newest["labels"] == {"fixes-of": first_run["id"]}
    assert newest["record"]["state"] == "expired"  # deleted with what it left


def test_a_trial_that_the_service_refuses_is_told_with_its_reason(served, job, record, capsys, monkeypatch):
    site, _url = served
    first = judge_with_fixes(record, fix(99, "# A\n"))  # a line that the program does not have
    code, texts = audit(served, record, first, lambda _: judge_with_fixes(record), "--try-fixes")
    assert (code, texts) == (0, [])
    assert "fix (safe): Do; not tried (The program that was sent is too short" in " ".join(
        capsys.readouterr().out.split()
    )
    assert site.client.get("/v1/runs?origin=trial").json["items"] == []


@pytest.fixture
def pressed(monkeypatch):
    """Ctrl-C at the next wait for a trial, or for the run of all fixes."""

    def press_at(what):
        def interrupted(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr(what, interrupted)

    return press_at


def test_ctrl_c_cancels_the_trials(served, job, record, monkeypatch, pressed):
    site, _url = served
    pressed("backprobe.cli.audit.remote_trials.RemoteTrials._wait")
    monkeypatch.setattr(Workers, "_end", _only(Workers._end, lambda row: row["origin"] != "trial"))
    code, texts = audit(
        served, record, judge_with_fixes(record, fix(4, "# A\n")), lambda _: judge_with_fixes(record), "--try-fixes"
    )
    assert (code, texts) == (130, [])
    (trial,) = site.client.get("/v1/runs?origin=trial").json["items"]
    assert trial["status"] == "canceled"


def test_ctrl_c_cancels_the_run_of_all_fixes(served, job, record, monkeypatch, pressed):
    site, _url = served
    first = judge_with_fixes(record, fix(4, "# A\n"), fix(6, "# B\n"))

    def edited(text):
        (left,) = [at for at, mark in enumerate(("# A", "# B")) if mark not in text]
        return dataclasses.replace(first, findings=(first.findings[left],))

    def is_taken(row):
        if "fixes-of" in row["labels"]:
            pressed("backprobe.client.Client.run")
            return False
        return True

    monkeypatch.setattr(Workers, "_end", _only(Workers._end, is_taken))
    code, texts = audit(served, record, first, edited, "--patch", "p")
    assert (code, len(texts)) == (130, 2)
    newest = site.client.get("/v1/runs").json["items"][0]
    assert (newest["status"], list(newest["labels"])) == ("canceled", ["fixes-of"])


def _only(end, is_taken):
    def end_if_taken(workers, row):
        if is_taken(row):
            end(workers, row)

    return end_if_taken
