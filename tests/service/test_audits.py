"""Policies and audits over HTTP, on both databases; what the reaper does is called by name."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from store import tables
from store.audits import judging as audit_judging
from store.audits.audit_uploads import AT_ONCE
from store.runs.model import RunError


@pytest.fixture
def ask(site):
    def send(method, path, status, **more):
        answer = site.client.open(path, method=method, **more)
        assert answer.status_code == status, answer.text
        return answer

    return send


@pytest.fixture
def settle(site):
    return lambda: audit_judging.settle(site.context.database)


@pytest.fixture
def begin_audit(ask):
    """`begin_audit(*items, **more)` begins an audit and returns the answer."""

    def post_items(*items, **more):
        return ask("POST", "/v1/audits", 202, json={"items": list(items), **more}).json

    return post_items


def policy(ask, name="pre-merge", **body):
    return ask("POST", "/v1/policies", 201, json={"name": name, **body}).json["id"]


def test_a_policy_is_made_revised_and_its_revisions_stay(ask):
    made = ask("POST", "/v1/policies", 201, json={"name": "a", "fail": ["BP1", "non-leaf-grad-read", "level:error"]})
    assert (made.json["revision"], made.json["warn"], made.json["not_run"]) == (1, ["*"], "fail")
    path = made.headers["Location"]
    assert ask("GET", path, 200).json == made.json
    ask("PUT", path, 428, json={"name": "a"})
    assert ask("PUT", path, 412, json={"name": "a"}, headers={"If-Match": '"7"'}).json["code"] == "stale"
    etag = {"If-Match": made.headers["ETag"]}
    revised = ask("PUT", path, 200, json={"name": "a", "fail": ["*"]}, headers=etag).json
    assert (revised["id"], revised["revision"], revised["fail"]) == (made.json["id"], 2, ["*"])
    assert ask("GET", f"{path}?revision=1", 200).json == made.json
    ask("GET", f"{path}?revision=3", 404)
    policy(ask, "b")
    page = ask("GET", "/v1/policies?limit=1", 200).json
    assert page["items"] == [revised]
    (other,) = ask("GET", f"/v1/policies?cursor={page['next_cursor']}", 200).json["items"]
    assert other["name"] == "b"
    taken = ask("POST", "/v1/policies", 422, json={"name": "b"}).json
    assert taken["errors"][0]["code"] == "name-taken"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("non-leaf-grad-raed", "non-leaf-grad-read"), ("BP9", None), ("BX", "no rule"), ("level:bad", "level:error")],
)
def test_a_policy_of_unknown_rules_is_refused_with_the_nearest(ask, pattern, said):
    body = {"name": f"of {pattern}", "warn": ["*", pattern]}
    if said is None:
        ask("POST", "/v1/policies", 201, json=body)
        return
    told = ask("POST", "/v1/policies", 422, json=body).json
    assert (told["code"], told["errors"][0]["pointer"]) == ("unknown-rule", "#/warn/1")
    assert said in told["detail"]


def test_an_audit_is_judged_when_its_last_run_has_ended(site, ask, begin_audit, settle, samples):
    webhook = {"url": "https://hooks.example/in", "events": ["audit.judged", "audit_item.ended"]}
    ask("POST", "/v1/webhooks", 201, json=webhook)
    known = site.finished()
    audit = begin_audit(
        {"custom_id": "a", "source": samples.TUTORIAL}, {"custom_id": "b", "run": known}, name="nightly"
    )
    assert (audit["status"], audit["verdict"], audit["items"]["total"], audit["items"]["running"]) == (
        "running", None, 2, 2,
    )  # fmt: skip
    assert settle() == ()
    path = audit["links"]["self"]
    first, second = ask("GET", f"{path}/items", 200).json["items"]
    assert (first["custom_id"], first["status"], first["verdict"]) == ("a", "queued", None)
    assert (second["run"], second["verdict"], second["cells"][0]["rule"]) == (known, "warn", "non-leaf-grad-read")
    assert ask("GET", f"/v1/runs/{first['run']}", 200).json["custom_id"] == "a"
    site.finish(first["run"], samples.tutorial())
    assert settle() == (audit["id"],)
    assert settle() == ()
    told = ask("GET", path, 200)
    assert (told.json["status"], told.json["verdict"], told.json["verdicts"]) == ("judged", "passed", 1)
    assert told.json["items"] == {
        "total": 2, "running": 0, "pass": 0, "warn": 2, "fail": 0, "error": 0, "not_run": 0,
    }  # fmt: skip
    assert told.json["findings"] == {"new": 1, "known": 0, "gone": 0}
    assert told.json["finished_at"] is not None
    with site.context.database.read() as reading:
        events = [(row.kind, row.body) for row in reading.execute(tables.outbox.select().order_by(tables.outbox.c.id))]
    events = [(kind, body) for kind, body in events if kind.startswith("audit")]
    assert [kind for kind, _ in events] == ["audit_item.ended", "audit_item.ended", "audit.judged"]
    assert events[-1][1]["verdict"] == "passed"


def test_a_policy_decides_and_a_failed_program_or_one_never_run_passes_nowhere(site, ask, begin_audit, settle, samples):
    strict = policy(ask, fail=["non-leaf-grad-read"])
    audit = begin_audit(
        {"custom_id": "found", "run": site.finished()},
        {"custom_id": "failed", "run": site.finished(status="failed", exit_code=1)},
        {"custom_id": "canceled", "run": site.finished(status="canceled")},
        {"custom_id": "typo", "source": "x = ("},
        {"custom_id": "unknown", "run": "run_01JD8PZ4T8W2K5C7Q9R3M6X1BA"},
        policy=strict,
    )
    assert settle() == (audit["id"],)
    path = audit["links"]["self"]
    told = ask("GET", path, 200).json
    assert (told["verdict"], told["policy"], told["policy_revision"]) == ("failed", strict, 1)
    reason = told["reasons"][0]
    assert (reason["custom_id"], reason["rule"], reason["findings"]) == ("found", "non-leaf-grad-read", 1)
    items = {row["custom_id"]: row for row in ask("GET", f"{path}/items", 200).json["items"]}
    assert {name: row["verdict"] for name, row in items.items()} == {
        "found": "fail", "failed": "fail", "canceled": "fail", "typo": "not-run", "unknown": "not-run",
    }  # fmt: skip
    assert (items["typo"]["problem"]["code"], items["typo"]["problem"]["errors"][0]["line"]) == ("syntax-error", 1)
    assert items["unknown"]["problem"]["code"] == "not-found"
    worst = ask("GET", f"{path}/matrix?sort=worst", 200).json
    assert worst["items"][0]["states"]["non-leaf-grad-read"] == "fail"
    rows = list(csv.DictReader(io.StringIO(ask("GET", f"{path}/matrix?format=csv", 200).text, newline="")))
    said = {row["custom_id"]: (row["verdict"], row["non-leaf-grad-read"]) for row in rows}
    assert (said["found"], said["typo"]) == (("fail", "fail"), ("not-run", "not-run"))
    lines = ask("GET", f"{path}/items?format=ndjson", 200).text.splitlines()
    assert [json.loads(line)["custom_id"] for line in lines] == list(items)
    (run,) = json.loads(ask("GET", f"{path}/findings?format=sarif", 200).text)["runs"]
    assert len(run["results"]) == 3
    assert len(ask("GET", f"{path}/findings?format=ndjson", 200).text.splitlines()) == 3
    assert len(ask("GET", f"{path}/findings", 200).json["items"]) == 3
    chosen = ask("GET", f"{path}/items?verdict=not-run,error&limit=1", 200).json
    rest = ask("GET", f"{path}/items?verdict=not-run,error&cursor={chosen['next_cursor']}", 200).json
    assert [row["custom_id"] for row in chosen["items"] + rest["items"]] == ["typo", "unknown"]
    assert ask("GET", f"{path}/findings?format=junit", 200).mimetype == "application/xml"


def test_a_run_with_fewer_backward_calls_than_the_policy_demands_was_not_judged(
    site, ask, begin_audit, settle, samples
):
    calls = len(samples.tutorial().backward_calls)
    demands = policy(ask, min_backward_calls=calls + 1)
    audit = begin_audit({"custom_id": "a", "run": site.finished()}, policy=demands)
    settle()
    path = audit["links"]["self"]
    assert ask("GET", f"/v1/policies/{demands}", 200).json["min_backward_calls"] == calls + 1
    assert ask("GET", path, 200).json["verdict"] == "failed"
    assert [row["verdict"] for row in ask("GET", f"{path}/items", 200).json["items"]] == ["not-run"]
    said = f"the policy demands at least {calls + 1} (min-backward-calls)"
    assert said in ask("GET", f"{path}/findings?format=junit", 200).text
    ask("POST", "/v1/policies", 422, json={"name": "c", "min_backward_calls": -1})


def test_what_the_baseline_has_is_known_and_new_only_lets_it_pass(site, ask, begin_audit, settle):
    base = begin_audit({"custom_id": "a", "run": site.finished()})
    settle()
    both = {"baseline": base["id"]}
    strict = begin_audit({"custom_id": "a", "run": site.finished()}, policy=policy(ask, "all", fail=["*"]), **both)
    new_only = policy(ask, "new", fail=["*"], new_only=True)
    lenient = begin_audit({"custom_id": "a", "run": site.finished()}, policy=new_only, **both)
    assert set(settle()) == {strict["id"], lenient["id"]}
    verdicts = [ask("GET", audit["links"]["self"], 200).json for audit in (strict, lenient)]
    assert [told["verdict"] for told in verdicts] == ["failed", "passed"]
    assert [told["findings"] for told in verdicts] == [{"new": 0, "known": 1, "gone": 0}] * 2
    paths = [f"{audit['links']['self']}/findings" for audit in (base, strict, lenient)]
    failures = [ask("GET", f"{path}?format=junit", 200).text.count("<failure") for path in paths]
    assert failures == [0, 1, 0]
    logs = [json.loads(ask("GET", f"{path}?format=sarif", 200).text)["runs"][0] for path in paths]
    assert [log["results"][0].get("baselineState") for log in logs] == [None, "unchanged", "unchanged"]


def test_gone_is_only_what_was_audited_again_to_its_end(site, ask, begin_audit, settle, samples):
    names = ["stays", "fixed", "fails", "left-out"]
    base = begin_audit(
        *({"custom_id": name, "run": site.finished(record=samples.tutorial(path=name))} for name in names)
    )
    settle()
    after = begin_audit(
        {"custom_id": "stays", "run": site.finished(record=samples.tutorial(path="stays"))},
        {"custom_id": "fixed", "source": "x = 1\n"},
        {
            "custom_id": "fails",
            "run": site.finished(record=samples.tutorial(path="other"), status="failed", exit_code=1),
        },
        baseline=base["id"],
    )
    (run,) = ask("GET", "/v1/runs?status=queued", 200).json["items"]
    site.finish(run["id"], samples.tutorial(path="other"))
    settle()
    assert ask("GET", after["links"]["self"], 200).json["findings"] == {"new": 1, "known": 1, "gone": 1}


def test_a_program_that_raised_is_told_with_its_exception_in_junit_and_sarif(site, ask, begin_audit, settle, samples):
    error = RunError(whose="program", code="raised", type="ValueError", message="no rows", path="a.py", line=3)
    run = site.submit()
    site.finish(run, samples.tutorial(), status="failed", exit_code=1, error=error)
    path = f"{begin_audit({'custom_id': 'a', 'run': run})['links']['self']}/findings"
    settle()
    assert 'message="ValueError: no rows (a.py:3)"' in ask("GET", f"{path}?format=junit", 200).text
    (log,) = json.loads(ask("GET", f"{path}?format=sarif", 200).text)["runs"]
    (notice,) = log["invocations"][0]["toolExecutionNotifications"]
    assert notice["exception"] == {"kind": "ValueError", "message": "no rows"}


def test_an_audit_is_canceled_with_the_runs_that_it_began(site, ask, begin_audit, settle, samples):
    mine = site.submit()
    audit = begin_audit({"custom_id": "a", "source": samples.TUTORIAL}, {"custom_id": "b", "run": mine})
    path = audit["links"]["self"]
    told = ask("POST", f"{path}/cancel", 202).json
    assert (told["status"], told["verdict"]) == ("canceled", None)
    began, there = (row["status"] for row in ask("GET", f"{path}/items", 200).json["items"])
    assert (began, there) == ("canceled", "queued")
    assert settle() == ()
    assert ask("POST", f"{path}/cancel", 202).json["status"] == "canceled"


def test_a_run_that_another_audit_began_is_not_canceled(ask, begin_audit):
    first = begin_audit({"custom_id": "a", "source": "x = 1\n"})
    (item,) = ask("GET", first["links"]["items"], 200).json["items"]
    second = begin_audit({"custom_id": "a", "run": item["run"]})
    ask("POST", f"{second['links']['self']}/cancel", 202)
    assert ask("GET", f"/v1/runs/{item['run']}", 200).json["status"] == "queued"


def test_a_key_of_one_project_reads_policies_and_writes_none(ask):
    whole = policy(ask)
    project = ask("POST", "/v1/projects", 201, json={"name": f"for {whole}"}).json["id"]
    asked = {"name": "k", "scopes": ["read", "audits:write"], "project": project}
    key = {"Authorization": f"Bearer {ask('POST', '/v1/keys', 201, json=asked).json['secret']}"}
    etag = ask("GET", f"/v1/policies/{whole}", 200, headers=key).headers["ETag"]
    assert ask("POST", "/v1/policies", 403, json={"name": "x"}, headers=key).json["code"] == "scope-missing"
    match = key | {"If-Match": etag}
    assert ask("PUT", f"/v1/policies/{whole}", 403, json={"fail": []}, headers=match).json["code"] == "scope-missing"
    assert [row["revision"] for row in ask("GET", "/v1/policies", 200).json["items"]] == [1]


def test_a_key_of_one_project_sees_no_audit_of_another(ask, begin_audit):
    audit = begin_audit({"custom_id": "a", "source": "x = 1\n"})
    project = ask("POST", "/v1/projects", 201, json={"name": f"for {audit['id']}"}).json["id"]
    asked = {"name": "ci", "scopes": ["read", "audits:write"], "project": project}
    key = {"Authorization": f"Bearer {ask('POST', '/v1/keys', 201, json=asked).json['secret']}"}
    for path in ("", "/items", "/matrix", "/findings"):
        ask("GET", f"{audit['links']['self']}{path}", 404, headers=key)
    ask("POST", f"{audit['links']['self']}/cancel", 404, headers=key)
    assert ask("GET", "/v1/audits", 200, headers=key).json["items"] == []


def test_judging_again_waits_for_the_runs(site, ask, begin_audit, settle):
    audit = begin_audit({"custom_id": "a", "run": site.finished()})
    settle()
    told = ask("POST", f"{audit['links']['self']}/judge", 202).json
    assert (told["status"], told["verdicts"]) == ("running", 1)
    assert settle() == ()
    with site.context.database.begin() as transaction:
        transaction.execute(tables.run.update().values(judge_due_at=None, ruleset="rs_newer"))
    assert settle() == (audit["id"],)
    told = ask("GET", audit["links"]["self"], 200).json
    assert (told["verdicts"], told["ruleset"]) == (2, "rs_newer")


def test_items_that_contradict_each_other_are_refused_before_anything_is_stored(site, ask):
    item = {"custom_id": "a", "source": "x = 1\n"}
    for items in ([], [item, item], [{"custom_id": "a"}], [{**item, "run": "run_01JD8PZ4T8W2K5C7Q9R3M6X1BA"}]):
        assert ask("POST", "/v1/audits", 422, json={"items": items}).json["code"] == "invalid-request"
    ask("POST", "/v1/audits", 404, json={"items": [item], "policy": "pol_01JD8PZ4T8W2K5C7Q9R3M6X1BA"})
    ask("POST", "/v1/audits", 404, json={"items": [item], "baseline": "aud_01JD8PZ4T8W2K5C7Q9R3M6X1BA"})
    assert ask("GET", "/v1/runs", 200).json["items"] == []
    assert ask("GET", "/v1/audits", 200).json["items"] == []


def test_a_repeated_request_begins_no_second_audit(ask, begin_audit):
    sent = {"json": {"items": [{"custom_id": "a", "source": "x = 1\n"}]}, "headers": {"Idempotency-Key": "k"}}
    first, again = (ask("POST", "/v1/audits", 202, **sent) for _ in range(2))
    assert (first.json["id"], again.headers["Idempotent-Replayed"]) == (again.json["id"], "true")
    assert len(ask("GET", "/v1/audits", 200).json["items"]) == len(ask("GET", "/v1/runs", 200).json["items"]) == 1


def test_defaults_hold_for_items_that_say_nothing_else(ask, begin_audit):
    item = {"custom_id": "a", "source": "x = 1\n"}
    audit = begin_audit(item, {**item, "custom_id": "b", "seed": 2}, defaults={"seed": 1, "labels": {"c": "d"}})
    runs = [row["run"] for row in ask("GET", f"{audit['links']['self']}/items", 200).json["items"]]
    told = [ask("GET", f"/v1/runs/{run}", 200).json for run in runs]
    assert [(run["seed"], run["labels"]) for run in told] == [(1, {"c": "d"}), (2, {"c": "d"})]


def test_audits_are_listed_newest_first_by_verdict_and_policy(site, ask, begin_audit, settle):
    strict = policy(ask, fail=["*"])
    failed = begin_audit({"custom_id": "a", "run": site.finished()}, policy=strict)["id"]
    passed = begin_audit({"custom_id": "a", "run": site.finished()})["id"]
    settle()

    def list_ids(query=""):
        return [row["id"] for row in ask("GET", f"/v1/audits{query}", 200).json["items"]]

    assert list_ids() == [passed, failed]
    assert (list_ids("?verdict=failed"), list_ids(f"?policy={strict}"), list_ids("?status=running")) == (
        [failed],
        [failed],
        [],
    )
    page = ask("GET", "/v1/audits?limit=1", 200).json
    assert list_ids(f"?cursor={page['next_cursor']}&limit=1") == [failed]


def test_the_findings_of_an_audit_come_worst_first_by_level_and_by_what_is_new(site, ask, begin_audit, settle, samples):
    from dataclasses import replace

    from msgspec.structs import replace as altered

    from backprobe.rules import judge

    def finish_judged(*levels):
        """Store a run with findings of these levels. Finding n has the fingerprint n."""
        judgement = judge(samples.tutorial())
        (finding,) = judgement.findings
        found = [altered(finding, level=level, fingerprint=f"backprobe/v1:{n:016x}") for n, level in enumerate(levels)]
        return site.finished(judgement=replace(judgement, findings=tuple(found)))

    base = begin_audit({"custom_id": "a", "run": finish_judged("note", "error")})["id"]
    first, second = finish_judged("note", "warning", "error"), finish_judged("warning", "error")
    audit = begin_audit(
        {"custom_id": "a", "run": first}, {"custom_id": "b", "run": second}, {"custom_id": "c", "run": first}, baseline=base
    )  # fmt: skip
    settle()
    path = f"{audit['links']['self']}/findings"

    def list_findings(query=""):
        return [
            (row["level"], row["run"], row["fingerprint"][-1]) for row in ask("GET", path + query, 200).json["items"]
        ]

    whole = [
        ("error", first, "2"), ("error", second, "1"), ("warning", first, "1"), ("warning", second, "0"), ("note", first, "0"),
    ]  # fmt: skip
    assert list_findings() == whole
    paged, cursor = [], ""
    while cursor is not None:
        page = ask("GET", f"{path}?limit=2{cursor}", 200).json
        paged += [(row["level"], row["run"], row["fingerprint"][-1]) for row in page["items"]]
        cursor = None if page["next_cursor"] is None else f"&cursor={page['next_cursor']}"
    assert paged == whole
    assert list_findings("?new=true") == [whole[0]]
    assert list_findings("?new=false") == whole[1:]
    assert list_findings("?level=note,warning") == whole[2:]
    lines = ask("GET", f"{path}?format=ndjson&level=error", 200).text.splitlines()
    assert [json.loads(line)["run"] for line in lines] == [first, second]
    lines = ask("GET", path, 200, headers={"Accept": "application/x-ndjson"}).text.splitlines()
    assert len(lines) == len(whole)
    (sarif,) = json.loads(ask("GET", f"{path}?format=sarif&new=true", 200).text)["runs"]
    assert len(sarif["results"]) == 2  # run by run: that of the first item, and of the third
    ask("GET", path, 406, headers={"Accept": "text/csv"})
    assert ask("GET", f"{path}?new=true&cursor=x", 422).json["code"] == "bad-cursor"


def test_the_matrix_of_an_older_verdict_is_still_told(site, ask, begin_audit, settle):
    audit = begin_audit({"custom_id": "a", "run": site.finished()}, policy=policy(ask, "gate", fail=["*"]))
    settle()
    path = audit["links"]["self"]
    then = ask("GET", path, 200).json["ruleset"]
    with site.context.database.begin() as transaction:
        transaction.execute(tables.finding.update().values(gone_at="2026-11-22T00:00:00.000Z", gone_ruleset="rs_newer"))
    (row,) = ask("GET", f"{path}/matrix", 200).json["items"]
    assert (row["verdict"], row["states"]) == ("pass", {})
    (row,) = ask("GET", f"{path}/matrix?ruleset={then}", 200).json["items"]
    assert (row["verdict"], row["states"]) == ("fail", {"non-leaf-grad-read": "fail"})
    wrong = ask("GET", f"{path}/matrix?ruleset=rs_none", 422).json
    assert wrong["errors"][0]["parameter"] == "ruleset"


@pytest.mark.parametrize("matching", ["", "&matching=true"])
@pytest.mark.parametrize("which", ["level=warning", "rule=non-leaf-grad-read"])
def test_a_filter_of_an_older_verdict_finds_what_it_names_or_is_refused(
    site, ask, begin_audit, settle, which, matching
):
    path = begin_audit({"custom_id": "a", "run": site.finished()})["links"]["self"]
    settle()
    then = ask("GET", path, 200).json["ruleset"]
    today = ask("GET", f"{path}/matrix?{which}{matching}", 200).json
    assert (today["rules"], len(today["items"])) == (["non-leaf-grad-read"], 1)
    answer = site.client.get(f"{path}/matrix?ruleset={then}&{which}{matching}")
    if which.startswith("level"):
        assert answer.status_code == 422
        assert "Leave one of them out." in answer.json["detail"]
        assert answer.json["errors"][0]["code"] == "not-with-ruleset"
    else:
        assert (answer.json["rules"], len(answer.json["items"])) == (["non-leaf-grad-read"], 1)


def test_a_run_says_which_audit_it_is_of_and_its_etag_with_it(site, ask, begin_audit):
    run = site.finished()
    before = ask("GET", f"/v1/runs/{run}", 200)
    assert before.json["audit"] is None
    audit = begin_audit({"custom_id": "a", "run": run}, {"custom_id": "b", "source": "x = 1\n"})
    after = ask("GET", f"/v1/runs/{run}", 200, headers={"If-None-Match": before.headers["ETag"]})
    assert after.json["audit"] == audit["id"]
    listed = ask("GET", f"/v1/runs?audit={audit['id']}", 200).json["items"]
    assert {(row["audit"], row["custom_id"]) for row in listed} == {(audit["id"], None), (audit["id"], "b")}
    assert ask("GET", "/v1/runs?audit=aud_01JD8PZ4T8W2K5C7Q9R3M6X1BA", 200).json["items"] == []
    again = begin_audit({"custom_id": "c", "run": run})
    assert ask("GET", f"/v1/runs/{run}", 200).json["audit"] == again["id"]


def test_audits_are_listed_by_label(ask, begin_audit):
    audit = begin_audit({"custom_id": "a", "source": "x = 1\n"}, labels={"commit": "9f", "team.x": "a"})["id"]
    begin_audit({"custom_id": "a", "source": "x = 1\n"}, labels={"commit": "10"})
    for query, found in (("label.commit=9f&label.team.x=a", [audit]), ("label.commit=9f&label.team.x=b", [])):
        assert [row["id"] for row in ask("GET", f"/v1/audits?{query}", 200).json["items"]] == found
    for query, named in (("label.no+blank=1", "label.no blank"), ("label.=1", "label."), ("labels=1", "labels")):
        assert ask("GET", f"/v1/audits?{query}", 422).json["errors"][0]["parameter"] == named


def test_an_item_cannot_go_to_a_project_of_its_own(ask):
    item = {"custom_id": "a", "source": "x = 1\n", "project": "prj_01JD8PZ4T8W2K5C7Q9R3M6X1BA"}
    answer = ask("POST", "/v1/audits", 422, json={"items": [item]})
    assert (answer.json["code"], answer.json["errors"][0]["pointer"]) == ("invalid-request", "#/items/0")


def stored_bytes(site):
    return site.client.get("/v1/me").json["quotas"]["stored_bytes"]["used"]


def test_an_audit_is_deleted_with_its_items_and_its_runs_stay(site, ask, begin_audit, settle, samples, monkeypatch):
    from store.audits import deletion

    monkeypatch.setattr(deletion, "PIECE", 2)
    known = site.finished(samples.tutorial())
    before = stored_bytes(site)
    audit = begin_audit({"custom_id": "a", "run": known}, *({"custom_id": f"{n}", "source": "x = ("} for n in range(4)))
    assert settle() == (audit["id"],)
    assert stored_bytes(site) > before + 1000
    run = ask("GET", f"/v1/runs/{known}", 200).json
    assert run["audit"] == audit["id"]
    path = audit["links"]["self"]
    assert ask("DELETE", path, 204).data == b""
    ask("GET", path, 404)
    ask("DELETE", path, 404)
    again = ask("GET", f"/v1/runs/{known}", 200).json
    assert (again["audit"], again["version"] > run["version"], again["status"]) == (None, True, "succeeded")
    assert ask("GET", f"/v1/runs/{known}/findings", 200).json["items"]
    assert stored_bytes(site) == before
    with site.context.database.read() as reading:
        for table in (tables.audit, tables.audit_item, tables.audit_cell, tables.audit_verdict):
            assert reading.execute(table.select()).first() is None
    log = ask("GET", f"/v1/audit-log?object={audit['id']}", 200).json["items"]
    assert [entry["action"] for entry in log] == ["audit.delete", "audit.create"]


def test_an_audit_that_goes_on_is_not_deleted_nor_the_baseline_of_one(site, ask, begin_audit, settle):
    known = site.finished()
    first = begin_audit({"custom_id": "a", "run": known})
    settle()
    second = begin_audit(
        {"custom_id": "a", "run": known}, {"custom_id": "b", "source": "x = 1\n"}, baseline=first["id"]
    )
    for told, said in ((second, "has not ended."), (first, f"is the baseline of audit {second['id']}")):
        refused = ask("DELETE", told["links"]["self"], 409).json
        assert (refused["code"], said in refused["detail"]) == ("audit-not-ended", True)
    ask("POST", f"{second['links']['self']}/cancel", 202)
    etag = ask("GET", second["links"]["self"], 200).headers["ETag"]
    ask("DELETE", first["links"]["self"], 204)
    left = ask("GET", second["links"]["self"], 200)
    assert (left.json["baseline"], left.json["status"], left.headers["ETag"] != etag) == (None, "canceled", True)
    ask("DELETE", second["links"]["self"], 204)


def test_who_may_not_write_audits_deletes_none(site, ask, begin_audit, settle):
    audit = begin_audit({"custom_id": "a", "run": site.finished()})
    settle()
    reader = ask("POST", "/v1/keys", 201, json={"name": "r", "scopes": ["read"]}).json["secret"]
    refused = ask("DELETE", audit["links"]["self"], 403, headers={"Authorization": f"Bearer {reader}"})
    assert refused.json["code"] == "scope-missing"
    project = ask("POST", "/v1/projects", 201, json={"name": "another project"}).json["id"]
    scopes = {"name": "w", "scopes": ["read", "audits:write"], "project": project}
    other = ask("POST", "/v1/keys", 201, json=scopes).json["secret"]
    ask("DELETE", audit["links"]["self"], 404, headers={"Authorization": f"Bearer {other}"})
    ask("GET", audit["links"]["self"], 200)


def test_an_item_without_an_entry_is_a_file_called_like_it_in_every_format(site, ask, begin_audit, settle, samples):
    names = {"jobs/gpt.py": "jobs/gpt.py", "case 7": "case 7.py", "no: path": None}
    audit = begin_audit(*({"custom_id": name, "source": samples.TUTORIAL} for name in names))
    runs = {item["custom_id"]: item["run"] for item in ask("GET", f"{audit['links']['self']}/items", 200).json["items"]}
    entries = {name: ask("GET", f"/v1/runs/{run}", 200).json["entry"] for name, run in runs.items()}
    assert entries == {**names, "no: path": entries["no: path"]}
    assert entries["no: path"].startswith("no_path-")
    for name, run in runs.items():
        site.finish(run, samples.tutorial(path=entries[name]))
    settle()
    path = f"{audit['links']['self']}/findings"
    (log,) = json.loads(ask("GET", f"{path}?format=sarif", 200).text)["runs"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in log["results"]]
    assert uris == ["jobs/gpt.py", "case%207.py", entries["no: path"]]
    judged = ask("GET", f"/v1/runs/{runs['case 7']}", 200).json["findings"]["rules_judged"]
    assert judged > 0
    assert [invocation["properties"]["rulesJudged"] for invocation in log["invocations"]] == [judged] * 3
    junit = ask("GET", f"{path}?format=junit", 200).text
    assert junit.count(f'name="{judged} rules judged"') == 3
    chosen = begin_audit({"custom_id": "a", "source": samples.TUTORIAL, "entry": "b.py"})
    (item,) = ask("GET", f"{chosen['links']['self']}/items", 200).json["items"]
    assert ask("GET", f"/v1/runs/{item['run']}", 200).json["entry"] == "b.py"


MANY = [{"custom_id": f"case {number}", "source": f"x = {number}\n"} for number in range(120)]
"""More items than are stored in one transaction."""


@contextlib.contextmanager
def at_commits(site, heard):
    """Call this with the connection before each commit."""
    engine = site.context.database.engine
    event.listen(engine, "commit", heard)
    try:
        yield
    finally:
        event.remove(engine, "commit", heard)


def stored_runs(connection):
    return connection.scalar(sa.select(sa.func.count()).select_from(tables.run))


def test_an_audit_of_many_items_is_stored_piece_by_piece_so_that_others_write_in_between(site, ask):
    counts = []
    with at_commits(site, lambda connection: counts.append(stored_runs(connection))):
        audit = ask("POST", "/v1/audits", 202, json={"items": MANY}).json
    assert (audit["items"]["total"], audit["status"], counts[-1]) == (120, "running", 120)
    assert max(after - before for before, after in itertools.pairwise([0, *counts])) == AT_ONCE
    names = [item["custom_id"] for item in ask("GET", f"/v1/audits/{audit['id']}/items?limit=200", 200).json["items"]]
    assert names == [item["custom_id"] for item in MANY]


def test_what_a_tenant_has_queued_is_counted_once_for_all_items_of_a_transaction(site, ask):
    counted = []

    def collect_counts(_connection, _cursor, statement, *_):
        counted.extend([statement] if "coalesce(project.keep_days" in statement else [])

    event.listen(site.context.database.engine, "before_cursor_execute", collect_counts)
    ask("POST", "/v1/audits", 202, json={"items": MANY[:AT_ONCE]})
    event.remove(site.context.database.engine, "before_cursor_execute", collect_counts)
    assert len(counted) == 1


@pytest.fixture
def may_queue(site):
    """`may_queue(count)`: so many runs, until the test ends."""
    with site.context.database.read() as reading:
        before = reading.scalar(sa.select(tables.tenant.c.max_queued))

    def so_many(count):
        with site.context.database.begin() as transaction:
            transaction.execute(tables.tenant.update().values(max_queued=count))

    yield so_many
    so_many(before)


def test_an_audit_of_many_items_that_has_no_room_leaves_nothing(ask, may_queue):
    may_queue(100)
    sent = {"json": {"items": MANY}, "headers": {"Idempotency-Key": "many"}}
    assert ask("POST", "/v1/audits", 429, **sent).json["code"] == "quota-exceeded"
    assert ask("GET", "/v1/runs", 200).json["items"] == ask("GET", "/v1/audits", 200).json["items"] == []
    ask("POST", "/v1/audits", 202, json={"items": MANY[:100]}, headers=sent["headers"])


def test_an_audit_of_many_items_whose_room_is_taken_meanwhile_is_canceled_and_its_key_free(site, ask, may_queue):
    def less(connection):
        if stored_runs(connection) == AT_ONCE:
            connection.execute(tables.tenant.update().values(max_queued=AT_ONCE + 5))

    sent = {"json": {"items": MANY}, "headers": {"Idempotency-Key": "many"}}
    with at_commits(site, less):
        assert ask("POST", "/v1/audits", 429, **sent).json["code"] == "quota-exceeded"
    (left,) = ask("GET", "/v1/audits", 200).json["items"]
    assert (left["status"], left["items"]["total"]) == ("canceled", AT_ONCE)
    assert {run["status"] for run in ask("GET", "/v1/runs", 200).json["items"]} == {"canceled"}
    may_queue(1000)
    assert ask("POST", "/v1/audits", 202, **sent).json["items"]["total"] == 120


def test_an_audit_of_many_items_goes_on_where_the_service_ended(site, ask):
    def end(connection):
        if stored_runs(connection) == 2 * AT_ONCE:
            raise SystemExit

    sent = {"json": {"items": MANY}, "headers": {"Idempotency-Key": "many"}}
    with at_commits(site, end), pytest.raises(SystemExit):
        site.client.post("/v1/audits", **sent)
    (left,) = ask("GET", "/v1/audits", 200).json["items"]
    assert (left["status"], left["items"]["total"]) == ("open", AT_ONCE)
    ask("POST", "/v1/audits", 422, json={"items": MANY[:60]}, headers=sent["headers"])
    audit = ask("POST", "/v1/audits", 202, **sent).json
    assert (audit["id"], audit["status"], audit["items"]["total"]) == (left["id"], "running", 120)
    again = ask("POST", "/v1/audits", 202, **sent)
    assert (again.json["id"], again.headers["Idempotent-Replayed"]) == (left["id"], "true")
    assert len(ask("GET", "/v1/runs?limit=1000", 200).json["items"]) == 120
