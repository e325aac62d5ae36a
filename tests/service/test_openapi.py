"""The document is valid, says what the service does, and real answers are what it says."""

from __future__ import annotations

import re

import pytest

from tests.support.json_schema import validator

PROMISED = {
    "POST /v1/runs",
    "GET /v1/runs",
    "GET /v1/runs/{run}",
    "PATCH /v1/runs/{run}",
    "DELETE /v1/runs/{run}",
    "PUT /v1/runs/{run}",
    "PUT /v1/runs/{run}/frames/{n}",
    "POST /v1/runs/{run}/end",
    "POST /v1/runs/{run}/cancel",
    "POST /v1/runs/{run}/rerun",
    "POST /v1/runs/{run}/judge",
    "GET /v1/runs/{run}/events",
    "GET /v1/compare",
    "GET /v1/runs/{run}/ranks",
    "GET /v1/runs/{run}/tensors",
    "GET /v1/runs/{run}/tensors/{no}",
    "GET /v1/runs/{run}/tensors/{no}/snapshots",
    "GET /v1/runs/{run}/snapshots",
    "GET /v1/runs/{run}/backward-calls",
    "GET /v1/runs/{run}/backward-calls/{call}",
    "GET /v1/runs/{run}/tensors/{no}/series",
    "GET /v1/runs/{run}/series",
    "GET /v1/runs/{run}/steps",
    "GET /v1/runs/{run}/moments",
    "GET /v1/runs/{run}/nodes",
    "GET /v1/runs/{run}/nodes/{node}",
    "GET /v1/runs/{run}/retention",
    "GET /v1/runs/{run}/leaf-grads",
    "GET /v1/runs/{run}/inplace-events",
    "GET /v1/runs/{run}/modules",
    "GET /v1/runs/{run}/optimizers",
    "GET /v1/runs/{run}/rows/{table}",
    "GET /v1/runs/{run}/gradient-checks",
    "GET /v1/runs/{run}/graph",
    "GET /v1/runs/{run}/findings",
    "GET /v1/runs/{run}/checks",
    "GET /v1/runs/{run}/source",
    "GET /v1/runs/{run}/output",
    "GET /v1/findings",
    "GET /v1/findings/{finding}",
    "GET /v1/findings/{finding}/trials",
    "POST /v1/findings/{finding}/trials",
    "GET /v1/finding-groups",
    "GET /v1/finding-groups/{group}",
    "PATCH /v1/finding-groups/{group}",
    "GET /v1/rules",
    "GET /v1/rules/{name}",
    "POST /v1/snippets",
    "GET /v1/snippets/{snippet}",
    "GET /v1/snippets/{snippet}/files/{path}",
    "POST /v1/webhooks",
    "GET /v1/webhooks",
    "GET /v1/webhooks/{webhook}",
    "PATCH /v1/webhooks/{webhook}",
    "DELETE /v1/webhooks/{webhook}",
    "POST /v1/webhooks/{webhook}/rotate",
    "POST /v1/webhooks/{webhook}/test",
    "GET /v1/webhooks/{webhook}/deliveries",
    "POST /v1/deliveries/{delivery}/redeliver",
    "POST /v1/keys",
    "GET /v1/keys",
    "DELETE /v1/keys/{key}",
    "GET /v1/me",
    "GET /v1/audit-log",
    "GET /v1",
    "GET /healthz",
    "GET /readyz",
    "GET /metrics",
    "GET /v1/projects",
    "POST /v1/projects",
    "GET /v1/projects/{project}",
    "PATCH /v1/projects/{project}",
    "GET /v1/projects/{project}/trends",
    "GET /v1/workers",
    "GET /v1/queue",
    "GET /v1/usage",
    "GET /v1/runs/{run}/record",
    "POST /v1/records",
    "POST /v1/policies",
    "GET /v1/policies",
    "GET /v1/policies/{policy}",
    "PUT /v1/policies/{policy}",
    "POST /v1/audits",
    "GET /v1/audits",
    "GET /v1/audits/trend",
    "GET /v1/audits/{audit}",
    "GET /v1/audits/{audit}/events",
    "GET /v1/audits/{audit}/items",
    "GET /v1/audits/{audit}/matrix",
    "GET /v1/audits/{audit}/changes",
    "GET /v1/audits/{audit}/findings",
    "DELETE /v1/audits/{audit}",
    "POST /v1/audits/{audit}/cancel",
    "POST /v1/audits/{audit}/judge",
}


@pytest.fixture
def document(plain_site):
    answer = plain_site.client.get("/openapi.json")
    assert answer.status_code == 200
    return answer.json


def operations(document):
    return {
        f"{method.upper()} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    }


def check(document, name, status, answer):
    """Hold one real answer against what the document says of that status."""
    told = operations(document)[name]["responses"][str(status)]
    if answer.mimetype not in told.get("content", {}):
        assert answer.data == b"", f"{name} {status}: {answer.mimetype} is not in the document"
        return
    schema = told["content"][answer.mimetype]["schema"]
    if answer.mimetype not in {"application/json", "application/problem+json"}:
        return
    validator({**schema, "components": document["components"]}).validate(answer.json)
    assert unsaid(document, schema, answer.json) == []


def unsaid(document, schema, value, place=""):
    """Return the fields of an answer that its schema does not name."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    for option in schema.get("anyOf", ()):
        if isinstance(value, dict | list) and option.get("type") != "null" and "enum" not in option:
            return unsaid(document, option, value, place)
    found = []
    if isinstance(value, dict) and "properties" in schema:
        found += [f"{place}/{name}" for name in value if name not in schema["properties"]]
        for name, inner in value.items():
            found += unsaid(document, schema["properties"].get(name, {}), inner, f"{place}/{name}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for inner in value[:3]:
            found += unsaid(document, schema["items"], inner, f"{place}/*")
    return found


def test_the_document_is_valid_openapi_3_1(document):
    from openapi_spec_validator import validate

    validate(document)
    assert document["openapi"].startswith("3.1")


def test_it_has_every_promised_operation_and_no_other(document):
    assert set(operations(document)) == PROMISED


def test_every_error_is_described_as_problem_json(document):
    for name, operation in operations(document).items():
        errors = {status: told for status, told in operation["responses"].items() if status >= "400"}
        assert {"401", "403", "500", "503"} <= set(errors), name
        for status, told in errors.items():
            if name != "GET /readyz" or status != "503":
                assert list(told["content"]) == ["application/problem+json"], (name, status)


def test_every_list_says_what_its_items_are(document):
    lists = {name: told for name, told in document["components"]["schemas"].items() if name.endswith("List")}
    assert len(lists) >= 20
    unsaid = [name for name, told in lists.items() if not {"$ref", "type"} & set(told["properties"]["items"]["items"])]
    assert unsaid == []


def test_the_body_is_required_and_closed(document):
    submit = operations(document)["POST /v1/runs"]
    assert submit["requestBody"]["required"] is True
    assert document["components"]["schemas"]["RunAsked"]["additionalProperties"] is False
    cancel = operations(document)["POST /v1/runs/{run}/cancel"]
    assert cancel["requestBody"]["required"] is False


def test_every_operation_has_its_own_name_and_words(document):
    found = operations(document)
    assert len({operation["operationId"] for operation in found.values()}) == len(found)
    for name, operation in found.items():
        assert operation["summary"], name
        for parameter in operation["parameters"]:
            assert "null" not in str(parameter["schema"]), (name, parameter)


def test_every_path_parameter_is_described(document):
    for name, operation in operations(document).items():
        wanted = set(re.findall(r"{(\w+)}", name))
        assert {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"} == wanted


BELOW = ("series", "steps", "moments", "nodes", "retention", "leaf-grads", "inplace-events", "modules", "optimizers")


def about_webhooks(site, ask):
    """A webhook, made, tried, changed and deleted."""
    from store.webhooks import deliveries
    from store.webhooks.deliveries import Try

    url = {"url": "https://hooks.example/in", "events": ["run.ended"]}
    ask("POST /v1/webhooks", "/v1/webhooks", "POST", json={**url, "url": "https://10.0.0.1/"})
    made = ask("POST /v1/webhooks", "/v1/webhooks", "POST", json=url)
    address, named = made.headers["Location"], "/v1/webhooks/{webhook}"
    for _ in range(2):
        ask("GET /v1/webhooks", "/v1/webhooks")
        ask(f"GET {named}", address)
    site.context.waiters.waiting = 1000  # no place to wait is free: the test call answers at once
    dlv = ask(f"POST {named}/test", f"{address}/test", "POST").json["id"]
    site.context.waiters.waiting = 0
    with site.context.database.begin() as transaction:
        (due,) = deliveries.claim(transaction)
        deliveries.settle(transaction, due, Try(address="8.8.8.8", ms=5, status=500, answer="no"))
    (told,) = ask(f"GET {named}/deliveries", f"{address}/deliveries").json["items"]
    assert (told["id"], told["state"], told["tries"][0]["answer"]) == (dlv, "dead", "no")
    ask("POST /v1/deliveries/{delivery}/redeliver", f"/v1/deliveries/{dlv}/redeliver", "POST")
    ask(f"POST {named}/rotate", f"{address}/rotate", "POST")
    for headers in ({}, {"If-Match": '"old"'}, {"If-Match": '"2"'}):
        ask(f"PATCH {named}", address, "PATCH", json={"enabled": False}, headers=headers)
    ask("POST /v1/deliveries/{delivery}/redeliver", f"/v1/deliveries/{dlv}/redeliver", "POST")
    for _ in range(2):
        ask(f"DELETE {named}", address, "DELETE")


def about_audits(site, ask):
    """A policy and an audit of it, begun, judged, judged again and canceled; a record out and in."""
    from store.audits import judging as audit_judging

    run = site.finished()
    record = ask("GET /v1/runs/{run}/record", f"/v1/runs/{run}/record")
    sent = {"data": record.data, "content_type": record.content_type}
    ask("POST /v1/records", "/v1/records", "POST", **sent)
    made = ask("POST /v1/policies", "/v1/policies", "POST", json={"name": "p", "fail": ["BP1"]})
    named = made.headers["Location"]
    ask("POST /v1/policies", "/v1/policies", "POST", json={"name": "q", "fail": ["BX"]})
    ask("GET /v1/policies", "/v1/policies")
    ask("GET /v1/policies/{policy}", named)
    for headers in ({}, {"If-Match": '"9"'}, {"If-Match": '"1"'}):
        ask("PUT /v1/policies/{policy}", named, "PUT", json={"name": "p"}, headers=headers)
    items = [{"custom_id": "a", "run": run}, {"custom_id": "b", "source": "x = ("}]
    asked = {"items": items, "policy": made.json["id"]}
    address = ask("POST /v1/audits", "/v1/audits", "POST", json=asked).headers["Location"]
    ask("POST /v1/audits", "/v1/audits", "POST", json={"items": []})
    for _ in range(2):
        for part in ("items", "matrix", "findings", "events", "changes"):
            ask(f"GET /v1/audits/{{audit}}/{part}", f"{address}/{part}")
        ask("GET /v1/audits/{audit}", address)
        audit_judging.settle(site.context.database)
    ask("GET /v1/audits/{audit}/matrix", f"{address}/matrix?format=csv")
    ask("GET /v1/audits", "/v1/audits")
    for days in ("", "?from=2020-01-01"):
        ask("GET /v1/audits/trend", f"/v1/audits/trend{days}")
    for verb in ("judge", "cancel"):
        ask(f"POST /v1/audits/{{audit}}/{verb}", f"{address}/{verb}", "POST")
    audit_judging.settle(site.context.database)
    open_ = ask("POST /v1/audits", "/v1/audits", "POST", json={"items": [{"custom_id": "a", "source": "x = 1\n"}]})
    for path in (open_.headers["Location"], address, address):
        ask("DELETE /v1/audits/{audit}", path, "DELETE")
    ask("POST /v1/audits/{audit}/cancel", f"{open_.headers['Location']}/cancel", "POST")


def about_recorders(ask, samples):
    """A run that a recorder makes, sends and ends; each twice, and once as it is refused."""
    from backprobe.client import new_run_id
    from backprobe.record import dumps, split

    run, media = f"/v1/runs/{new_run_id()}", "application/vnd.backprobe.record"
    for body in ({"labels": {"job": "a"}}, {"labels": {"job": "a"}}, {}, {"colour": "red"}):
        ask("PUT /v1/runs/{run}", run, "PUT", json=body)
    ask("PUT /v1/runs/{run}", "/v1/runs/run_00000000000000000000000000", "PUT", json={})
    header = next(iter(split(dumps(samples.tutorial()))))
    for data in (header, header, b"", header[:-1] + b"x"):
        ask("PUT /v1/runs/{run}/frames/{n}", f"{run}/frames/0", "PUT", data=data, content_type=media)
    ask("PUT /v1/runs/{run}/frames/{n}", f"{run}/frames/7", "PUT", data=header, content_type=media)
    ask("GET /v1/runs/{run}", run)
    for body in ({"frames": 9}, {"status": "failed", "exit_code": 1}, {}):
        ask("POST /v1/runs/{run}/end", f"{run}/end", "POST", json=body)
    rank = f"/v1/runs/{new_run_id()}"
    ask("PUT /v1/runs/{run}", rank, "PUT", json={"labels": {"group": "a", "rank": "0", "world_size": "2"}})
    ask("GET /v1/runs/{run}/ranks", f"{rank}/ranks")


def test_real_answers_are_what_the_document_says(site, document, samples):
    client, seen = site.client, set()

    def ask(name, path, method="GET", **more):
        answer = client.open(path, method=method, **more)
        check(document, name, answer.status_code, answer)
        seen.add((name, answer.status_code))
        return answer

    about_webhooks(site, ask)
    about_audits(site, ask)
    about_recorders(ask, samples)
    for text in ("x = (", "x = 1\n", "x = 1\n"):
        sent = {"files": [{"path": "a/b.py", "text": text}]}
        kept = ask("POST /v1/snippets", "/v1/snippets", "POST", json=sent)
    address = kept.headers["Location"]
    ask("GET /v1/snippets/{snippet}", address)
    for path in ("a/b.py", "c.py"):
        ask("GET /v1/snippets/{snippet}/files/{path}", f"{address}/files/{path}")
    ask("POST /v1/runs", "/v1/runs", "POST", json={"source": "x = ("})
    queued = ask("POST /v1/runs", "/v1/runs", "POST", json={"source": "x = 1\n"}).json["id"]
    ask("POST /v1/runs/{run}/cancel", f"/v1/runs/{queued}/cancel", "POST")
    for record in (
        samples.tutorial(),
        samples.tutorial(nan=True),
        samples.tutorial(samples.Words(name=samples.HOSTILE)),
    ):
        run = site.finished(record)
        ask("GET /v1/runs/{run}", f"/v1/runs/{run}?include=findings,tensors")
        for part in (
            *BELOW,
            "tensors",
            "snapshots",
            "backward-calls",
            "graph",
            "findings",
            "source",
            "output",
            "events",
        ):
            ask(f"GET /v1/runs/{{run}}/{part}", f"/v1/runs/{run}/{part}")
        ask("POST /v1/runs/{run}/judge", f"/v1/runs/{run}/judge", "POST")
        for table in ("sites", "hooks", "steps", "small_values", "colours"):
            ask("GET /v1/runs/{run}/rows/{table}", f"/v1/runs/{run}/rows/{table}")
        for number in (0, 1, 3, 77):
            for what in ("nodes/{node}", "backward-calls/{call}", "tensors/{no}/series"):
                path = f"/v1/runs/{run}/" + re.sub("{.*}", str(number), what)
                ask(f"GET /v1/runs/{{run}}/{what}", path)
        ask("GET /v1/runs/{run}/tensors/{no}/series", f"/v1/runs/{run}/tensors/1/series?columns=grad_nan,grad_min")
        ask("GET /v1/runs/{run}/series", f"/v1/runs/{run}/series?points=0")
        for number in range(5):
            ask("GET /v1/runs/{run}/tensors/{no}", f"/v1/runs/{run}/tensors/{number}")
            ask("GET /v1/runs/{run}/tensors/{no}/snapshots", f"/v1/runs/{run}/tensors/{number}/snapshots")
        ask("GET /v1/runs/{run}/gradient-checks", f"/v1/runs/{run}/gradient-checks")
        ask("GET /v1/runs/{run}/checks", f"/v1/runs/{run}/checks")
        ask("GET /v1/runs/{run}/graph", f"/v1/runs/{run}/graph?format=svg")
        etag = client.get(f"/v1/runs/{run}").headers["ETag"]
        ask("GET /v1/runs/{run}", f"/v1/runs/{run}", headers={"If-None-Match": etag})
        for found in client.get(f"/v1/runs/{run}/findings").json["items"]:
            ask("GET /v1/findings/{finding}", f"/v1/findings/{found['id']}")
            ask("GET /v1/findings/{finding}", f"/v1/findings/{found['id']}?include=trials")
            ask("POST /v1/findings/{finding}/trials", f"/v1/findings/{found['id']}/trials", "POST")
            ask("GET /v1/findings/{finding}/trials", f"/v1/findings/{found['id']}/trials")
    mended = site.finished(samples.tutorial(), judgement=samples.judged_with_fix(samples.tutorial()))
    (found,) = client.get(f"/v1/runs/{mended}/findings").json["items"]
    trial = ask("POST /v1/findings/{finding}/trials", f"/v1/findings/{found['id']}/trials", "POST").json["id"]
    ask("POST /v1/runs/{run}/cancel", f"/v1/runs/{trial}/cancel", "POST")
    ask("GET /v1/findings/{finding}/trials", f"/v1/findings/{found['id']}/trials")
    ask("GET /v1/findings/{finding}", "/v1/findings/f_01JD8PZ4T8W2K5C7Q9R3M6X1BA")
    ask("GET /v1/rules", "/v1/rules?limit=5")
    ask("GET /v1/rules/{name}", "/v1/rules/non-leaf-grad-read")
    ask("GET /v1/rules/{name}", "/v1/rules/none-such")
    ask("GET /v1/compare", f"/v1/compare?a={run}&b={site.finished(samples.tutorial(nan=True))}")
    ask("GET /v1/compare", f"/v1/compare?a={run}")
    ask("GET /v1/runs/{run}/ranks", f"/v1/runs/{run}/ranks")
    key = ask("POST /v1/keys", "/v1/keys", "POST", json={"name": "ci", "scopes": ["read"]}).json["id"]
    for path in ("/v1/keys", "/v1/me", "/v1/audit-log"):
        ask(f"GET {path}", path)
    for _ in range(2):
        ask("DELETE /v1/keys/{key}", f"/v1/keys/{key}", "DELETE")
    ask("GET /v1/runs", "/v1/runs?limit=2")
    ask("GET /v1/runs", "/v1/runs?colour=red")
    ask("GET /v1/runs/{run}/tensors/{no}", f"/v1/runs/{run}/tensors/77")
    group = ask("GET /v1/finding-groups", "/v1/finding-groups").json["items"][0]["id"]
    ask("GET /v1/finding-groups/{group}", f"/v1/finding-groups/{group}")
    ask("GET /v1/findings", "/v1/findings")
    for headers in ({"If-Match": "*"}, {}):
        path = f"/v1/finding-groups/{group}"
        ask("PATCH /v1/finding-groups/{group}", path, "PATCH", json={"state": "fixed"}, headers=headers)
    etag = {"If-Match": client.get(f"/v1/runs/{run}").headers["ETag"]}
    for headers in (etag, {}, {"If-Match": '"old"'}):
        ask("PATCH /v1/runs/{run}", f"/v1/runs/{run}", "PATCH", json={"pinned": True}, headers=headers)
    waiting = ask("POST /v1/runs/{run}/rerun", f"/v1/runs/{run}/rerun", "POST").json["id"]
    for doomed in (waiting, run):
        ask("DELETE /v1/runs/{run}", f"/v1/runs/{doomed}", "DELETE")
    ask("GET /v1", "/v1")
    ask("GET /healthz", "/healthz")
    ask("GET /readyz", "/readyz")
    ask("GET /metrics", "/metrics")
    name = f"project of {run}"
    made = ask("POST /v1/projects", "/v1/projects", "POST", json={"name": name, "settings": {"ignore": ["BP3"]}})
    for headers in ({"If-Match": made.headers["ETag"]}, {}, {"If-Match": '"old"'}):
        at = f"/v1/projects/{made.json['id']}"
        ask("PATCH /v1/projects/{project}", at, "PATCH", json={"archived": True}, headers=headers)
    ask("GET /v1/projects/{project}", at)
    for project in (at, "/v1/projects/default"):
        for days in ("", "?from=2020-01-01"):
            ask("GET /v1/projects/{project}/trends", f"{project}/trends{days}")
    for path in ("/v1/projects", "/v1/workers", "/v1/queue", "/v1/usage", "/v1/usage?from=2020-01-01"):
        ask(f"GET {path.partition('?')[0]}", path)
    assert {name for name, _status in seen} == PROMISED


def test_the_control_a_wrong_answer_is_noticed(document):
    schema = {"$ref": "#/components/schemas/Health", "components": document["components"]}
    assert list(validator(schema).iter_errors({"status": "fine"}))
    assert unsaid(document, schema, {"status": "ok", "more": 1}) == ["/more"]


def test_a_parameter_is_described_with_its_bounds_its_words_and_whether_it_is_needed(document):
    def parameters(name):
        return {operation["name"]: operation for operation in operations(document)[name]["parameters"]}

    limit = parameters("GET /v1/runs")["limit"]
    assert (limit["schema"]["minimum"], limit["schema"]["maximum"], limit["required"]) == (1, 1000, False)
    include = parameters("GET /v1/runs/{run}")["include"]
    assert include["schema"]["items"]["enum"] == ["findings", "tensors", "source"]
    assert parameters("GET /v1/runs")["created.gt"]["schema"]["format"] == "date-time"
    assert parameters("GET /v1/compare")["a"]["required"] is True
