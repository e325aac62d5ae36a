"""Projects hold runs together: made and changed by admins, told apart by keys, and their settings judge."""

from __future__ import annotations

import uuid

import pytest

NONE_SUCH = "prj_01JD8PZ4T8W2K5C7Q9R3M6X1BA"


@pytest.fixture
def name():
    return f"p{uuid.uuid4().hex}"


def created(site, status=201, headers=None, **body):
    answer = site.client.post("/v1/projects", json=body, headers=headers or {})
    assert answer.status_code == status, answer.text
    return answer


def key_of(site, scopes, project=None):
    answer = site.client.post("/v1/keys", json={"name": "k", "scopes": list(scopes), "project": project})
    assert answer.status_code == 201, answer.text
    return {"Authorization": f"Bearer {answer.json['secret']}"}


def test_a_project_is_made_listed_and_read(site, name):
    answer = created(site, name=name, settings={"ignore": ["BP3"], "min_confidence": "likely"}, keep_days=7)
    told = answer.json
    assert (told["name"], told["keep_days"], told["archived_at"]) == (name, 7, None)
    assert told["settings"] == {"ignore": ["BP3"], "min_confidence": "likely"}
    read = site.client.get(answer.headers["Location"])
    assert (read.json, read.headers["ETag"]) == (told, answer.headers["ETag"])
    page, seen = {"next_cursor": None}, []
    while not seen or page["next_cursor"]:
        more = f"&cursor={page['next_cursor']}" if seen else ""
        page = site.client.get(f"/v1/projects?limit=1{more}").json
        seen += [project["id"] for project in page["items"]]
    assert seen[-1] == told["id"]
    assert len(set(seen)) == len(seen) >= 2


def test_runs_are_filtered_by_the_name_of_a_project_and_by_how_long_ago(site, name):
    project = created(site, name=name).json["id"]
    run = site.submit(project=project)
    other = site.submit()
    for given in (name, project):
        listed = [item["id"] for item in site.client.get("/v1/runs", query_string={"project": given}).json["items"]]
        assert listed == [run]
    recent = [item["id"] for item in site.client.get("/v1/runs?since=1h").json["items"]]
    assert {run, other} <= set(recent)
    later = {"since": "1h", "created.gt": "2099-01-01T00:00:00Z"}
    assert site.client.get("/v1/runs", query_string=later).json["items"] == []
    assert site.client.get("/v1/runs?since=yesterday").status_code == 422
    page = site.client.get("/runs", query_string={"project": name, "since": "1h"}).text
    assert run in page
    assert other not in page


def test_a_name_is_taken_once_and_a_repeated_request_makes_one(site, name):
    once = {"Idempotency-Key": name}
    first, again = created(site, name=name, headers=once), created(site, name=name, headers=once)
    assert first.json == again.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert created(site, 422, name=name).json["errors"][0]["pointer"] == "#/name"
    other = created(site, name=f"{name} two")
    match = {"If-Match": other.headers["ETag"]}
    taken = site.client.patch(f"/v1/projects/{other.json['id']}", json={"name": name}, headers=match)
    assert (taken.status_code, taken.json["errors"][0]["pointer"]) == (422, "#/name")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "#/name"),
        ({"name": ""}, "#/name"),
        ({"name": "a\x1b"}, "#/name"),
        ({"name": "n", "settings": {"ignore": ["no-such-rule"]}}, "#/settings/ignore"),
        ({"name": "n", "settings": {"colour": 1}}, "#/settings/colour"),
        ({"name": "n", "keep_days": 0}, "#/keep_days"),
        ({"name": "n", "repository": "http://github.com/o/r"}, "#/repository"),
        ({"name": "n", "repository": "https://github.com/o"}, "#/repository"),
        ({"name": "n", "repository": "https://github.com/o/r/issues"}, "#/repository"),
        ({"name": "n", "repository": "https://user@github.com/o/r"}, "#/repository"),
        ({"name": "n", "repository": "https://github.com/o/r?x"}, "#/repository"),
        ({"name": "n", "repository": "javascript:alert(1)"}, "#/repository"),
    ],
)
def test_a_bad_field_is_pointed_at(plain_site, body, pointer):
    told = created(plain_site, 422, **body).json
    assert pointer in [place["pointer"] for place in told["errors"]]


def test_a_change_wants_the_etag_and_leaves_what_is_not_given(site, name):
    where = "https://github.com/owner/repo.py"
    answer = created(site, name=name, settings={"ignore": ["BP3"]}, keep_days=7, repository=where)
    assert answer.json["repository"] == where
    path = answer.headers["Location"]
    assert site.client.patch(path, json={"keep_days": 9}).status_code == 428
    match = {"If-Match": answer.headers["ETag"]}
    changed = site.client.patch(path, json={"keep_days": None}, headers=match)
    assert (changed.status_code, changed.json["keep_days"], changed.json["name"]) == (200, None, name)
    assert (changed.json["settings"], changed.json["repository"]) == ({"ignore": ["BP3"]}, where)
    assert site.client.patch(path, json={"keep_days": 9}, headers=match).status_code == 412
    match = {"If-Match": changed.headers["ETag"]}
    away = site.client.patch(path, json={"archived": True, "settings": {}, "repository": None}, headers=match)
    assert (away.json["settings"], away.json["archived_at"] is None, away.json["repository"]) == ({}, False, None)
    match = {"If-Match": away.headers["ETag"]}
    assert site.client.patch(path, json={"archived": False}, headers=match).json["archived_at"] is None
    entries = site.client.get(f"/v1/audit-log?object={changed.json['id']}").json["items"]
    assert [entry["action"] for entry in entries] == ["project.change"] * 3 + ["project.create"]


def test_a_run_comes_into_its_project_and_is_judged_by_its_settings(site, name):
    from store.runs import lifecycle

    made = created(site, name=name, settings={"ignore": ["BP3"]}).json["id"]
    mine = site.submit(project=made)
    own = site.submit(project=made, rules={"select": ["BP1"]})
    other = site.submit()
    assert [run["id"] for run in site.client.get(f"/v1/runs?project={made}").json["items"]] == [own, mine]
    assert site.client.get(f"/v1/runs?project={NONE_SUCH}").json["items"] == []
    held = {}
    while claim := lifecycle.claim(site.context.database, "w"):
        held[claim.public_id] = claim.rules
    assert held == {mine: {"ignore": ["BP3"]}, own: {"select": ["BP1"]}, other: None}
    refused = site.post({"source": "x = 1\n", "project": NONE_SUCH})
    assert (refused.status_code, refused.json["code"]) == (404, "not-found")


def test_a_project_that_was_put_away_takes_no_run(site, name):
    answer = created(site, name=name)
    match = {"If-Match": answer.headers["ETag"]}
    site.client.patch(answer.headers["Location"], json={"archived": True}, headers=match)
    refused = site.post({"source": "x = 1\n", "project": answer.json["id"]})
    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "#/project")


def test_a_key_of_one_project_sees_that_one_and_only_an_admin_writes(site, name):
    made, other = (created(site, name=f"{name}{n}").json["id"] for n in range(2))
    mine = key_of(site, ("read", "runs:write"), made)
    assert [project["id"] for project in site.client.get("/v1/projects", headers=mine).json["items"]] == [made]
    assert site.client.get(f"/v1/projects/{other}", headers=mine).status_code == 404
    asked = {"source": "x = 1\n", "project": other}
    assert site.client.post("/v1/runs", json=asked, headers=mine).status_code == 404
    assert site.client.post("/v1/runs", json=asked | {"project": made}, headers=mine).json["project"] == made
    assert site.client.get(f"/v1/runs?project={other}", headers=mine).json["items"] == []
    for headers in (key_of(site, ("read", "runs:write", "keys:write")), key_of(site, ("admin",), made)):
        assert created(site, 403, name="x", headers=headers).json["code"] == "scope-missing"
        path = f"/v1/projects/{made}"
        assert site.client.patch(path, json={"name": "x"}, headers={**headers, "If-Match": "*"}).status_code == 403
