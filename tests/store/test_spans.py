"""Spans go to a collector in batches, nobody waits for it, and nothing is done where there is none."""

import http.server
import json
import threading
import time

import pytest

from store.settings import StoreSettings
from store.spans import MOST_WAITING, Spans
from store.trace import begun, below, continued

SECONDS = 30


class Collector(http.server.ThreadingHTTPServer):
    """What it was sent is in `got`; it answers `status`."""

    got: list
    status = 200
    url = ""


@pytest.fixture
def collector():
    """A collector that listens."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(server.status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format, *args):  # noqa: A002 - the base's name
            """Nothing."""

    server = Collector(("127.0.0.1", 0), Handler)
    server.got = []
    server.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def sent(collector):
    """The spans that came, in order, each with its service."""
    found = []
    for path, kind, body in collector.got:
        assert (path, kind) == ("/v1/traces", "application/json")
        for resource in body["resourceSpans"]:
            (name,) = resource["resource"]["attributes"]
            assert name["key"] == "service.name"
            for scope in resource["scopeSpans"]:
                found += [span | {"service": name["value"]["stringValue"]} for span in scope["spans"]]
    return found


def test_a_span_and_its_steps_come_as_the_protocol_says(collector):
    spans = Spans(collector.url, "backprobe-api")
    caller = continued("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert caller is not None
    at = time.time_ns()
    with pytest.raises(ZeroDivisionError), spans.within(caller, "judge"):
        _ = 1 // 0
    with spans.within(caller, "store"):
        pass
    spans.add(caller, "GET /v1/runs", at, "server", http__route="/v1/runs", http__response__status_code=200)
    spans.add(begun(), "attempt", at, "consumer")
    spans.close()
    judge, store, whole, first = sent(collector)
    assert {span["traceId"] for span in (judge, store, whole)} == {caller.trace_id}
    assert (judge["parentSpanId"], store["parentSpanId"], whole["parentSpanId"]) == (
        caller.span_id,
        caller.span_id,
        caller.parent_id,
    )
    assert "parentSpanId" not in first
    assert [(span["name"], span["kind"]) for span in (judge, store, whole, first)] == [
        ("judge", 1), ("store", 1), ("GET /v1/runs", 2), ("attempt", 5),
    ]  # fmt: skip
    assert [span.get("status") for span in (judge, store, whole)] == [{"code": 2}, None, None]
    assert whole["attributes"] == [
        {"key": "http.route", "value": {"stringValue": "/v1/runs"}},
        {"key": "http.response.status_code", "value": {"intValue": "200"}},
    ]
    assert at <= int(whole["startTimeUnixNano"]) <= int(whole["endTimeUnixNano"])
    assert whole["service"] == "backprobe-api"


def test_a_trace_that_its_caller_does_not_record_is_not_sent(collector):
    spans = Spans(collector.url, "backprobe-api")
    spans.add(continued("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"), "GET", time.time_ns())
    spans.add(None, "GET", time.time_ns())
    spans.close()
    assert collector.got == []


def test_a_collector_that_is_away_or_refuses_holds_up_nobody_and_is_said_once(collector, caplog):
    collector.status = 503
    for url in (collector.url, "http://127.0.0.1:1/v1/traces"):
        spans = Spans(url, "backprobe-api")
        for _ in range(2 * MOST_WAITING):
            spans.add(begun(), "GET", time.time_ns())
        spans.close()
    told = [record.message for record in caplog.records if "collector" in record.message]
    assert len(told) == 2
    assert "it answered 503" in told[0]
    assert "ConnectionRefusedError" in told[1]


def test_where_nobody_takes_spans_none_is_begun_and_no_thread_runs():
    spans = Spans(None, "backprobe-api")
    before = threading.active_count()
    assert spans.span(None) is None
    with spans.within(begun(), "judge"):
        spans.add(below(begun()), "GET", time.time_ns())
    assert threading.active_count() == before
    spans.close()


def test_the_address_of_the_collector_is_checked_at_the_start(tmp_path):
    good = "https://collector.example/v1/traces"
    assert StoreSettings.from_environment({"BACKPROBE_SPANS_URL": good}, tmp_path).spans_url == good
    assert StoreSettings.from_environment({"BACKPROBE_SPANS_URL": ""}, tmp_path).spans_url is None
    for wrong in ("collector:4318", "ftp://collector/v1/traces", "http://"):
        with pytest.raises(ValueError, match="BACKPROBE_SPANS_URL"):
            StoreSettings.from_environment({"BACKPROBE_SPANS_URL": wrong}, tmp_path)
