"""Within v1 only additions: today's document against the released one, and each kind of break seen on a changed copy."""

from __future__ import annotations

import argparse
import copy
import datetime
import functools
import json

import pytest
from flask import Response

from docs.compatibility import RELEASED, TODAY, broken, untold
from service.commands import keys as key_commands
from service.openapi import deprecation
from store.access import deprecated_uses as deprecated


@pytest.fixture(scope="module")
def today():
    return untold(json.loads(TODAY.read_text()))


def changed(document, path, value=None):
    """A copy with a value at that path; None: without what is there."""
    made = copy.deepcopy(document)
    *way, last = path
    place = made
    for step in way:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return made


def test_nothing_that_a_client_of_the_released_document_counts_on_is_gone(today):
    assert broken(json.loads(RELEASED.read_text()), today) == []


SCHEMAS = ("components", "schemas")
RUN = (*SCHEMAS, "RunAsked", "properties")
GET_RUNS = ("paths", "/v1/runs", "get")
BREAKS = [
    (("paths", "/v1/usage"), None, "GET /v1/usage: is gone"),
    (("paths", "/v1/runs", "post"), None, "POST /v1/runs: is gone"),
    ((*GET_RUNS, "operationId"), "runs", "GET /v1/runs: operationId list_runs is now runs"),
    ((*GET_RUNS, "responses", "200"), None, "GET /v1/runs: does not answer 200"),
    ((*GET_RUNS, "responses", "200", "headers", "Link"), None, "GET /v1/runs 200: the header Link is gone"),
    ((*GET_RUNS, "parameters"), [], "GET /v1/runs cursor: the parameter is gone"),
    ((*SCHEMAS, "RunTold", "properties", "labels"), None, "GET /v1/runs/{run} 200/labels: is gone"),
    ((*SCHEMAS, "RunTold", "properties", "version"), {"type": "string"}, "GET /v1/runs/{run} 200/version: type ['string'] and ['integer']"),
    ((*SCHEMAS, "RunTold", "properties", "version"), {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "GET /v1/runs/{run} 200/version: type ['null'] and ['integer']"),
    ((*RUN, "seed"), None, "POST /v1/runs body/seed: is not taken"),
    ((*RUN, "priority", "maximum"), 5, "POST /v1/runs body/priority: maximum 9 and 5"),
    ((*RUN, "device", "enum"), ["cpu"], "POST /v1/runs body/device: also cuda"),
    ((*RUN, "device"), {"const": "cpu"}, "POST /v1/runs body/device: also cuda"),
    ((*RUN, "isolation", "enum"), ["none", "process"], "POST /v1/runs body/isolation: also gvisor, namespace"),
    ((*RUN, "labels", "propertyNames"), {"pattern": "^a$"}, "POST /v1/runs body/labels/{names}: pattern ^[A-Za-z0-9_.-]{1,64}$ and ^a$"),
    ((*RUN, "arguments", "items", "maxLength"), 10, "POST /v1/runs body/arguments/*: maxLength 4096 and 10"),
    ((*SCHEMAS, "RunAsked", "required"), ["source"], "POST /v1/runs body/source: is needed, and may be absent"),
    (("paths", "/v1/runs/{run}/cancel", "post", "requestBody", "required"), True, "POST /v1/runs/{run}/cancel: a body is needed now"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "said"), BREAKS, ids=[said for _path, _value, said in BREAKS])
def test_a_break_is_told(today, path, value, said):
    assert said in broken(today, changed(today, path, value))


def test_a_changed_default_and_a_newly_needed_parameter_are_told(today):
    made = copy.deepcopy(today)
    (limit,) = [
        parameter for parameter in made["paths"]["/v1/runs"]["get"]["parameters"] if parameter["name"] == "limit"
    ]
    limit["schema"]["default"], limit["required"] = 50, True
    assert "GET /v1/runs limit: the parameter is needed now" in broken(today, made)
    limit["required"] = False
    assert broken(today, made) == ["GET /v1/runs limit: its default was 100, and is 50"]


ADDITIONS = [
    (("paths", "/v1/more"), {"get": {"operationId": "more", "responses": {}}}),
    ((*RUN, "colour"), {"type": "string"}),
    ((*RUN, "priority", "maximum"), 12),
    ((*RUN, "isolation", "enum"), ["none", "process", "namespace", "gvisor", "vm"]),
    ((*SCHEMAS, "RunTold", "properties", "colour"), {"type": "string"}),
    ((*GET_RUNS, "responses", "418"), {"description": ""}),
]


@pytest.mark.parametrize(("path", "value"), ADDITIONS, ids=[path[-1] for path, _value in ADDITIONS])
def test_an_addition_is_none(today, path, value):
    assert broken(today, changed(today, path, value)) == []


def test_a_word_more_of_a_closed_list_is_told_and_of_an_open_one_is_not(today):
    schemas = {"Kinds": {"properties": {"status": {"enum": ["a"]}, "kind": {"enum": ["a"]}}}}
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Kinds"}}}}
    was = {
        "paths": {"/v1/x": {"get": {"operationId": "x", "responses": {"200": answer}}}},
        "components": {"schemas": schemas},
    }
    more = {"enum": ["a", "b"]}
    way = (*SCHEMAS, "Kinds", "properties")
    assert broken(was, changed(was, (*way, "kind"), more)) == []
    assert broken(was, changed(was, (*way, "status"), more)) == ["GET /v1/x 200/status: also b"]


def test_the_texts_of_a_document_may_change(today):
    document = json.loads(TODAY.read_text())
    document["paths"]["/v1/runs"]["get"]["summary"] = "All of them."
    assert untold(document) == today
    assert "title" in today["components"]["schemas"]["ProblemTold"]["properties"]  # a field that is called so is none


DAYS = {"since": datetime.date(2026, 12, 1), "sunset": datetime.date(2027, 7, 1), "instead": "/v1/queue"}


def test_a_deprecated_operation_says_so_in_each_answer_and_in_the_document(make):
    site = make()
    view = site.app.view_functions["operation.list_workers"]
    mine = functools.wraps(view)(functools.partial(view))  # the view itself is other tests' too
    site.app.view_functions["operation.list_workers"] = deprecation.mark_deprecated(**DAYS)(mine)
    for path, status in (("/v1/workers", 200), ("/v1/workers?colour=red", 422)):
        answer = site.client.get(path)
        assert answer.status_code == status
        assert answer.headers["Deprecation"] == "@1796083200"
        assert answer.headers["Sunset"] == "Thu, 01 Jul 2027 00:00:00 GMT"
        assert '</v1/queue>; rel="successor-version"' in answer.headers.getlist("Link")
    assert "Deprecation" not in site.client.get("/v1/queue").headers
    told = site.client.get("/openapi.json").json["paths"]["/v1/workers"]["get"]
    assert told["deprecated"] is True
    assert told["description"].endswith("Deprecated since 2026-12-01; gone from 2027-07-01 on. Use /v1/queue.")
    assert {"Deprecation", "Sunset", "Link"} <= set(told["responses"]["200"]["headers"])


def test_who_still_uses_what_will_go_is_counted_by_key_and_told_to_the_operator(site, capsys, monkeypatch):

    view = site.app.view_functions["operation.list_workers"]
    mine = functools.wraps(view)(functools.partial(view))
    monkeypatch.setitem(site.app.view_functions, "operation.list_workers", deprecation.mark_deprecated(**DAYS)(mine))
    asked = {"name": "ci", "scopes": ["read"]}
    keys = [site.client.post("/v1/keys", json=asked).json for _ in range(2)]
    for key, times in zip(keys, (3, 1), strict=True):
        for _ in range(times):
            site.client.get("/v1/workers", headers={"Authorization": f"Bearer {key['secret']}"})
            site.client.get("/v1/queue", headers={"Authorization": f"Bearer {key['secret']}"})
    site.client.get("/v1/workers?colour=red", headers={"Authorization": f"Bearer {keys[1]['secret']}"})
    assert site.client.get("/v1/workers", headers={"Authorization": "Bearer bp_none"}).status_code == 401
    with site.context.database.read() as transaction:
        found = {use.actor: use for use in deprecated.uses(transaction)}
    assert {actor: (use.operation, use.times) for actor, use in found.items()} == {
        f"key:{keys[0]['prefix']}": ("GET /v1/workers", 3),
        f"key:{keys[1]['prefix']}": ("GET /v1/workers", 2),
    }
    assert all(use.first_at <= use.last_at for use in found.values())
    monkeypatch.setenv("BACKPROBE_DATABASE_URL", site.context.settings.store.database_url)
    parser = argparse.ArgumentParser()
    key_commands.key(parser.add_subparsers())
    told = parser.parse_args(["key", "--home", str(site.context.settings.store.home), "deprecated"])
    assert told.run(told) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"default  key:{keys[0]['prefix']}  GET /v1/workers  3 times, last " in "\n".join(lines)
    assert len(lines) == 2


def test_nothing_goes_within_six_months_of_being_announced():
    with pytest.raises(ValueError, match="182 days"):
        deprecation.Deprecated(**{**DAYS, "sunset": datetime.date(2027, 5, 1)})


def test_a_link_to_the_next_page_stays_beside_the_one_to_the_successor(make):
    site = make()
    with site.app.test_request_context("/v1/workers"):
        site.app.view_functions["operation.list_workers"] = deprecation.mark_deprecated(**DAYS)(lambda: None)
        response = Response(headers={"Link": '</v1/workers?cursor=x>; rel="next"'})
        deprecation.tell(response)
    assert len(response.headers.getlist("Link")) == 2
