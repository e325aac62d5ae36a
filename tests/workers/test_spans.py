"""One trace from the request over the queue to the sandbox and the rules."""

import dataclasses

import pytest

from store.telemetry.spans import Spans
from tests.store.test_spans import collector, sent_spans
from workers import tasks
from workers.node import Node

__all__ = ["collector"]


@pytest.mark.parametrize("given", [None, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"])
def test_a_request_and_the_attempt_that_it_led_to_are_one_trace(stack, supervisor, collector, tmp_path, given):
    from service.app import create_app
    from service.context import EXTENSION
    from service.settings import Settings

    settings = Settings.from_environment({}, tmp_path / "web")
    url = stack.database.url.render_as_string(hide_password=False)
    store = dataclasses.replace(settings.store, database_url=url, spans_url=collector.url)
    app = create_app(dataclasses.replace(settings, store=store))
    node = Node(
        stack.database, supervisor, queue="cpu", slots=1, lease_seconds=30.0, publish=lambda _: None,
        spans=Spans(collector.url, "backprobe-worker"),
    )  # fmt: skip
    node.start()
    try:
        stack.wait(lambda: node._offers, "the canary's answer")
        headers = {"traceparent": given} if given else {}
        answer = app.test_client().post("/v1/runs", json={"source": "print(1)\n"}, headers=headers)
        assert answer.status_code == 202, answer.text
        assert tasks.execute_next(node, "cpu") == 1
    finally:
        node.close()
        app.extensions[EXTENSION].close()
    told = answer.json
    assert told is not None
    found = {span["name"]: span for span in sent_spans(collector)}
    assert set(found) == {"POST /v1/runs", "attempt", "sandbox", "judge", "store"}
    request, attempt = found["POST /v1/runs"], found["attempt"]
    assert len({span["traceId"] for span in found.values()}) == 1
    assert request["parentSpanId"] == (given.split("-")[2] if given else None)
    assert attempt["parentSpanId"] == request["spanId"]
    assert {found[name]["parentSpanId"] for name in ("sandbox", "judge", "store")} == {attempt["spanId"]}
    assert (request["service"], attempt["service"]) == ("backprobe-api", "backprobe-worker")
    assert attempt["attributes"]["backprobe.run"] == told["id"]
    order = [found[name]["startTimeUnixNano"] for name in ("POST /v1/runs", "attempt", "sandbox", "judge", "store")]
    assert order == sorted(order)
