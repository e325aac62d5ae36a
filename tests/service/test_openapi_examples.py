"""Bodies that the document shows are taken as they stand; its links lead where they say; its schemas refuse what we do."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.program_checks import path_fault
from service.schemas.requests import Path, Short
from service.web.printable_text import is_printable
from store.database.ids import new_id
from tests.support.json_schema import validator


@pytest.fixture(scope="module")
def document(plain_site):
    return plain_site.client.get("/openapi.json").json


@pytest.fixture(scope="module")
def run(plain_site, samples):
    return plain_site.finished(samples.tutorial(), judgement=samples.judged_with_fix(samples.tutorial()))


def operations(document):
    return [(path, method, operation) for path, item in document["paths"].items() for method, operation in item.items()]


def examples(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return [example["value"] for example in content.get("examples", {}).values()]


def test_every_shown_body_of_lines_is_taken_as_it_stands(plain_site, run, document):
    sent = 0  # `run` was finished before: these stay queued
    for path, method, operation in operations(document):
        shown = operation.get("requestBody", {}).get("content", {}).get("application/x-ndjson", {}).get("examples", {})
        for example in shown.values():
            headers = {"Content-Type": "application/x-ndjson"}
            answer = plain_site.client.open(path, method=method.upper(), data=example["value"], headers=headers)
            assert answer.status_code == 202, (path, answer.text)
            items = plain_site.client.get(answer.json["links"]["items"]).json["items"]
            assert [item["problem"] for item in items] == [None] * (example["value"].count("\n") - 1)
            sent += 1
    assert sent


def valid(document, model, value):
    schema = {"$ref": f"#/components/schemas/{model}", "components": document["components"]}
    return validator(schema).is_valid(value)


def leads(operation, answer):
    """Path parameters that an answer gives by the document's links: name and value."""
    found = {}
    for link in operation["responses"][str(answer.status_code)].get("links", {}).values():
        for name, place in link["parameters"].items():
            value = answer.json
            for part in place.partition("#/")[2].split("/") if place.startswith("$response.body#/") else ():
                value = value[int(part)] if isinstance(value, list) else value[part]
                found[name] = value
    return {name: str(value) for name, value in found.items() if not isinstance(value, dict | list)}


def test_every_shown_body_is_taken_as_it_stands(plain_site, run, document):
    known, watched = {"run": run}, new_id("run")
    shown = [(path, method, operation) for path, method, operation in operations(document) if examples(operation)]
    groups = plain_site.client.get("/v1/finding-groups")
    known |= leads(document["paths"]["/v1/finding-groups"]["get"], groups)
    known["finding"] = plain_site.client.get(f"/v1/runs/{run}/findings").json["items"][0]["id"]
    for path, method, operation in sorted(shown, key=lambda entry: entry[0].count("{")):
        of_a_recorder = operation["operationId"] in {"begin_run", "end_run"}
        at = path.format_map(known | {"run": watched} if of_a_recorder else known)
        for body in examples(operation):
            model = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
            assert valid(document, model, body), (path, body)
            headers = {"If-Match": "*"} if method in {"patch", "put"} else {}
            answer = plain_site.client.open(at, method=method.upper(), json=body, headers=headers)
            assert answer.status_code in {200, 201, 202}, (path, answer.text)
            if "{" not in path:
                known |= {name: value for name, value in leads(operation, answer).items() if name not in known}


def test_every_link_leads_to_an_operation_and_gives_what_its_path_needs(document):
    by_name = {operation["operationId"]: operation for _path, _method, operation in operations(document)}
    seen = 0
    for path, _method, operation in operations(document):
        for status, response in operation["responses"].items():
            for link in response.get("links", {}).values():
                seen += 1
                target = by_name[link["operationId"]]
                wanted = {parameter["name"] for parameter in target["parameters"] if parameter["in"] == "path"}
                assert set(link["parameters"]) == wanted, (path, status, link)
                for place in link["parameters"].values():
                    assert place.startswith("$response.body#/") or place.removeprefix("$request.path.") in path
    assert seen > 40


def test_a_link_from_a_list_names_a_field_of_its_items(plain_site, run, document):
    for path, method, operation in operations(document):
        if method == "get" and operation["responses"].get("200", {}).get("links"):
            answer = plain_site.client.get(path.replace("{run}", run))
            if answer.json["items"]:
                assert leads(operation, answer), path


def test_labels_with_other_names_are_refused_by_the_document_as_by_the_service(plain_site, document):
    for labels, taken in (({"pr": "12"}, True), ({"no blanks": "12"}, False), ({"pr": 12}, False)):
        body = {"source": "x = 1\n", "labels": labels}
        assert valid(document, "RunAsked", body) == taken
        assert (plain_site.post(body).status_code == 202) == taken


ONE, TWO = {"path": "a.py", "text": "x = 1\n"}, {"path": "b.py", "text": "y = 2\n"}
BODIES = [
    ({"source": "x = 1\n"}, True),
    ({"source": "x = 1\n", "files": None, "snippet": None}, True),
    ({"files": [ONE]}, True),
    ({"files": [ONE, TWO], "entry": "a.py"}, True),
    ({}, False),
    ({"source": None}, False),
    ({"source": ""}, False),
    ({"source": "x = 1\n", "files": [ONE]}, False),
    ({"files": [ONE, TWO]}, False),
    ({"files": [{**ONE, "text": ""}]}, False),
    ({"files": [{**ONE, "path": "../a.py"}]}, False),
    ({"source": "x = 1\n", "device": "tpu"}, False),
    ({"source": "x = 1\n", "device_class": "two\nlines"}, False),
    ({"source": "x = 1\n", "colour": "red"}, False),
]


@pytest.mark.parametrize(("body", "taken"), BODIES, ids=[str(body)[:60] for body, _ in BODIES])
def test_what_a_run_needs_is_said_by_the_document_as_by_the_service(plain_site, document, body, taken):
    assert valid(document, "RunAsked", body) == taken
    assert (plain_site.post(body).status_code == 202) == taken
    item = {**body, "custom_id": "one"}
    assert valid(document, "ItemAsked", item) == taken


def test_each_change_that_is_refused_without_its_etag_is_documented_so(document):
    needed = {
        operation["operationId"]: any(
            parameter["name"] == "If-Match" and parameter.get("required") for parameter in operation["parameters"]
        )
        for _path, _method, operation in operations(document)
    }
    asks = {op["operationId"] for _path, _method, op in operations(document) if "428" in op["responses"]}
    assert {name for name, is_needed in needed.items() if is_needed} == asks
    assert len(asks) == 5


WORDS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("./: \\\t\u00a0\u200b\u202eab"), max_size=12)


@given(WORDS)
@settings(derandomize=True, database=None, deadline=None, max_examples=500)
def test_the_patterns_of_the_document_take_what_the_service_takes(text):
    """But for format characters beyond the first plane, which no pattern of JSON Schema names."""
    short, path = (TypeAdapter(kind).json_schema()["pattern"] for kind in (Short, Path))
    if not any(ord(character) > 0xFFFF and unicodedata.category(character) == "Cf" for character in text):
        assert bool(re.search(short, text)) == is_printable(text) or text.endswith("\n")
        assert bool(re.search(path, text)) == (path_fault(text) is None) or text.endswith("\n")


def test_a_number_of_a_body_is_a_number_where_an_answer_may_say_nan(document):
    asked = json.dumps(document["components"]["schemas"]["RulesAsked"])
    assert "NaN" not in asked
    assert "NaN" in json.dumps(document["components"]["schemas"]["Series"])


def test_an_empty_list_in_a_parameter_is_refused_by_both(plain_site, document):
    (include,) = [
        parameter for parameter in document["paths"]["/v1/runs"]["post"]["parameters"] if parameter["name"] == "include"
    ]
    assert include["schema"]["minItems"] == 1
    assert plain_site.client.get("/v1/runs/run_01JD8PZ4T8W2K5C7Q9R3M6X1BA?include=").status_code == 422


def test_a_time_of_a_body_is_described_as_one(document):
    expires = document["components"]["schemas"]["KeyAsked"]["properties"]["expires_at"]
    assert {"type": "string", "format": "date-time"} in expires["anyOf"]
