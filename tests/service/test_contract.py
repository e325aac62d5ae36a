"""The OpenAPI document against the service, by schemathesis: data as described, data that is not, chains of requests.

`make contract` runs the same with 200 examples and more for each operation, on both databases, and prints what it sent.
Every run of the tests takes a few, the same ones each time.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import sqlite3
from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    ensure_resource_availability,
    negative_data_rejection,
    positive_data_acceptance,
)

from backprobe.client import new_run_id
from tests.support.json_schema import validator

LONG = int(os.environ.get("BACKPROBE_CONTRACT_EXAMPLES") or 0)
"""Examples of each operation, as described and again as not; 0: a few, and the same ones each time."""

DOCUMENT = json.loads(Path(__file__).parents[2].joinpath("docs/reference/openapi.json").read_text())
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, item in DOCUMENT["paths"].items()
    for method in sorted(item, key=lambda method: (method == "delete", method))
]
CONFIG = """
seed = 7
[generation]
allow-x00 = false  # no text may hold a NUL: to say so at each would hide the patterns that tell more
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 304, 308, 404, 409, "5xx"]  # and what `BEYOND` names
missing_required_header.expected-statuses = [428]
negative_data_rejection.expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 415, 422, 428, 429, "5xx"]
"""
BEYOND = [
    ("PATCH *", "stale", "stale", "an ETag is the thing's own"),
    ("PUT *", "stale", "stale", "an ETag is the thing's own"),
    ("GET *", "not-acceptable", "not-acceptable", "media types are negotiated"),
    ("GET *", "bad-cursor", "bad-cursor", "the service signs cursors"),
    ("POST *", "idempotency-mismatch", "*", "a key is that of its first request"),
    ("* /v1/projects*", "invalid-request", "bad-option", "rules and thresholds go by their names"),
    ("POST /v1/audits", "invalid-request", "bad-option", "rules and thresholds go by their names"),
    ("POST /v1/runs", "invalid-request", "bad-option", "rules and thresholds go by their names"),
    ("POST /v1/runs/{run}/rerun", "invalid-request", "bad-option", "rules and thresholds go by their names"),
    ("* /v1/policies*", "unknown-rule", "unknown-rule", "rules go by their names"),
    ("* /v1/policies*", "invalid-request", "name-taken", "names differ"),
    ("* /v1/projects*", "invalid-request", "name-taken", "names differ"),
    ("POST /v1/runs", "syntax-error", "syntax-error", "a program is Python"),
    ("POST /v1/runs", "no-entry-point", "no-entry-point", "`entry` is one of `files`"),
    ("POST /v1/runs", "invalid-request", "doubled-path", "paths differ"),
    ("POST /v1/runs", "invalid-request", "empty-source", "blanks are no program"),
    ("POST /v1/runs", "invalid-request", "not-its-queue", "`queue` is that of `device`"),
    ("POST /v1/runs", "invalid-request", "value-error", "`entry` is not taken with each kind of program"),
    ("POST /v1/runs", "unknown-device", "unknown-device", "what workers offer"),
    ("POST /v1/runs/{run}/rerun", "unknown-device", "unknown-device", "what workers offer"),
    ("POST /v1/snippets", "syntax-error", "syntax-error", "a program is Python"),
    ("POST /v1/snippets", "no-entry-point", "no-entry-point", "`entry` is one of `files`, and needed with several"),
    ("POST /v1/snippets", "invalid-request", "doubled-path", "paths differ"),
    ("POST /v1/snippets", "invalid-request", "empty-source", "blanks are no program"),
    ("POST /v1/audits", "invalid-request", "value-error", "names in an audit differ; `entry` as above"),
    ("POST /v1/audits", "malformed-request", "", "its lines are text to the document"),
    ("POST /v1/runs/{run}/judge", "record-expired", "", "a record goes with its time"),
    ("POST /v1/records", "bad-record", "*", "the document does not describe the format of a record"),
    ("PUT /v1/runs/{run}/frames/{n}", "bad-record", "*", "a frame is part of a record"),
    ("PUT /v1/runs/{run}", "id-time-refused", "id-time-refused", "an id tells a time, which is about now"),
    ("POST /v1/keys", "invalid-request", "in-the-past", "a key ends after the request"),
    ("PATCH /v1/runs/{run}", "invalid-request", "out-of-range", "ten years ahead of now"),
    ("GET /v1/runs/{run}/record", "no-such-range", "", "a range is of the file that is there"),
    ("GET /v1/runs/{run}/*", "invalid-request", "steps", "the first is not above the last"),
    ("GET /v1/runs/{run}/source", "invalid-request", "empty-range", "the first is not above the last"),
    ("GET /v1/runs/{run}/source", "too-much-asked", "too-much-asked", "so many lines, from the first to the last"),
    ("GET /v1/runs/{run}/series", "invalid-request", "not-with-format", "`points` goes with one format"),
    ("GET /v1/runs/{run}/steps", "invalid-request", "not-with-format", "`points` goes with one format"),
    ("GET /v1/runs/{run}/tensors", "invalid-request", "not-with-at", "`why` does not go with `at`"),
    ("POST /v1/findings/{finding}/trials", "invalid-request", "*", "a fix is one of the fixes of the finding"),
    ("GET /v1/audits/trend", "too-much-asked", "too-much-asked", "so many days, from the first to the last"),
    ("GET /v1/usage", "too-much-asked", "too-much-asked", "so many days, from the first to the last"),
    ("GET /v1/audits/{audit}/matrix", "invalid-request", "unknown-ruleset", "one that has judged it"),
    ("GET /v1/audits/{audit}/matrix", "invalid-request", "not-with-ruleset", "`level` does not go with `ruleset`"),
    ("* /v1/webhooks*", "address-refused", "address-refused", "networks and ports, and how addresses are written"),
]  # fmt: skip
"""What a schema cannot tell, so that data made by the document may be refused for it: operations, the problem's code, the code
of its first place, and why. Whatever else is refused fails schemathesis's check of valid data, which is on for every
operation and in chains. Things that are not there, or not in that state (404, 409), are no fault of the data."""


def find_reason(label, problem):
    """Return why the service may refuse a request that the document allows; None if it may not."""
    place = problem["errors"][0]["code"] if problem["errors"] else ""
    for operations, code, of_place, why in BEYOND:
        if fnmatchcase(label, operations) and code == problem["code"] and of_place in {place, "*"}:
            return why
    return None


@schemathesis.serializer("application/vnd.backprobe.record")
def _record_body(_context, value):
    """A body of bytes, made of whatever text was drawn."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


LINES = "application/x-ndjson"
KEYS = (f"key-{number}" for number in itertools.count())


@schemathesis.serializer(LINES)
def _lines(_context, value):
    """Lines of text, made of whatever was drawn."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def as_lines(body):
    """Text that says the same as a body that the document shows as JSON."""
    head = {name: given for name, given in body.items() if name != "items"}
    return "\n".join(json.dumps(line) for line in (head, *body.get("items", ())))


TOLD: defaultdict[str, Counter[int]] = defaultdict(Counter)
STACKS = os.environ.get("BACKPROBE_CONTRACT_STACKS", "sqlite,postgresql" if LONG else "sqlite").split(",")


def operation_of(label):
    method, _, path = label.partition(" ")
    return DOCUMENT["paths"][path][method.lower()]


def bodies(label):
    content = operation_of(label).get("requestBody", {}).get("content", {}).get("application/json", {})
    return [example["value"] for example in content.get("examples", {}).values()]


def in_clear(answering):
    """The application for a client that takes no gzip: schemathesis asks for it, and does not undo it."""

    def answer_uncompressed(environ, start_response):
        environ.pop("HTTP_ACCEPT_ENCODING", None)
        return answering(environ, start_response)

    return answer_uncompressed


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.full) if name == "postgresql" else name for name in STACKS],
)
def service(request, module_make, samples):
    """An application with something of each kind in it, its schema, and the ids of what is in it by path parameter."""
    from service.settings import RateLimits

    url = request.getfixturevalue("module_postgres_url") if request.param == "postgresql" else None
    site = module_make(url, rates=RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0))
    site.context.waiters.waiting = 1000  # nobody works here: who would wait is answered at once
    hostile = samples.Words(name=samples.HOSTILE)
    known = {name: ["0", "1", "2", "3"] for name in ("no", "node", "call")}
    known["run"] = [site.finished(record) for record in (samples.tutorial(), samples.tutorial(hostile, nan=True))]
    known["run"].append(new_run_id())  # a recorder's, of which nothing has come
    assert site.client.put(f"/v1/runs/{known['run'][-1]}", json={}).status_code == 201
    known["path"], known["name"] = ["train.py", "snippet.py"], ["BP101", "non-leaf-grad-read"]
    for label in OPERATIONS:
        if label.startswith("POST") and "{" not in label and bodies(label):
            answer = site.client.post(label.partition(" ")[2], json=bodies(label)[0])
            assert answer.status_code in {200, 201, 202}, (label, answer.text)
            for link in operation_of(label)["responses"][str(answer.status_code)].get("links", {}).values():
                (name,) = link["parameters"]
                known.setdefault(name, []).append(answer.json["id"])
    for label in OPERATIONS:
        if label.startswith("GET") and "{" not in label:
            for link in operation_of(label)["responses"]["200"].get("links", {}).values():
                (name,) = link["parameters"]
                items = site.client.get(label.partition(" ")[2]).json["items"]
                known.setdefault(name, []).extend(item["id"] for item in items if "id" in item)
    known = {name: list(dict.fromkeys(values)) for name, values in known.items()}
    site.app.wsgi_app = in_clear(site.app.wsgi_app)
    schema = schemathesis.openapi.from_wsgi("/openapi.json", site.app, config=schemathesis.Config.from_str(CONFIG))
    yield site, schema, known
    if LONG:
        print(f"\n{request.param}\n{table()}")
        TOLD.clear()


def table():
    rows = [f"{label:58} {sum(seen.values()):6}  {dict(sorted(seen.items()))}" for label, seen in TOLD.items()]
    total = sum((seen for seen in TOLD.values()), Counter())
    return "\n".join([*rows, f"{'all':58} {total.total():6}  {dict(sorted(total.items()))}"])


def renew_parameters(case, modes):
    """Remove the cursor, which only the service can sign, and set a new idempotency key."""
    if modes.get(ParameterLocation.QUERY) is GenerationMode.POSITIVE and "cursor" in (case.query or {}):
        case.query = {name: value for name, value in case.query.items() if name != "cursor"}
    if modes.get(ParameterLocation.HEADER) is GenerationMode.POSITIVE and "Idempotency-Key" in (case.headers or {}):
        case.headers = {**case.headers, "Idempotency-Key": next(KEYS)}


def real(case, known, choice):
    """The case with ids of things that exist, and with bodies that mean something, in three of four cases."""
    modes = {where: info.mode for where, info in case.meta.components.items()}
    renew_parameters(case, modes)
    if choice % 4 == 0:
        return case
    pick = choice // 4
    if (
        case.path_parameters
        and modes.get(ParameterLocation.PATH) is not GenerationMode.NEGATIVE
        and case.method != "DELETE"
    ):
        case.path_parameters = {
            name: known[name][pick % len(known[name])] if known.get(name) else value for name, value in case.path_parameters.items()
        }  # fmt: skip
    if {"a", "b"} <= set(case.query or {}) and modes.get(ParameterLocation.QUERY) is not GenerationMode.NEGATIVE:
        case.query = {**case.query, "a": known["run"][0], "b": known["run"][-1]}
    if choice % 4 > 1 and set(modes.values()) == {GenerationMode.POSITIVE}:
        examples = bodies(case.operation.label)
        if examples:
            body = json.loads(json.dumps(examples[pick % len(examples)]))
            case.body = as_lines(body) if case.media_type == LINES else body
        if any(header["name"] == "If-Match" for header in operation_of(case.operation.label)["parameters"]):
            case.headers = {**(case.headers or {}), "If-Match": "*"}
    return case


def parse_parameter(text, schema):
    """Return the value of a parameter's text by its schema; None if the schema allows no such text."""
    kinds = schema.get("type", [branch.get("type") for branch in schema.get("anyOf", ())])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array":
            return [parse_parameter(part, schema.get("items", {})) for part in text.split(",")]
        if kind == "string":
            return text
        if kind == "boolean" and text in {"true", "false"}:
            return text == "true"
        if kind in {"integer", "number"} and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", text):
            return json.loads(text)
    return None


def sent_as_described(case):
    """Whether the query that goes over the wire is one that the document allows, whatever it was made from.

    `limit={}` sends nothing at all, and `type=false`, a boolean, is the list of types ["false"].
    """
    meant = {where for where, info in case.meta.components.items() if info.mode is GenerationMode.NEGATIVE}
    if meant != {ParameterLocation.QUERY}:
        return False
    known = {
        parameter["name"]: parameter["schema"]
        for parameter in operation_of(case.operation.label)["parameters"]
        if parameter["in"] == "query"
    }
    known |= {"label.a": {"type": "string"}} if "label.*" in known else {}
    query = parse_qsl(urlsplit(case.as_curl_command().rpartition(" ")[2].strip("'")).query, keep_blank_values=True)
    return len(dict(query)) == len(query) and all(
        name in known and validator(known[name]).is_valid(parse_parameter(text, known[name])) for name, text in query
    )


def check(case, answer, mode):
    """What schemathesis holds, and: data as described is not refused for its shape; every fault is pointed at."""
    TOLD[case.operation.label][answer.status_code] += 1
    fine = mode is GenerationMode.NEGATIVE and answer.status_code < 300 and sent_as_described(case)
    case.validate_response(
        answer, excluded_checks=[*([negative_data_rejection] if fine else []), *told_apart(case, answer)]
    )
    if answer.status_code < 400:
        return
    problem = answer.json()
    assert set(problem) >= {"type", "title", "status", "detail", "code", "hint", "instance", "request_id", "errors"}, (
        case.as_curl_command()
    )
    if problem["code"] == "invalid-request":
        assert problem["errors"], case.as_curl_command()
    for place in problem["errors"]:
        assert {"pointer", "parameter", "header"} & set(place), (case.as_curl_command(), place)


def told_apart(case, answer):
    """The check that valid data is accepted, where `BEYOND` says why this answer refuses it."""
    refused = 400 <= answer.status_code < 500 and answer.status_code != 401
    return [positive_data_acceptance] if refused and find_reason(case.operation.label, answer.json()) else []


def few(count):
    return settings(
        max_examples=LONG or count,
        derandomize=not LONG,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType] - its metaclass iterates
        phases=[Phase.generate],
        print_blob=bool(LONG),
    )


def exercised(operation, known, mode, count):
    """Send what is made for the operation; whether there was anything to send."""

    @few(count)
    @given(case=operation.as_strategy(generation_mode=mode), choice=st.integers(0, 23))
    def check_case(case, choice):
        case = real(case, known, choice)
        check(case, case.call(), mode)

    try:
        check_case()
    except Unsatisfiable:
        return False
    return True


@pytest.mark.parametrize("label", OPERATIONS)
def test_an_operation_answers_as_the_document_says(service, label):
    _site, schema, known = service
    method, _, path = label.partition(" ")
    operation = schema[path][method]
    assert exercised(operation, known, GenerationMode.POSITIVE, 3)
    takes = bool(operation_of(label)["parameters"]) or "requestBody" in operation_of(label)
    assert exercised(operation, known, GenerationMode.NEGATIVE, 3) == takes


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_bound_of_an_operation_holds(service, label):
    """The edges of each parameter and field, one by one; methods, types and bodies that it does not take."""
    _site, schema, known = service
    method, _, path = label.partition(" ")
    operation = schema[path][method]
    generation = schema.config.generation_for(operation=operation)
    cases = schema.iter_coverage_cases(operation, generation_modes=list(GenerationMode), generation_config=generation)
    for at, case in enumerate(cases):
        if LONG or at % 17 == len(label) % 17:
            mode = case.meta.generation.mode
            asked = real(case, known, 1)
            check(asked, asked.call(), mode)


def test_the_control_valid_data_that_is_refused_is_noticed(service, monkeypatch):
    """Without what a schema cannot tell, a program that does not parse is valid data that was refused."""
    _site, schema, known = service
    monkeypatch.setattr("tests.service.test_contract.BEYOND", [])
    with pytest.raises(FailureGroup) as raised:
        exercised(schema["/v1/runs"]["POST"], known, GenerationMode.POSITIVE, 20)
    assert "Valid data should have been accepted" in str(raised.value.exceptions)


@contextlib.contextmanager
def states(site, folder):
    """What brings the database back to how it is now.

    A chain that is drawn again must meet the same service: else an answer opens other ways on, and drawing has no sense.
    """
    url = site.context.database.url
    if site.context.database.sqlite:
        there, saved = Path(url.database), folder / "saved.db"
        with contextlib.closing(sqlite3.connect(there)) as connection:
            connection.execute("vacuum into ?", [str(saved)])

        def again():  # by SQLite's own backup: a thread of the site may have the file open
            with contextlib.closing(sqlite3.connect(saved)) as kept, contextlib.closing(sqlite3.connect(there)) as now:
                kept.backup(now)

        yield again
        return
    import psycopg
    from psycopg import sql

    place = url.set(drivername="postgresql", database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(place, autocommit=True) as admin:

        def copied(new, of):
            site.context.database.close()
            admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = any(%s)", [[new, of]])
            admin.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(new)))
            admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(new), sql.Identifier(of)))

        saved = f"{url.database}_saved"
        copied(saved, url.database)
        try:
            yield lambda: copied(url.database, saved)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(saved)))


def test_requests_that_follow_each_other_answer_as_the_document_says(service, tmp_path):
    site, schema, _known = service
    with states(site, tmp_path) as restore:
        chained(schema, restore)


def chained(schema, restore):
    """Chains of requests, each from the same state of the service."""

    class Chain(schema.as_state_machine()):
        def __init__(self):
            super().__init__()
            restore()
            self.old = set()  # what an Idempotency-Key gave once more: it may have been deleted since

        def before_call(self, case):
            examples = bodies(case.operation.label)
            modes = {info.mode for info in case.meta.components.values()}
            if examples and modes == {GenerationMode.POSITIVE}:
                case.body = json.loads(json.dumps(examples[0]))

        def validate_response(self, response, case, additional_checks=(), **more):
            TOLD["in chains"][response.status_code] += 1
            if "Idempotent-Replayed" in response.headers:
                self.old.add(response.json()["id"])
            gone = self.old & set((case.path_parameters or {}).values())
            excluded = [*([ensure_resource_availability] if gone else []), *told_apart(case, response)]
            case.validate_response(
                response, additional_checks=additional_checks, excluded_checks=excluded, transport_kwargs=more
            )

    Chain.run(settings=settings(few(6), stateful_step_count=6))
