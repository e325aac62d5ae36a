"""Each request writes one line with its id, route and end. The line has no text of the client."""

from __future__ import annotations

import io
import json
import logging

import pytest
from structlog.contextvars import get_contextvars

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SECRET = "hush_hush_hush"


@pytest.fixture
def lines():
    """What the web process writes from here on, line by line."""
    from store.telemetry.logs import formatter

    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter())
    logger = logging.getLogger("backprobe.service")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_a_request_is_one_line_with_who_what_and_how_it_ended(plain_site, lines):
    run = plain_site.submit()
    answer = plain_site.client.get(f"/v1/runs/{run}", headers={"X-Request-Id": "request-of-mine"})
    submitted, read = lines()
    assert (submitted["route"], submitted["status"], submitted["run"]) == ("/v1/runs", 202, run)
    told = {
        name: read[name] for name in ("event", "level", "request_id", "method", "route", "status", "tenant", "actor")
    }
    assert told == {
        "event": "answered", "level": "info", "request_id": "request-of-mine", "method": "GET",
        "route": "/v1/runs/<run>", "status": 200, "tenant": 1, "actor": "local",
    }  # fmt: skip
    assert read["run"] == run
    assert read["ms"] >= 0
    assert answer.headers["X-Request-Id"] == "request-of-mine"


def test_nothing_that_was_sent_stands_in_a_line(make, lines):
    site = make(api_key="the-key-of-the-server")
    client, hostile = site.client, f"{SECRET}\x1b[31m"

    @site.app.get("/v1/broken")
    def broken():
        raise RuntimeError(hostile)

    good = {"Authorization": "Bearer the-key-of-the-server"}
    body = {"source": f"# {SECRET}\n", "arguments": [SECRET], "labels": {"a": SECRET}}
    for headers in (good, {"Authorization": f"Bearer {SECRET}"}, {}):
        client.post("/v1/runs", json=body, headers=headers)
        client.post("/v1/runs", json={"source": f"{SECRET} ("}, headers=headers)
        client.get(f"/v1/runs/{SECRET}?{SECRET}={SECRET}", headers={**headers, "User-Agent": SECRET, "Referer": SECRET})
        client.get(f"/{hostile}", headers={**headers, "X-Request-Id": f"{SECRET} not one", "traceparent": SECRET})
        client.open("/v1/runs", method=SECRET.upper(), headers=headers)
    client.get("/v1/broken", headers=good)
    found = lines()
    assert len(found) == 17
    assert found[-2]["error"] == "RuntimeError"
    assert SECRET not in str(found).lower()
    assert "the-key-of-the-server" not in str(found)


def test_what_is_logged_after_a_request_is_not_about_it(plain_site, lines):
    plain_site.client.get("/v1/runs")
    assert get_contextvars() == {}
    logging.getLogger("backprobe.service").warning("later")
    asked, later = lines()
    assert "request_id" in asked
    assert set(later) <= {"at", "level", "logger", "event"}


def test_health_checks_are_told_at_debug_unless_they_fail(plain_site, lines):
    for path in ("/healthz", "/readyz", "/metrics"):
        plain_site.client.get(path)
    plain_site.client.get("/metrics", headers={"Host": "evil.example"})
    assert [(line["level"], line["status"]) for line in lines()] == [("debug", 200)] * 3 + [("info", 403)]


def test_a_trace_is_taken_logged_and_kept_for_the_worker(plain_site, lines):
    from store.runs import lifecycle

    ids = [
        plain_site.post(headers={"traceparent": sent}).json["id"]
        for sent in (f"00-{TRACE}-{PARENT}-01", "00-nonsense", f"00-{'0' * 32}-{PARENT}-01")
    ]
    first, second, third = lines()
    assert (first["trace_id"], first["parent_id"]) == (TRACE, PARENT)
    assert "trace_id" not in second
    assert "trace_id" not in third
    again = plain_site.client.post(f"/v1/runs/{ids[0]}/rerun", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    assert again.status_code == 202
    claims = {}
    while claim := lifecycle.claim(plain_site.context.database, "w"):
        claims[claim.public_id] = claim.traceparent
    assert [claims[run] for run in ids] == [f"00-{TRACE}-{first['span_id']}-01", None, None]
    assert claims[again.json["id"]] == f"00-{TRACE}-{lines()[-1]['span_id']}-00"
