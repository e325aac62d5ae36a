"""Spans go to a collector in batches, nobody waits for it, and nothing is done where there is none."""

import gzip
import http.server
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from store.database.settings import StoreSettings
from store.telemetry.spans import ANSWER_SECONDS, MISSING, MOST_WAITING, Spans
from store.telemetry.trace import begin_trace, child_span, continue_span

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
            body = gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body
            server.got.append((self.path, self.headers["Content-Type"], ExportTraceServiceRequest.FromString(body)))
            self.send_response(server.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

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


def sent_spans(collector):
    """The spans that came, in order, each with its service."""
    found = []
    for path, kind, body in collector.got:
        assert (path, kind) == ("/v1/traces", "application/x-protobuf")
        for resource in body.resource_spans:
            (name,) = resource.resource.attributes
            assert name.key == "service.name"
            for scope in resource.scope_spans:
                found += [describe_span(span, name.value.string_value) for span in scope.spans]
    return found


def describe_span(span, service):
    """What is looked at of one span."""
    return {
        "service": service,
        "name": span.name,
        "kind": span.kind,
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex() or None,
        "startTimeUnixNano": span.start_time_unix_nano,
        "endTimeUnixNano": span.end_time_unix_nano,
        "status": span.status.code,
        "attributes": {
            attribute.key: attribute.value.string_value or attribute.value.int_value for attribute in span.attributes
        },
    }


def test_a_span_and_its_steps_come_as_the_protocol_says(collector):
    spans = Spans(collector.url, "backprobe-api")
    caller = continue_span("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert caller is not None
    at = time.time_ns()
    with pytest.raises(ZeroDivisionError), spans.record_span(caller, "judge"):
        _ = 1 // 0
    with spans.record_span(caller, "store"):
        pass
    spans.add(caller, "GET /v1/runs", at, "server", http__route="/v1/runs", http__response__status_code=200)
    spans.add(begin_trace(), "attempt", at, "consumer")
    spans.close()
    judge, store, whole, first = sent_spans(collector)
    assert {span["traceId"] for span in (judge, store, whole)} == {caller.trace_id}
    assert (judge["parentSpanId"], store["parentSpanId"], whole["parentSpanId"]) == (
        caller.span_id,
        caller.span_id,
        caller.parent_id,
    )
    assert first["parentSpanId"] is None
    assert [(span["name"], span["kind"]) for span in (judge, store, whole, first)] == [
        ("judge", 1), ("store", 1), ("GET /v1/runs", 2), ("attempt", 5),
    ]  # fmt: skip
    assert [span["status"] for span in (judge, store, whole)] == [2, 0, 0]
    assert whole["attributes"] == {"http.route": "/v1/runs", "http.response.status_code": 200}
    assert at <= whole["startTimeUnixNano"] <= whole["endTimeUnixNano"]
    assert whole["service"] == "backprobe-api"


def test_a_trace_that_its_caller_does_not_record_is_not_sent(collector):
    spans = Spans(collector.url, "backprobe-api")
    spans.add(continue_span("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"), "GET", time.time_ns())
    spans.add(None, "GET", time.time_ns())
    spans.close()
    assert collector.got == []


@pytest.mark.parametrize("away", [False, True])
def test_a_collector_that_is_away_or_refuses_holds_up_nobody_and_the_log_says_so(collector, caplog, away):
    collector.status = 500
    spans = Spans("http://127.0.0.1:1/v1/traces" if away else collector.url, "backprobe-api")
    began = time.monotonic()
    for _ in range(2 * MOST_WAITING):
        spans.add(begin_trace(), "GET", time.time_ns())
    assert time.monotonic() - began < SECONDS
    spans.close()
    assert time.monotonic() - began < SECONDS + 2 * ANSWER_SECONDS
    assert ("Connection refused" if away else "500") in caplog.text


def test_a_collector_without_the_extra_is_told_at_the_start():
    source = (
        "import sys\nsys.modules['opentelemetry'] = None\nfrom store.telemetry.spans import Spans\nSpans(None, 'api')\n"
    )
    for more, said in (("", ""), ("Spans('http://collector:4318/v1/traces', 'api')", MISSING)):
        ended = subprocess.run([sys.executable, "-c", source + more], capture_output=True, text=True, check=False)
        assert (ended.returncode != 0, said in ended.stderr) == (bool(more), True), ended.stderr


def test_where_nobody_takes_spans_none_is_begun_and_no_thread_runs():
    spans = Spans(None, "backprobe-api")
    before = threading.active_count()
    assert spans.span(None) is None
    with spans.record_span(begin_trace(), "judge"):
        spans.add(child_span(begin_trace()), "GET", time.time_ns())
    assert threading.active_count() == before
    spans.close()


def test_the_address_of_the_collector_is_checked_at_the_start(tmp_path):
    good = "https://collector.example/v1/traces"
    assert StoreSettings.from_environment({"BACKPROBE_SPANS_URL": good}, tmp_path).spans_url == good
    assert StoreSettings.from_environment({"BACKPROBE_SPANS_URL": ""}, tmp_path).spans_url is None
    for wrong in ("collector:4318", "ftp://collector/v1/traces", "http://"):
        with pytest.raises(ValueError, match="BACKPROBE_SPANS_URL"):
            StoreSettings.from_environment({"BACKPROBE_SPANS_URL": wrong}, tmp_path)
