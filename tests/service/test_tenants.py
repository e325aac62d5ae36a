"""Two tenants: nothing of the one is readable, countable or told apart from what does not exist by the other."""

from __future__ import annotations

import copy
import functools
import itertools
import re
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy import event, func, select

from service.settings import RateLimits
from store import tables
from store.ids import new_id
from store.outward import outbox


@pytest.fixture
def two(site):
    """Keys of two new tenants that may do all; the first one has a run with a record."""
    from service.caller import digest_of, new_key
    from store.access import keys, tenants
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


FRAME = "application/vnd.backprobe.record"
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
    for name, value in {
        **ids,
        "no": "0",
        "node": "0",
        "call": "0",
        "n": "0",
        "path": "main.py",
        "table": "sites",
    }.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def same(text, ids):
    """The answer without what is of the request: its id, and the id that was asked for."""
    text = re.sub(r'"request_id": ?"[^"]*"', "", text)
    for value in ids.values():
        text = text.replace(value, "ID")
    return text


@contextmanager
def statements(site):
    """What the database is asked meanwhile, as it is written: not with which values."""
    asked = []

    def heard(_connection, _cursor, statement, *_):
        asked.append(statement)

    engine = site.context.database.engine
    event.listen(engine, "before_cursor_execute", heard)
    yield asked
    event.remove(engine, "before_cursor_execute", heard)


OF_THE_REQUEST = {"X-Request-Id", "Date", "RateLimit"}
SENT = ({}, {"If-Match": "*"}, {"If-None-Match": "*"}, {"Idempotency-Key": "once"})
"""Headers with which a view could look at more before it looks at whose it is."""


def outcome(site, method, path, headers, body):
    """Status, text, headers and statements of one request."""
    with statements(site) as asked:
        answer = site.client.open(path, method=method, headers=headers, **body)
    told = sorted((name, value) for name, value in answer.headers if name not in OF_THE_REQUEST)
    return answer.status_code, answer.text, told, asked


def bodies(operation):
    """What is sent: nothing where nothing is taken, else nothing that counts and the document's own examples."""
    if "requestBody" not in operation:
        return [{}]
    taken = operation["requestBody"]["content"].get("application/json", {})
    examples = [one["value"] for one in taken.get("examples", {}).values()] + [taken.get("example", {})]
    return [{"json": one} for one in [{}, *examples] if isinstance(one, dict)]


def swept(site, headers, owned):
    """Every operation on an id of `owned`, and on one that nobody has: the same but for the id. How many there were."""
    tried = 0
    for path, item in site.client.get("/openapi.json", headers=headers).json["paths"].items():
        if not re.search(OWNED, path):
            continue
        for method, operation in item.items():
            if (method, path) == ("put", "/v1/runs/{run}"):  # it makes what is not there: see below
                continue
            for more, body in itertools.product(SENT, bodies(operation)):
                sent = {**headers, **more}
                outcome(site, method.upper(), filled(path, NONE_SUCH), sent, body)  # what is kept for a second is asked
                theirs = outcome(site, method.upper(), filled(path, owned), sent, body)
                unknown = outcome(site, method.upper(), filled(path, NONE_SUCH), sent, body)
                about = (method, path, more, body, theirs[1])
                assert theirs[0] == unknown[0], about
                assert theirs[0] == 404 or (theirs[0] == 422 and body.get("json")), about
                assert same(theirs[1], owned) == same(unknown[1], NONE_SUCH), about
                assert same(str(theirs[2]), owned) == same(str(unknown[2]), NONE_SUCH), about
                assert theirs[3] == unknown[3], (about, theirs[3], unknown[3])
            tried += 1
    return tried


@pytest.fixture
def unlimited(site, monkeypatch):
    """As many requests as come."""
    none = RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0)
    monkeypatch.setattr(site.context.rates, "limits", none)


def test_anothers_ids_are_like_unknown_ones_to_the_byte_and_the_statement(site, two, owned, unlimited):
    assert swept(site, two[1], owned) >= 26


def test_a_recorder_that_takes_anothers_id_is_told_what_a_reader_of_an_unknown_one_is(site, two, owned, unlimited):
    before = site.client.get(f"/v1/runs/{owned['run']}", headers=two[0]).json
    theirs = outcome(site, "PUT", f"/v1/runs/{owned['run']}", two[1], {"json": {}})
    unknown = outcome(site, "GET", f"/v1/runs/{NONE_SUCH['run']}", two[1], {})
    assert (theirs[0], unknown[0]) == (404, 404)
    assert same(theirs[1], owned) == same(unknown[1], NONE_SUCH)
    assert site.client.get(f"/v1/runs/{owned['run']}", headers=two[0]).json == before


NAMED = {"a": "run", "b": "run", "baseline": "audit", **{name: name for name in NONE_SUCH}}
"""Parameters and fields in which an id is named, and of what."""


def fields(document, schema, path=()):
    """Ways to the fields of a body in which an id is named; `0` is the first of a list."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from fields(document, one, path)
    if "items" in schema:
        yield from fields(document, schema["items"], (*path, 0))
    for name, inner in schema.get("properties", {}).items():
        if name in NAMED and len(path) in {0, 2}:
            yield (*path, name)
        elif len(path) < 2:
            yield from fields(document, inner, (*path, name))


WHOLE = {
    "/v1/runs": {"source": "x = 1\n"},
    "/v1/runs/{run}": {},
    "/v1/audits": {"items": [{"custom_id": "a", "source": "x = 1\n"}]},
    "/v1/webhooks": {"url": "https://hooks.example/in", "events": ["run.ended"]},
    "/v1/webhooks/{webhook}": {"enabled": True},
    "/v1/keys": {"name": "k", "scopes": ["read"]},
}
"""A body that is taken, for each address whose body can name an id."""


def naming(path, way, value):
    """That body with an id in it."""
    body = copy.deepcopy(WHOLE[path])
    part = body
    for step in way[:-1]:
        part = part[step]
    if {"snippet", "run"} & {way[-1]}:
        part.pop("source")
    part[way[-1]] = value
    return {"json": body}


def asking(document, path, operation, mine):
    """Where an operation takes an id but in its path: its name there, and what makes a request of one."""

    def in_query(name):
        both = {"a": mine, "b": mine} if path == "/v1/compare" else {}
        return lambda value: {"query_string": {**both, name: value}}

    for one in operation.get("parameters", ()):
        if one["in"] == "query" and one["name"] in NAMED:
            yield one["name"], in_query(one["name"])
    taken = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for way in sorted(set(fields(document, taken.get("schema", {}))), key=str):
        yield way[-1], functools.partial(naming, path, way)


def test_an_id_of_another_tenant_in_a_parameter_or_a_body_is_an_unknown_one(site, two, owned, unlimited):
    document, tried = site.client.get("/openapi.json", headers=two[1]).json, set()
    asked = {"url": "https://hooks.example/in", "events": ["run.ended"]}
    own = {"webhook": site.client.post("/v1/webhooks", json=asked, headers=two[1]).json["id"], "run": new_id("run")}
    mine = site.client.post("/v1/runs", json={"source": "x = 2\n"}, headers=two[1]).json["id"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for name, made in asking(document, path, operation, mine):
                kind = NAMED[name]
                tried.add((method, path, name))
                sent = {**two[1], "If-Match": "*"}
                before = count(site)
                answers = [outcome(site, method.upper(), filled(path, own), sent, made(ids[kind]))
                           for ids in (NONE_SUCH, owned, NONE_SUCH)]  # fmt: skip
                theirs, unknown = answers[1:]
                assert theirs[0] == unknown[0], (method, path, name)
                assert bare(theirs) == bare(unknown), (method, path, name)
                if theirs[0] == 202:  # items of an audit fail alone; what it counts, it asks for anew each second
                    continue
                assert theirs[3] == unknown[3], (method, path, name)
                assert count(site) == before, (method, path, name, "something was stored")
    assert {("post", "/v1/runs", "snippet"), ("post", "/v1/audits", "run"), ("get", "/v1/compare", "b")} <= tried
    assert len(tried) > 15


def bare(told):
    """Text and headers of an answer, without ids and times, of which each has its own."""
    return re.sub(r"[a-z]+_[0-9A-Za-z]{16,}|\d{4}-\d\d-\d\dT[\d:.]+Z|\d+-[0-9a-f]{6}", "*", f"{told[1]} {told[2]}")


def count(site):
    """Rows of what a refused request must not have made."""
    with site.context.database.read() as transaction:
        return [transaction.scalar(select(func.count()).select_from(getattr(tables, name)))
                for name in ("run", "webhook", "api_key", "policy")]  # fmt: skip


def test_a_statement_more_is_noticed(site, two, owned):
    """The control: one's own run costs other statements than one that nobody has."""
    mine = outcome(site, "GET", f"/v1/runs/{owned['run']}", two[0], {})
    unknown = outcome(site, "GET", f"/v1/runs/{NONE_SUCH['run']}", two[0], {})
    assert len(mine[3]) > len(unknown[3]) > 0


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
    site.client.delete(f"/v1/audits/{owned['audit']}", headers=two[1])
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


def test_each_caller_is_told_whose_it_is(site, two):
    told = [site.client.get("/v1/me", headers=headers).json["tenant"] for headers in (*two, {})]
    with site.context.database.read() as transaction:
        names = {row.public_id: row.id for row in transaction.execute(sa.select(tables.tenant))}
    assert len(set(told)) == 3
    assert names[told[2]] == 1
