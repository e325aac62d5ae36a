"""Two tenants: nothing of the one is readable, countable or told apart from what does not exist by the other."""

from __future__ import annotations

import re

import pytest

from store import outbox, tables


@pytest.fixture
def two(site):
    """Keys of two new tenants that may do all; the first one has a run with a record."""
    from service.caller import digest_of, new_key
    from store import keys, tenants
    from store.ids import new_id

    secrets = []
    for _ in range(2):
        secret, prefix = new_key()
        digest = digest_of(secret, site.context.settings.secret)
        with site.context.database.begin() as transaction:
            number = tenants.create(transaction, new_id("tnt"))
            new = keys.NewKey(name="t", prefix=prefix, digest=digest, scopes=("admin",), created_by="test")
            keys.create(transaction, new, tenant_id=number)
        secrets.append({"Authorization": f"Bearer {secret}"})
    return secrets


@pytest.fixture
def owned(site, two, samples):
    """Everything of the first tenant that has an id."""
    run = site.client.post("/v1/runs", json={"source": samples.TUTORIAL}, headers=two[0]).json["id"]
    site.finish(run, samples.tutorial())
    (finding,) = site.client.get(f"/v1/runs/{run}/findings", headers=two[0]).json["items"]
    key = site.client.get("/v1/keys", headers=two[0]).json["items"][0]["id"]
    asked = {"url": "https://hooks.example/in", "events": ["run.ended"]}
    webhook = site.client.post("/v1/webhooks", json=asked, headers=two[0]).json["id"]
    with site.context.database.begin() as transaction:
        tenant = transaction.execute(tables.webhook.select()).one().tenant_id
        delivery = outbox.enqueue_test(transaction, webhook, tenant_id=tenant)
    project = site.client.post("/v1/projects", json={"name": "theirs"}, headers=two[0]).json["id"]
    kept = {"files": [{"path": "main.py", "text": "x = 2\n"}]}
    snippet = site.client.post("/v1/snippets", json=kept, headers=two[0]).json["id"]
    asked = {"name": "theirs"}
    policy = site.client.post("/v1/policies", json=asked, headers=two[0]).json["id"]
    items = {"items": [{"custom_id": "a", "run": run}], "policy": policy}
    audit = site.client.post("/v1/audits", json=items, headers=two[0]).json["id"]
    numbers = {
        "audit": audit,
        "policy": policy,
        "snippet": snippet,
        "webhook": webhook,
        "delivery": delivery,
        "project": project,
    }
    return {"run": run, "finding": finding["id"], "group": finding["group"]["id"], "key": key, **numbers}


OWNED = "{(snippet|run|finding|group|key|webhook|delivery|project|audit|policy)}"
NONE_SUCH = {
    "run": "run_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "finding": "f_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "group": "fg_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "key": "key_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "snippet": "snp_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "webhook": "wh_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "delivery": "dlv_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "project": "prj_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "audit": "aud_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
    "policy": "pol_01JD8PZ4T8W2K5C7Q9R3M6X1BA",
}


def filled(path, ids):
    for name, value in {**ids, "no": "0", "node": "0", "call": "0", "path": "main.py", "table": "sites"}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def same(text, ids):
    """The answer without what is of the request: its id, and the id that was asked for."""
    text = re.sub(r'"request_id": ?"[^"]*"', "", text)
    for value in ids.values():
        text = text.replace(value, "ID")
    return text


def test_anothers_ids_are_404_like_unknown_ones_in_every_operation(site, two, owned):
    document = site.client.get("/openapi.json").json
    tried = 0
    for path, item in document["paths"].items():
        if not re.search(OWNED, path):
            continue
        for method, operation in item.items():
            sent = {"method": method.upper(), "headers": two[1]} | ({"json": {}} if "requestBody" in operation else {})
            theirs = site.client.open(filled(path, owned), **sent)
            unknown = site.client.open(filled(path, NONE_SUCH), **sent)
            assert (theirs.status_code, unknown.status_code) == (404, 404), (method, path, theirs.text)
            assert same(theirs.text, owned) == same(unknown.text, NONE_SUCH), (method, path)
            tried += 1
    assert tried >= 24


def test_the_control_the_owner_reads_them_all(site, two, owned):
    document = site.client.get("/openapi.json").json
    for path, item in document["paths"].items():
        if re.search(OWNED, path) and "get" in item:
            answer = site.client.get(filled(path, owned), headers=two[0])
            assert answer.status_code == 200, (path, answer.text)


def test_no_list_tells_of_another_tenant(site, two, owned):
    document = site.client.get("/openapi.json").json
    lists = [path for path, item in document["paths"].items() if "get" in item and "{" not in path]
    for path in lists:
        text = site.client.get(path, headers=two[1]).text
        for value in owned.values():
            assert value not in text, path
    assert {"/v1/runs", "/v1/keys", "/v1/audit-log", "/v1/projects", "/v1/queue", "/v1/usage"} <= set(lists)
    assert owned["run"] in site.client.get("/v1/runs", headers=two[0]).text
    assert owned["run"] in site.client.get("/v1/audit-log", headers=two[0]).text


def test_nothing_of_another_tenant_changes(site, two, owned):
    before = site.client.get(f"/v1/runs/{owned['run']}", headers=two[0])
    for path in (f"/v1/runs/{owned['run']}/{verb}" for verb in ("judge", "cancel", "rerun")):
        site.client.post(path, headers=two[1])
    sent = {**two[1], "If-Match": before.headers["ETag"]}
    site.client.patch(f"/v1/runs/{owned['run']}", headers=sent, json={"pinned": True})
    site.client.delete(f"/v1/runs/{owned['run']}", headers=two[1])
    sent = {**two[1], "If-Match": '"1"'}
    site.client.patch(f"/v1/finding-groups/{owned['group']}", headers=sent, json={"owner": "me"})
    assert site.client.get(f"/v1/finding-groups/{owned['group']}", headers=two[0]).json["owner"] is None
    site.client.patch(f"/v1/projects/{owned['project']}", headers={**two[1], "If-Match": "*"}, json={"name": "mine"})
    assert site.client.get(f"/v1/projects/{owned['project']}", headers=two[0]).json["name"] == "theirs"
    hook = f"/v1/webhooks/{owned['webhook']}"
    site.client.patch(hook, headers=sent, json={"enabled": False})
    for verb in ("rotate", "test"):
        site.client.post(f"{hook}/{verb}", headers=two[1])
    site.client.delete(hook, headers=two[1])
    told = site.client.get(hook, headers=two[0]).json
    assert (told["version"], told["enabled"]) == (1, True)
    assert len(site.client.get(f"{hook}/deliveries", headers=two[0]).json["items"]) == 1
    assert site.client.get(f"/v1/runs/{owned['run']}", headers=two[0]).json == before.json
    site.client.delete(f"/v1/keys/{owned['key']}", headers=two[1])
    assert site.client.get("/v1/me", headers=two[0]).status_code == 200
    actions = [entry["action"] for entry in site.client.get("/v1/audit-log", headers=two[0]).json["items"]]
    assert actions == [
        "audit.create",
        "policy.create",
        "snippet.keep",
        "project.create",
        "webhook.create",
        "run.submit",
    ]


def test_anothers_cursor_and_pages_are_refused(site, two, owned, samples):
    for _ in range(2):
        site.client.post("/v1/runs", json={"source": samples.TUTORIAL}, headers=two[0])
    cursor = site.client.get("/v1/runs?limit=1", headers=two[0]).json["next_cursor"]
    assert site.client.get(f"/v1/runs?limit=1&cursor={cursor}", headers=two[0]).status_code == 200
    refused = site.client.get(f"/v1/runs?limit=1&cursor={cursor}", headers=two[1])
    assert (refused.status_code, refused.json["code"]) == (422, "bad-cursor")
    assert site.client.get(f"/runs/{owned['run']}", headers=two[0]).status_code == 200
    assert site.client.get(f"/runs/{owned['run']}", headers=two[1]).status_code == 404
    assert owned["run"] not in site.client.get("/runs", headers=two[1]).text


def test_one_idempotency_key_serves_two_tenants(site, two):
    ids = set()
    for headers in two:
        sent = {**headers, "Idempotency-Key": "same"}
        answer = site.client.post("/v1/runs", json={"source": "x = 1\n"}, headers=sent)
        assert answer.status_code == 202
        ids.add(answer.json["id"])
    assert len(ids) == 2


def test_the_same_program_of_two_tenants_has_two_ids(site, two):
    asked = {"files": [{"path": "main.py", "text": "x = 3\n"}]}
    ids = {site.client.post("/v1/snippets", json=asked, headers=headers).json["id"] for headers in (*two, two[0])}
    assert len(ids) == 2
    told = site.client.post("/v1/runs", json={"snippet": ids.pop()}, headers=two[0]).status_code
    other = site.client.post("/v1/runs", json={"snippet": ids.pop()}, headers=two[0]).status_code
    assert sorted((told, other)) == [202, 404]
