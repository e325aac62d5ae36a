"""Two tenants: nothing of the one is readable, countable or told apart from what does not exist by the other."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import re
from collections import Counter
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from sqlalchemy import event, func, select

from backprobe.record import dumps, split
from service.settings import RateLimits
from store import tables
from store.database.ids import new_id
from store.webhooks import outbox
from tests.support import samples

MARK = "zebra"
"""In what the first tenant has, and in nothing that the other may be told."""


def things(site, headers, mark):
    """One of everything that has an id, of this tenant: a new kind of thing is made here."""
    rank = {"group": "a job", "rank": "0", "world_size": "1"}
    program = {"source": samples.TUTORIAL, "labels": {"of": mark, **rank}}
    run = site.client.post("/v1/runs", json=program, headers=headers).json["id"]
    site.finish(run, samples.tutorial(), judgement=samples.judged_with_fix(samples.tutorial()))
    (finding,) = site.client.get(f"/v1/runs/{run}/findings", headers=headers).json["items"]
    key = site.client.get("/v1/keys", headers=headers).json["items"][0]["id"]
    asked = {"url": f"https://hooks.example/{mark}", "events": ["run.ended"]}
    webhook = site.client.post("/v1/webhooks", json=asked, headers=headers).json["id"]
    with site.context.database.begin() as transaction:
        named = tables.webhook.select().where(tables.webhook.c.public_id == webhook)
        tenant = transaction.execute(named).one().tenant_id
        delivery = outbox.enqueue_test(transaction, webhook, tenant_id=tenant)
    project = site.client.post("/v1/projects", json={"name": mark}, headers=headers).json["id"]
    kept = {"files": [{"path": "main.py", "text": f"{mark} = 2\n"}]}
    snippet = site.client.post("/v1/snippets", json=kept, headers=headers).json["id"]
    asked = {"name": mark}
    policy = site.client.post("/v1/policies", json=asked, headers=headers).json["id"]
    items = {"items": [{"custom_id": "a", "run": run}], "policy": policy}
    audit = site.client.post("/v1/audits", json=items, headers=headers).json["id"]
    numbers = {
        "audit": audit,
        "policy": policy,
        "snippet": snippet,
        "webhook": webhook,
        "delivery": delivery,
        "project": project,
    }
    return {"run": run, "finding": finding["id"], "group": finding["group"]["id"], "key": key, **numbers}


@pytest.fixture
def owned(site, two):
    """What the first tenant has."""
    return things(site, two[0], MARK)


FRAME = "application/vnd.backprobe.record"
LINES = "application/x-ndjson"
ID = re.compile(r"\^([a-z]+)_")
"""How the pattern of an id begins in the document: with the kind of thing that it is of."""

NO_IDS = {"path": "main.py", "name": "BP101", "code": "not-found"}
"""What is asked for where a path has a text that is no id."""


def by_kind(owned):
    """The ids by how they begin."""
    return {value.partition("_")[0]: value for value in owned.values()}


def none_such(ids):
    """Ids of the same kinds that nobody has."""
    return {kind: f"{kind}_01JD8PZ4T8W2K5C7Q9R3M6X1BA" for kind in ids}


def kind_of(schema):
    """Of which kind of thing this is an id; None: it is none."""
    found = ID.match(schema.get("pattern", ""))
    return found and found[1]


def operations(document):
    """Method, path and description of each."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def filled(method, path, operation, ids):
    """The path with these ids; what it names besides is what every run has.

    An operation of which this is not known fails by its name: whoever adds one says here how it is asked.
    """
    for parameter in operation["parameters"]:
        if parameter["in"] != "path":
            continue
        name, schema = parameter["name"], parameter["schema"]
        if kind := kind_of(schema):
            value = ids.get(kind)
        else:
            value = "0" if schema.get("type") == "integer" else (*schema.get("enum", ()), NO_IDS.get(name))[0]
        assert value is not None, f"{method.upper()} {path}: there is nothing to be asked for as {name}: see `owned`"
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"{method.upper()} {path}: the document does not describe its parameters"
    return path


def names_an_id(operation):
    return any(parameter["in"] == "path" and kind_of(parameter["schema"]) for parameter in operation["parameters"])


def makes(method, operation):
    """It makes what is not there, under an id of the client's own."""
    return method == "put" and "201" in operation["responses"]


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

    def collect_statement(_connection, _cursor, statement, *_):
        asked.append(statement)

    engine = site.context.database.engine
    event.listen(engine, "before_cursor_execute", collect_statement)
    yield asked
    event.remove(engine, "before_cursor_execute", collect_statement)


OF_THE_REQUEST = {"X-Request-Id", "Date", "RateLimit"}
SENT = ({}, {"If-Match": "*"}, {"If-None-Match": "*"}, {"Idempotency-Key": "once"})
"""Headers with which a view could look at more before it looks at whose it is."""


def outcome(site, method, path, headers, body):
    """Status, text, headers and statements of one request."""
    with statements(site) as executed:
        answer = site.client.open(path, method=method, headers=headers, **body)
    told = sorted((name, value) for name, value in answer.headers if name not in OF_THE_REQUEST)
    return answer.status_code, answer.text, told, executed


def as_lines(body):
    """The same as NDJSON: the whole, then its items."""
    head = {name: given for name, given in body.items() if name != "items"}
    return "".join(json.dumps(line) + "\n" for line in (head, *body.get("items", ())))


def shown_bodies(operation):
    """Return the bodies that the document shows."""
    taken = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return [example["value"] for example in taken.get("examples", {}).values()]


def bodies(method, path, operation):
    """What is sent: nothing where nothing is taken, else nothing that counts and the document's own examples."""
    found = []
    for media in operation.get("requestBody", {}).get("content", {}):
        if media == "application/json":
            found += [{"json": example} for example in [{}, *shown_bodies(operation)]]
        elif media == LINES:
            found += [{"data": as_lines(example), "content_type": LINES} for example in shown_bodies(operation)]
        elif media == FRAME:
            record = dumps(samples.tutorial())
            good = record if method == "post" else next(iter(split(record)))  # a whole one, or a frame of one
            found += [{"data": data, "content_type": FRAME} for data in (b"", good)]
        else:
            raise AssertionError(f"{method.upper()} {path}: nothing is known of a body of {media}")
    assert found or "requestBody" not in operation, f"{method.upper()} {path}: the document shows no body"
    return found or [{}]


def swept(site, headers, owned):
    """Every operation on an id of `owned`, and on one that nobody has: the same but for the id. Which there were."""
    ids, tried = by_kind(owned), set()
    unknown_ids = none_such(ids)
    document = site.client.get("/openapi.json", headers=headers).json
    for method, path, operation in operations(document):
        if not names_an_id(operation) or makes(method, operation):
            continue
        places = [filled(method, path, operation, which) for which in (ids, unknown_ids)]
        for more, body in itertools.product(SENT, bodies(method, path, operation)):
            sent = {**headers, **more}
            outcome(site, method.upper(), places[1], sent, body)  # what is kept for a second is asked
            theirs = outcome(site, method.upper(), places[0], sent, body)
            unknown = outcome(site, method.upper(), places[1], sent, body)
            about = (method, path, more, body, theirs[1])
            assert theirs[0] == unknown[0], about
            assert theirs[0] == 404 or (theirs[0] == 422 and body.get("json")), about
            assert same(theirs[1], ids) == same(unknown[1], unknown_ids), about
            assert same(str(theirs[2]), ids) == same(str(unknown[2]), unknown_ids), about
            assert theirs[3] == unknown[3], (about, theirs[3], unknown[3])
            assert find_leaks(theirs[1], owned, but=places[0]) == [], about
        tried.add((method, path))
    return tried


def find_leaks(text, owned, but=""):
    """Return the values of the first tenant that are in a text, without what the request named."""
    return [value for value in (*owned.values(), MARK) if value in text and value not in but]


def rows(site, tenant):
    """Every row of the database that is not this tenant's, by table: those with an owner, and the others."""
    whose, others = {}, {}
    with site.context.database.read() as reading:
        for table in tables.METADATA.sorted_tables:
            query = sa.select(table)
            if "tenant_id" in table.c:
                found = reading.execute(query.where(table.c.tenant_id.is_distinct_from(tenant)))
                whose[table.name] = Counter(repr(row) for row in found)
            else:
                others[table.name] = Counter(repr(row) for row in reading.execute(query))
    return whose, others


@contextmanager
def nothing_changes(site, headers):
    """Whatever this caller does meanwhile, each row that is not its own stays as it is."""
    name = site.client.get("/v1/me", headers=headers).json["tenant"]
    with site.context.database.read() as reading:
        tenant = reading.scalar(select(tables.tenant.c.id).where(tables.tenant.c.public_id == name))
    before = rows(site, tenant)
    yield
    after = rows(site, tenant)
    assert after[0] == before[0]
    for table, found in before[1].items():  # its own rows may have come there
        assert not found - after[1][table], table


@pytest.fixture
def unlimited(site, monkeypatch):
    """As many requests as come; what is counted once holds, so that the same request asks the same statements."""
    monkeypatch.setattr(site.context.backlog, "_clock", lambda: 0.0)
    none = RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0)
    monkeypatch.setattr(site.context.rates, "limits", none)


def test_anothers_ids_are_like_unknown_ones_to_the_byte_and_the_statement(site, two, owned, unlimited):
    with nothing_changes(site, two[1]):
        tried = swept(site, two[1], owned)
    assert {("get", "/v1/runs/{run}"), ("delete", "/v1/runs/{run}"), ("put", "/v1/runs/{run}/frames/{n}")} <= tried


def test_an_operation_that_the_sweep_cannot_ask_fails_by_its_name(site, two, owned):
    document = site.client.get("/openapi.json", headers=two[1]).json
    ids, path = by_kind(owned), "/v1/runs/{run}/things/{thing}"
    run = next(
        parameter for parameter in document["paths"]["/v1/runs/{run}"]["get"]["parameters"] if parameter["in"] == "path"
    )
    for schema in ({"type": "string", "pattern": "^thing_[0-9A-Z]{26}$"}, {"type": "string"}):
        thing = {"name": "thing", "in": "path", "schema": schema}
        with pytest.raises(AssertionError, match=r"GET /v1/runs/.*: there is nothing to be asked for as thing"):
            filled("get", path, {"parameters": [run, thing]}, ids)
    with pytest.raises(AssertionError, match=r"GET .*things/{thing}: the document does not describe"):
        filled("get", path, {"parameters": [run]}, ids)
    with pytest.raises(AssertionError, match="POST /v1/things: nothing is known of a body of image/png"):
        bodies("post", "/v1/things", {"requestBody": {"content": {"image/png": {}}}})
    field = {"properties": {"thing": {"type": "string", "pattern": "^run_[0-9A-Z]{26}$"}}}
    taken = {"parameters": [], "requestBody": {"content": {"application/json": {"schema": field}}}}
    with pytest.raises(AssertionError, match="POST /v1/things: the document shows no body in which to name thing"):
        list(asking(document, "post", "/v1/things", taken, ids))


def test_what_makes_a_thing_under_anothers_id_is_told_what_a_reader_of_an_unknown_one_is(site, two, owned, unlimited):
    ids = by_kind(owned)
    unknown_ids = none_such(ids)
    document, tried = site.client.get("/openapi.json", headers=two[1]).json, []
    with nothing_changes(site, two[1]):
        for method, path, operation in operations(document):
            if names_an_id(operation) and makes(method, operation):
                for body in bodies(method, path, operation):
                    theirs = outcome(site, method.upper(), filled(method, path, operation, ids), two[1], body)
                    reading = document["paths"][path]["get"]
                    unknown = outcome(site, "GET", filled("get", path, reading, unknown_ids), two[1], {})
                    assert (theirs[0], unknown[0]) == (404, 404), (method, path)
                    assert same(theirs[1], ids) == same(unknown[1], unknown_ids), (method, path)
                tried.append((method, path))
    assert ("put", "/v1/runs/{run}") in tried


def fields(document, schema, way=()):
    """Ways to the fields of a body in which an id is named, and of what; `0` is the first of a list."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if kind := kind_of(schema):
        yield way, kind
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from fields(document, branch, way)
    if "items" in schema:
        yield from fields(document, schema["items"], (*way, 0))
    for name, inner in schema.get("properties", {}).items():
        yield from fields(document, inner, (*way, name))


BOUND = {"enum", "pattern", "format"}
"""What keeps a text from being an id."""

INSTEAD = {"snippet": ("source", "files", "entry"), "run": ("source", "files", "entry")}
"""What a body may not have beside an id: the program, where the id says which."""


def naming(example, way, value):
    """That body with an id in it."""
    body = copy.deepcopy(example)
    part = body
    for step, following in itertools.pairwise(way):
        if isinstance(part, dict):
            part = part.setdefault(step, [] if following == 0 else {})
        else:
            part.extend([] if part else [{}])
            part = part[step]
    for other in INSTEAD.get(way[-1], ()):
        part.pop(other, None)
    if isinstance(part, dict):
        part[way[-1]] = value
    else:
        part[:] = [value]
    return body


def asking(document, method, path, operation, mine):
    """Where an operation takes an id but in its path: its name there, of what, and what makes a request of one.

    Args:
        document: The whole.
        method, path, operation: Which operation.
        mine: Ids of the caller's own, for what else a request must name.
    """
    queries = [parameter for parameter in operation["parameters"] if parameter["in"] == "query"]
    body = bodies(method, path, operation)[-1]
    needed = {query["name"]: mine[kind_of(query["schema"])] for query in queries if query.get("required")}

    def in_query(name):
        return lambda value: {**body, "query_string": {**needed, name: value}}

    for query in queries:
        kinds = {kind for way, kind in fields(document, query["schema"]) if way in {(), (0,)}}
        for kind in sorted(kinds):
            yield query["name"], kind, in_query(query["name"])
        if not kinds and query["schema"].get("type") == "string" and not BOUND & set(query["schema"]):
            yield f"{query['name']} as text", "run", in_query(query["name"])
    taken = operation.get("requestBody", {}).get("content", {})
    for way, kind in sorted(set(fields(document, taken.get("application/json", {}).get("schema", {}))), key=str):
        examples = shown_bodies(operation)
        assert examples, f"{method.upper()} {path}: the document shows no body in which to name {way[-1]}"
        named = functools.partial(naming, examples[0], way)
        name = ".".join(str(step) for step in way)
        yield name, kind, lambda value, named=named: {"json": named(value)}
        if LINES in taken:
            in_line = f"{name} in a line"
            yield in_line, kind, lambda value, named=named: {"data": as_lines(named(value)), "content_type": LINES}


NEVER = {f"{of}.project{how}" for of in ("items.0", "defaults") for how in ("", " in a line")}
"""Where no id is ever taken: an item goes where its audit goes."""


def test_an_id_of_another_tenant_in_a_parameter_or_a_body_is_an_unknown_one(site, two, owned, unlimited):
    """The control of each: with an id of the caller's own the same request is answered, so it was the id that it hung on."""
    document, tried = site.client.get("/openapi.json", headers=two[1]).json, set()
    ids = by_kind(owned)
    unknown_ids, sent = none_such(ids), {**two[1], "If-Match": "*"}
    with nothing_changes(site, two[1]):
        mine = by_kind(things(site, two[1], "mine"))
        for method, path, operation in operations(document):
            for name, kind, made in asking(document, method, path, operation, mine):
                about = (method, path, name)
                assert kind in ids, f"{method.upper()} {path}: there is nothing to be asked for as {name}: see `things`"
                before, answers = count(site), []
                for which in (unknown_ids, ids, unknown_ids):
                    new = {"run": new_id("run")} if makes(method, operation) else {}
                    place = filled(method, path, operation, mine | new)
                    answers.append(outcome(site, method.upper(), place, sent, made(which[kind])))
                theirs, unknown = answers[1:]
                assert theirs[0] == unknown[0], about
                assert bare(theirs) == bare(unknown), about
                assert find_leaks(theirs[1], owned, but=ids[kind]) == [], about
                if theirs[0] != 202:  # items of an audit fail alone; its counts are queried again each second
                    assert theirs[3] == unknown[3], about
                    assert count(site) == before, (*about, "something was stored")
                place = filled(method, path, operation, mine | ({"run": new_id("run")} if new else {}))
                control = outcome(site, method.upper(), place, sent, made(mine[kind]))
                assert control[0] in {*range(200, 300), 409} or name in NEVER or name.endswith("as text"), (
                    *about,
                    control[:2],
                )
                tried.add(about)
    assert {
        ("post", "/v1/runs", "snippet"),
        ("post", "/v1/audits", "items.0.run"),
        ("get", "/v1/compare", "b"),
    } <= tried
    assert {("post", "/v1/audits", "items.0.run in a line"), ("get", "/v1/audit-log", "object as text")} <= tried


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
    unknown = outcome(site, "GET", f"/v1/runs/{new_id('run')}", two[0], {})
    assert len(mine[3]) > len(unknown[3]) > 0


def test_the_control_the_owner_is_answered_by_them_all(site, two, owned, unlimited, monkeypatch):
    monkeypatch.setattr(site.context.waiters, "waiting", 1000)  # nobody works here: who would wait is answered at once
    document, ids = site.client.get("/openapi.json").json, by_kind(owned)
    asked = [operation for operation in operations(document) if names_an_id(operation[2])]
    last = {"delete": 1}  # then what is below something before it, and the key that asks at the end
    for method, path, operation in sorted(
        asked, key=lambda entry: (last.get(entry[0], 0), "key" in entry[1], -len(entry[1]))
    ):
        body = [{}, *bodies(method, path, operation)][-1]
        which = ids | ({"run": new_id("run")} if makes(method, operation) else {})
        takes_match = any(parameter["name"] == "If-Match" for parameter in operation["parameters"])
        sent = {**two[0], **({"If-Match": "*"} if takes_match else {})}
        answer = site.client.open(filled(method, path, operation, which), method=method.upper(), headers=sent, **body)
        assert answer.status_code < 300 or answer.status_code == 409, (method, path, answer.text)


def test_no_list_tells_of_another_tenant(site, two, owned):
    document = site.client.get("/openapi.json").json
    lists = [path for method, path, _ in operations(document) if method == "get" and "{" not in path]
    for path in lists:
        assert find_leaks(site.client.get(path, headers=two[1]).text, owned) == [], path
    assert {"/v1/runs", "/v1/keys", "/v1/audit-log", "/v1/projects", "/v1/queue", "/v1/usage"} <= set(lists)
    assert owned["run"] in site.client.get("/v1/runs", headers=two[0]).text
    assert owned["run"] in site.client.get("/v1/audit-log", headers=two[0]).text
    assert MARK in site.client.get("/v1/projects", headers=two[0]).text


def test_no_page_tells_of_another_tenant(site, two, owned, unlimited):
    for rule in site.app.url_map.iter_rules():
        if rule.endpoint.startswith("pages.") and "GET" in rule.methods:
            values = {name: owned.get(name, "BP101") for name in rule.arguments}
            path = functools.reduce(lambda path, item: path.replace(f"<{item[0]}>", item[1]), values.items(), rule.rule)
            answer = site.client.get(path, headers=two[1])
            assert find_leaks(answer.text, owned, but=path) == [], path
            assert answer.status_code == 404 or not rule.arguments & set(owned), path


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
    assert site.client.get(f"/v1/projects/{owned['project']}", headers=two[0]).json["name"] == MARK
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
