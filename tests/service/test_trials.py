"""Trials over HTTP. A separate run tries a finding's fix, and the run and the finding show its verdict."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from backprobe.rules import judge
from backprobe.rules.framework.finding import Suppression
from store.audits import judging
from store.findings import rejudging
from store.findings import trials as stored_trials


@pytest.fixture
def run(site, samples):
    body = {"source": samples.TUTORIAL, "seed": 3, "labels": {"a": "b"}, "arguments": ["--x"]}
    return site.finished(body=body, judgement=samples.judged_with_fix(samples.tutorial()))


@pytest.fixture
def finding(site, run):
    (row,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    return row


def begin(site, finding, status=202, **body):
    answer = site.client.post(f"/v1/findings/{finding['id']}/trials", json=body)
    assert answer.status_code == status, answer.text
    return answer.json


def verdict(site, trial):
    told = site.client.get(f"/v1/runs/{trial}").json
    assert told["status"] == "succeeded"
    return told["trial"]["verdict"], told["trial"]["why"]


def judged_again(site, samples, judgement):
    """Write another judgement of the only run that is no trial."""
    database = site.context.database
    with database.read() as reading:
        (outdated,) = rejudging.older(reading, "another ruleset")
    assert rejudging.judged_again(database, outdated, samples.tutorial(), judgement, {}) is not None


def with_fix(samples):
    return samples.judged_with_fix(samples.tutorial())


def silent(samples):
    """The judgement of a record in which nothing was found."""
    return dataclasses.replace(judge(samples.tutorial()), findings=())


def test_a_trial_is_a_run_of_the_edited_program_with_all_else_as_it_was(site, run, finding, samples):
    assert finding["trials"] is None
    trial = begin(site, finding)
    first = site.client.get(f"/v1/runs/{run}").json
    assert (trial["origin"], trial["status"], trial["rerun_of"]) == ("trial", "queued", None)
    assert trial["trial"] == {"finding": finding["id"], "fix": 1, "verdict": None, "why": None}
    same = ("arguments", "seed", "labels", "limits", "capture", "queue", "project", "entry", "named")
    assert [trial[name] for name in same] == [first[name] for name in same]
    source = [line["text"] for line in site.client.get(f"/v1/runs/{trial['id']}/source").json["lines"]]
    before = [line["text"] for line in site.client.get(f"/v1/runs/{run}/source").json["lines"]]
    at = source.index(samples.ADDED.strip())
    assert source[:at] + source[at + 1 :] == before


def test_lists_leave_trials_out_unless_they_are_asked_for(site, run, finding, samples):
    trial = begin(site, finding)["id"]
    site.finish(trial)

    def list_ids(**asked):
        return [row["id"] for row in site.client.get("/v1/runs", query_string=asked).json["items"]]

    assert list_ids() == [run]
    assert list_ids(origin="trial") == [trial]
    assert list_ids(origin="trial,submitted") == [trial, run]
    assert [row["run"] for row in site.client.get("/v1/findings").json["items"]] == [run]
    (group,) = site.client.get("/v1/finding-groups").json["items"]
    assert (group["runs"], group["last_run"]) == (1, run)
    assert trial not in site.client.get("/runs").text


@pytest.mark.parametrize(
    ("record", "judgement", "verdict", "why"),
    [
        (lambda samples: samples.tutorial(), silent, "confirmed", ""),
        (lambda samples: samples.tutorial(), with_fix, "insufficient", "the finding is still there"),
        (
            lambda samples: without_end(samples.tutorial()),
            silent,
            "breaks",
            "the program fails: the process ended before",
        ),
    ],
)
def test_the_verdict_is_made_at_the_end_and_told_with_the_finding(
    site, finding, samples, record, judgement, verdict, why
):
    trial = begin(site, finding)["id"]
    address = f"/v1/findings/{finding['id']}"
    assert [told["verdict"] for told in site.client.get(f"{address}/trials").json["items"]] == [None]
    site.finish(trial, record(samples), judgement=judgement(samples))
    told = site.client.get(f"/v1/runs/{trial}").json["trial"]
    assert (told["verdict"], told["why"][: len(why)] if why else told["why"]) == (verdict, why)
    (row,) = site.client.get(f"{address}/trials").json["items"]
    assert (row["run"], row["fix"], row["verdict"], row["why"]) == (trial, 1, verdict, told["why"])
    assert site.client.get(address, query_string={"include": "trials"}).json["trials"] == [row]
    assert site.client.get(address).json["trials"] is None
    listed = site.client.get(f"/v1/runs/{finding['run']}/findings", query_string={"include": "trials"}).json["items"]
    assert [found["trials"] for found in listed] == [[row]]


def without_end(record):
    return msgspec.structs.replace(record, end=None)


def test_a_trial_that_was_canceled_tells_that_nothing_was_tried(site, finding):
    trial = begin(site, finding)["id"]
    assert site.client.post(f"/v1/runs/{trial}/cancel").status_code in (200, 202)
    told = site.client.get(f"/v1/runs/{trial}").json["trial"]
    assert (told["verdict"], told["why"]) == ("not-tried", "its run is canceled and left nothing to judge")


def test_only_a_fix_with_edits_is_tried(site, finding):
    for fix in (0, 7):
        assert begin(site, finding, status=422, fix=fix)["errors"][0]["pointer"] == "#/fix"
    assert begin(site, {"id": "f_01JD0000000000000000000000"}, status=404)["code"] == "not-found"


def test_a_trial_is_not_judged_again(site, finding, samples):
    trial = begin(site, finding)["id"]
    assert site.client.post(f"/v1/runs/{trial}/judge").json["code"] == "run-not-ended"
    site.finish(trial, samples.tutorial(), judgement=silent(samples))
    answer = site.client.post(f"/v1/runs/{trial}/judge")
    assert (answer.status_code, answer.json["code"]) == (422, "invalid-request")
    assert "is a trial" in answer.json["detail"]


def test_an_audit_that_names_a_trial_ends_when_it_is_judged_again(site, finding, samples):
    trial = begin(site, finding)["id"]
    site.finish(trial, samples.tutorial(), judgement=silent(samples))
    audit = site.client.post("/v1/audits", json={"items": [{"custom_id": "a", "run": trial}]}).json
    assert judging.settle(site.context.database) == (audit["id"],)
    assert site.client.post(f"{audit['links']['self']}/judge").status_code == 202
    assert judging.settle(site.context.database) == (audit["id"],)
    assert site.client.get(audit["links"]["self"]).json["status"] == "judged"


@pytest.mark.parametrize("which", ["no-fix", "other-edit", "no-file"])
def test_a_finding_whose_fix_changed_while_the_trial_ran_was_not_tried(site, finding, samples, which):
    trial = begin(site, finding)["id"]
    judged = with_fix(samples)
    (original,) = judged.findings
    edit = original.fixes[1].edits[0]
    changed = {"other-edit": {"text": "pass\n"}, "no-file": {"path": "other.py"}}
    fixes = () if which == "no-fix" else (
        original.fixes[0],
        msgspec.structs.replace(original.fixes[1], edits=(msgspec.structs.replace(edit, **changed[which]),)),
    )  # fmt: skip
    again = (msgspec.structs.replace(original, fixes=fixes),)
    judged_again(site, samples, dataclasses.replace(judged, findings=again))
    site.finish(trial, samples.tutorial(), judgement=silent(samples))
    assert verdict(site, trial) == ("not-tried", stored_trials.JUDGED_AGAIN)


def test_a_comparison_that_fails_ends_the_trial_all_the_same(site, finding, samples, monkeypatch):
    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr(stored_trials, "compared", broken)
    trial = begin(site, finding)["id"]
    site.finish(trial, samples.tutorial(), judgement=silent(samples))
    assert verdict(site, trial) == ("not-tried", "the comparison failed (RuntimeError); the log says where")


def suppressed(samples, judged):
    (finding,) = judged.findings
    said = Suppression(kind="inSource")
    return dataclasses.replace(judged, findings=(msgspec.structs.replace(finding, suppressed=said),))


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_finding_that_is_gone_or_suppressed_is_not_tried(site, finding, samples, is_gone):
    trial = begin(site, finding)["id"]
    judged_again(site, samples, silent(samples) if is_gone else suppressed(samples, with_fix(samples)))
    refused = begin(site, finding, status=422)
    assert refused["code"] == "invalid-request"
    assert ("no longer make" if is_gone else "suppresses") in refused["detail"]
    site.finish(trial, samples.tutorial(), judgement=silent(samples))
    assert verdict(site, trial) == ("not-tried", stored_trials.GONE)


def test_two_runs_that_other_rules_judged_are_not_compared(site, run, finding, samples):
    trial = begin(site, finding)["id"]
    more = msgspec.structs.replace(with_fix(samples).findings[0], fingerprint=f"backprobe/v1:{'e' * 16}")
    after = dataclasses.replace(with_fix(samples), findings=(more, more), ruleset="rs_newer")
    site.finish(trial, samples.tutorial(), judgement=after)
    verdict_, why = verdict(site, trial)
    assert verdict_ == "not-tried"
    assert why == f"{stored_trials.OTHER_RULES}: POST /v1/runs/{run}/judge, then try the fix again"


def test_a_fix_that_is_being_tried_is_not_tried_once_more(site, finding, samples):
    trial = begin(site, finding)["id"]
    assert begin(site, finding, fix=1)["id"] == trial
    assert [row["run"] for row in site.client.get(f"/v1/findings/{finding['id']}/trials").json["items"]] == [trial]
    site.finish(trial, samples.tutorial(), judgement=silent(samples))
    assert begin(site, finding)["id"] != trial


def test_two_who_try_a_fix_at_once_begin_one_trial(site, finding):
    together = threading.Barrier(4)

    def try_fix():
        client = site.app.test_client()
        together.wait()
        return client.post(f"/v1/findings/{finding['id']}/trials", json={}).json["id"]

    with ThreadPoolExecutor(4) as pool:
        begun = {future.result() for future in [pool.submit(try_fix) for _ in range(4)]}
    assert len(begun) == 1
    told = site.client.get(f"/v1/findings/{finding['id']}/trials").json["items"]
    assert {trial["run"] for trial in told} == begun


def test_the_newest_trials_of_each_finding_are_told(site, finding, monkeypatch):
    monkeypatch.setattr(stored_trials, "MOST_TOLD", 2)
    runs = []
    for _ in range(3):
        runs.append(begin(site, finding)["id"])
        assert site.client.post(f"/v1/runs/{runs[-1]}/cancel").status_code in (200, 202)
    told = site.client.get(f"/v1/findings/{finding['id']}", query_string={"include": "trials"}).json["trials"]
    assert [row["run"] for row in told] == [runs[2], runs[1]]


@pytest.mark.parametrize("sent", ["import torch\n", "# another text\n" * 20])
def test_a_fix_of_a_text_that_the_stored_program_does_not_have_is_refused(site, samples, sent):
    run = site.finished(body={"source": sent}, judgement=samples.judged_with_fix(samples.tutorial()))
    (finding,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
    assert begin(site, finding, status=409)["code"] == "source-not-kept"


def test_line_ends_of_the_program_do_not_count(site, samples):
    body = {"source": samples.TUTORIAL.replace("\n", "\r\n")}
    site.finished(body=body, judgement=samples.judged_with_fix(samples.tutorial()))
    (finding,) = site.client.get("/v1/findings").json["items"]
    begin(site, finding)
