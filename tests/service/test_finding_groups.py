"""Findings over all runs, and their groups: what people make of a finding stays with it. On both databases."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib

import msgspec
import pytest

from backprobe.rules import Occurrences, judge
from backprobe.rules.framework.finding import with_fingerprints


def groups(site, **more):
    return site.client.get("/v1/finding-groups", query_string=more).json["items"]


def change(site, group, body, etag=None, status=200):
    tag = f'"{group["version"]}"' if etag is None else etag
    headers = {"If-Match": tag} if tag else {}
    answer = site.client.patch(f"/v1/finding-groups/{group['id']}", json=body, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def test_runs_that_show_the_same_are_one_group_and_each_finding_names_it(site):
    first, second = site.finished(), site.finished()
    (group,) = groups(site)
    assert (group["first_run"], group["last_run"], group["runs"], group["state"]) == (first, second, 2, "open")
    for run in (first, second):
        (finding,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
        assert finding["group"] == {"id": group["id"], "state": "open", "owner": None}
        assert (finding["fingerprint"], finding["rule"]["name"]) == (group["fingerprint"], group["rule"])
    answer = site.client.get(f"/v1/finding-groups/{group['id']}")
    assert (answer.json, answer.headers["ETag"]) == (group, '"2"')
    found = site.client.get(group["links"]["findings"]).json["items"]
    assert [finding["run"] for finding in found] == [second, first]


def test_a_group_tells_what_its_fingerprint_was_made_of(site, samples):
    record = samples.tutorial()
    twice = msgspec.structs.replace(judge(record).findings[0], occurrences=Occurrences(count=3))
    said = dataclasses.replace(judge(record), findings=with_fingerprints([judge(record).findings[0], twice]))
    site.finished(record, judgement=said)
    told = groups(site)
    assert sorted(group["made_of"]["n"] for group in told) == [0, 1]
    for group in told:
        made = group["made_of"]
        assert {**made, "n": 0} == {
            "rule": "non-leaf-grad-read", "path": "snippet.py", "function": "<module>", "text": "z = (x @ W) + b",
            "binding": "z", "n": 0,
        }  # fmt: skip
        parts = [made[name] for name in ("rule", "path", "function", "text", "binding")]
        digest = hashlib.sha256("\0".join([*parts, str(made["n"])]).encode()).hexdigest()[:16]
        assert group["fingerprint"] == f"backprobe/v1:{digest}"
        assert site.client.get(group["links"]["self"]).json["made_of"] == made


def test_a_fingerprint_that_its_finding_does_not_make_is_told_without_its_parts(site, samples):
    record = samples.tutorial()
    other = msgspec.structs.replace(judge(record).findings[0], fingerprint="backprobe/v1:0123456789abcdef")
    site.finished(record, judgement=dataclasses.replace(judge(record), findings=(other,)))
    (group,) = groups(site)
    assert (group["fingerprint"], group["made_of"]) == (other.fingerprint, None)


def test_groups_are_found_by_the_name_of_a_rule_and_by_its_code(site):
    site.finished()
    assert [len(groups(site, rule=rule)) for rule in ("non-leaf-grad-read", "BP101", "BP102,BP101", "BP102")] == [
        1,
        1,
        1,
        0,
    ]


def test_what_people_make_of_it_is_kept_until_it_comes_back(site):
    site.finished()
    (group,) = groups(site)
    fixed = change(site, group, {"state": "fixed", "reason": "patched", "owner": "ann"}).json
    assert (fixed["state"], fixed["reason"], fixed["owner"], fixed["state_by"]) == ("fixed", "patched", "ann", "local")
    assert fixed["state_at"] is not None
    assert [groups(site, state=state) == [] for state in ("open", "fixed", "open,fixed")] == [True, False, False]
    site.finished()
    (back,) = groups(site, state="open")
    assert (back["returned"], back["owner"], back["reason"]) == (1, "ann", None)
    ignored = change(site, back, {"state": "suppressed", "reason": "by design"}).json
    site.finished()
    (still,) = groups(site)
    assert (still["state"], still["reason"], still["runs"]) == ("suppressed", "by design", ignored["runs"] + 1)
    free = change(site, still, {"owner": None}).json
    assert (free["owner"], free["reason"]) == (None, "by design")
    assert change(site, free, {"state": "acknowledged"}).json["reason"] is None


def test_a_change_names_its_state_and_a_suppression_its_reason(site):
    site.finished()
    (group,) = groups(site)
    assert change(site, group, {"state": "fixed"}, etag="", status=428).json["code"] == "if-match-needed"
    assert change(site, group, {"state": "fixed"}, etag='"77"', status=412).json["code"] == "stale"
    refused = change(site, group, {"state": "suppressed"}, status=422).json
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("reason-needed", "#/reason")
    assert change(site, group, {"reason": "why"}, status=422).json["errors"][0]["code"] == "reason-without-state"
    assert change(site, group, {"state": "gone"}, status=422).json["errors"][0]["pointer"] == "#/state"
    assert groups(site) == [group]
    (entry, *_) = site.client.get("/v1/audit-log").json["items"]
    assert entry["action"] == "run.submit"


def test_a_mute_ends_by_itself_and_raises_the_version(site):
    from store.tables import Now, finding_group

    run = site.finished()
    (group,) = groups(site)
    later = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=9)).isoformat(timespec="milliseconds")
    body = {"state": "suppressed", "reason": "by design", "muted_until": later.replace("+00:00", "Z")}
    muted = change(site, group, body).json
    assert (muted["state"], muted["muted_until"]) == ("suppressed", body["muted_until"])
    assert (len(groups(site, state="suppressed")), groups(site, state="open")) == (1, [])
    findings = site.client.get(f"/v1/runs/{run}/findings")
    with site.context.database.begin() as transaction:
        transaction.execute(finding_group.update().values(muted_until=Now(-1)))
    (over,) = groups(site, state="open")
    assert (over["state"], over["reason"], over["version"]) == ("open", "by design", muted["version"] + 1)
    assert groups(site, state="suppressed") == []
    again = site.client.get(f"/v1/runs/{run}/findings", headers={"If-None-Match": findings.headers["ETag"]})
    assert [finding["group"]["state"] for finding in again.json["items"]] == ["open"]
    assert change(site, muted, {"state": "fixed"}, status=412).json["code"] == "stale"
    fixed = change(site, over, {"state": "fixed"}).json
    assert (fixed["state"], fixed["muted_until"], fixed["version"]) == ("fixed", None, over["version"] + 1)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"state": "suppressed", "reason": "x", "muted_until": "2020-01-01T00:00:00Z"}, "#/muted_until"),
        ({"state": "suppressed", "reason": "x", "muted_until": "9020-01-01T00:00:00Z"}, "#/muted_until"),
        ({"state": "fixed", "muted_until": "2030-01-01T00:00:00Z"}, "#"),
        ({"muted_until": "2030-01-01T00:00:00Z"}, "#"),
    ],
)
def test_a_mute_ends_in_the_future_and_is_a_mute(site, body, pointer):
    site.finished()
    (group,) = groups(site)
    assert change(site, group, body, status=422).json["errors"][0]["pointer"] == pointer
    assert groups(site) == [group]


def test_groups_are_found_by_words_first_sight_return_and_name_of_the_project(site):
    site.finished(body={"labels": {"commit": "9f2c1ab"}})
    for found in (
        {"q": "SNIPPET leaf"},
        {"q": "bp101"},
        {"project": "default"},
        {"first_seen.gt": "2020-01-01T00:00:00Z"},
    ):
        assert len(groups(site, **found)) == 1, found
    for none in ({"q": "leaf nowhere"}, {"q": "%"}, {"project": "x"}, {"first_seen.gt": "2100-01-01T00:00:00Z"}):
        assert groups(site, **none) == [], none
    (group,) = groups(site, returned="false", include="days")
    assert (group["first_commit"], group["last_commit"], group["project_name"]) == ("9f2c1ab", "9f2c1ab", "default")
    assert (len(group["days"]), sum(day["runs"] for day in group["days"]), group["days"][-1]["runs"]) == (14, 1, 1)
    change(site, group, {"state": "fixed"})
    assert groups(site, returned="true") == []
    site.finished()
    (back,) = groups(site, returned="true")
    assert (back["has_returned"], back["days"], back["last_commit"]) == (True, None, None)
    change(site, back, {"state": "open"})
    assert groups(site, returned="true") == []


def test_a_group_names_the_commit_of_its_audit(site):
    run = site.finished()
    audit = {"items": [{"custom_id": "a", "run": run}], "labels": {"commit": "77de012"}}
    assert site.client.post("/v1/audits", json=audit).status_code in {200, 201, 202}
    (group,) = groups(site)
    assert (group["first_commit"], group["last_commit"]) == ("77de012", "77de012")


def test_of_two_changes_of_one_state_the_second_is_refused_though_both_had_read_it(site):
    from store.findings import group_rows

    site.finished()
    (group,) = groups(site)
    with site.context.database.read() as transaction:
        seen = group_rows.get(transaction, group["id"])
    done = []
    for owner in ("ann", "bob"):
        with site.context.database.begin() as transaction:
            done.append(group_rows.change(transaction, seen, {"owner": owner}, actor="local"))
    assert (done, groups(site)[0]["owner"]) == ([True, False], "ann")


def test_findings_of_all_runs_are_filtered_and_paged_newest_first(site, samples):
    runs = [site.finished() for _ in range(3)]
    other = site.finished(samples.tutorial(path="other.py"))
    every = site.client.get("/v1/findings").json["items"]
    assert [finding["run"] for finding in every] == [other, *runs[::-1]]
    rule, code = (every[0]["rule"][key] for key in ("name", "code"))
    for same in (f"rule={rule}", f"rule=none,{code}", f"level={every[0]['level']}", "created.gt=2020-01-01T00:00:00Z"):
        assert site.client.get(f"/v1/findings?{same}").json["items"] == every, same
    assert site.client.get("/v1/findings?path=other.py").json["items"] == every[:1]
    seen, path = [], "/v1/findings?limit=1"
    while path:
        page = site.client.get(path)
        seen += page.json["items"]
        path = f"/v1/findings?limit=1&cursor={page.json['next_cursor']}" if page.json["next_cursor"] else None
    assert seen == every
    for empty in (
        "path=a.py",
        "level=note&rule=no-such",
        "created.gt=2100-01-01T00:00:00Z",
        "confidence=heuristic",
    ):
        assert site.client.get(f"/v1/findings?{empty}").json["items"] == [], empty


def test_what_a_comment_suppresses_or_newer_rules_take_back_is_not_listed_over_runs(site):
    from store.tables import Now, finding

    runs = [site.finished() for _ in range(3)]
    values = ({"suppressed": {"reason": "known"}}, {"gone_at": Now(), "gone_ruleset": "rs_1"})
    for run, facts in zip(runs, values, strict=False):
        (row,) = site.client.get(f"/v1/runs/{run}/findings").json["items"]
        with site.context.database.begin() as transaction:
            transaction.execute(finding.update().where(finding.c.public_id == row["id"]).values(**facts))
    assert [found["run"] for found in site.client.get("/v1/findings").json["items"]] == runs[2:]


def test_groups_are_paged_the_one_seen_last_first(site, samples):
    site.finished(samples.tutorial(path="other.py"))
    site.finished()
    every = groups(site)
    assert every == sorted(every, key=lambda group: group["last_seen_at"], reverse=True)
    assert [group["path"] for group in every] == ["snippet.py", "other.py"]
    first = site.client.get("/v1/finding-groups?limit=1").json
    rest = site.client.get(f"/v1/finding-groups?cursor={first['next_cursor']}&limit=1").json
    assert [*first["items"], *rest["items"]] == every[:2]
    assert groups(site, rule=every[0]["rule"]) == every
    assert groups(site, owner="nobody") == groups(site, **{"last_seen.gt": "2100-01-01T00:00:00Z"}) == []


@pytest.mark.parametrize("path", ["/v1/findings", "/v1/finding-groups"])
def test_a_key_of_one_project_sees_that_project_only(site, path):
    from store.database.ids import new_id
    from store.tables import Now, project

    run = site.finished()
    mine, other = site.client.get(f"/v1/runs/{run}").json["project"], new_id("prj")
    with site.context.database.begin() as transaction:
        facts = {"public_id": other, "tenant_id": 1, "name": other, "settings": {}, "created_at": Now()}
        transaction.execute(project.insert().values(facts))
    shown = {}
    for project_id in (mine, other):
        asked = {"name": "k", "scopes": ["read"], "project": project_id}
        secret = site.client.post("/v1/keys", json=asked).json["secret"]
        headers = {"Authorization": f"Bearer {secret}"}
        shown[project_id] = len(site.client.get(path, headers=headers).json["items"])
        assert site.client.get(f"{path}?project={mine}", headers=headers).json["items"] == (
            site.client.get(path, headers=headers).json["items"] if project_id == mine else []
        )
    assert shown == {mine: 1, other: 0}


def test_programs_without_a_name_share_a_group_only_with_themselves(site, samples):
    text = samples.TUTORIAL
    runs = [site.finished(body={"source": source}) for source in (text, text + "# another one\n", text)]
    told = groups(site)
    assert sorted(group["runs"] for group in told) == [1, 2]
    (twice,) = (group for group in told if group["runs"] == 2)
    assert (twice["first_run"], twice["last_run"]) == (runs[0], runs[2])
    snippet = site.client.get(f"/v1/runs/{runs[0]}").json["snippet"]
    assert (twice["made_of"]["path"], twice["path"]) == (snippet, "snippet.py")
    compared = site.client.get("/v1/compare", query_string={"a": runs[0], "b": runs[1]}).json["findings"]
    assert (compared["new"], compared["fixed"], compared["same"]) == (0, 0, 1)


def test_judging_again_leaves_a_program_without_a_name_in_its_group(site, samples):
    from store.findings import rejudging
    from store.findings.rejudging import judged_again

    run = site.finished(body={"source": samples.TUTORIAL})
    assert site.client.post(f"/v1/runs/{run}/judge").status_code == 202
    with site.context.database.read() as reading:
        (due,) = rejudging.due(reading)
    record = rejudging.record_of(site.context.database, due)
    change = judged_again(site.context.database, due, record, judge(record), {})
    assert (change.same, change.new, change.gone) == (1, 0, 0)
