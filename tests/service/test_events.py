"""The events of a run: as a list, as a stream that resumes, and no more streams than threads can bear."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

STREAM = {"Accept": "text/event-stream"}


def get(site, path, status=200, **headers):
    answer = site.client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    return answer


def events_of(text):
    """(id, kind, data) of each event of a stream."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return found


def test_events_are_a_list_in_order(site):
    run = site.finished()
    items = get(site, f"/v1/runs/{run}/events").json["items"]
    assert [(event["seq"], event["kind"]) for event in items] == [(1, "queued"), (2, "claimed"), (3, "status")]
    assert items[2]["detail"] == {"status": "succeeded"}
    assert {event["run"] for event in items} == {run}
    assert [event["seq"] for event in get(site, f"/v1/runs/{run}/events?after=1").json["items"]] == [2, 3]
    page = get(site, f"/v1/runs/{run}/events?limit=2").json
    rest = get(site, f"/v1/runs/{run}/events?limit=2&cursor={page['next_cursor']}").json
    assert [event["seq"] for event in page["items"] + rest["items"]] == [1, 2, 3]
    assert rest["next_cursor"] is None


def test_the_stream_of_an_ended_run_tells_all_and_ends(site):
    run = site.finished()
    answer = get(site, f"/v1/runs/{run}/events", **STREAM)
    assert answer.mimetype == "text/event-stream"
    found = events_of(answer.text)
    assert [(number, kind) for number, kind, _ in found] == [
        ("1", "queued"), ("2", "claimed"), ("3", "status"), (None, "end"),
    ]  # fmt: skip
    assert found[-1][2] == {"run": run, "status": "succeeded"}


def test_a_stream_resumes_behind_the_last_event_that_was_seen(site):
    run = site.finished()
    resumed = events_of(get(site, f"/v1/runs/{run}/events", **STREAM, **{"Last-Event-ID": "2"}).text)
    assert [number for number, _, _ in resumed] == ["3", None]
    assert get(site, f"/v1/runs/{run}/events", 204, **STREAM, **{"Last-Event-ID": "3"}).data == b""


def test_a_stream_tells_what_happens_while_it_is_open(site):
    run = site.submit()
    answer = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM, buffered=False)
    parts = iter(answer.response)
    seen = ""
    while "event: queued" not in seen:
        seen += next(parts).decode()
    ending = threading.Thread(target=site.finish, args=(run,))
    ending.start()
    for part in parts:
        seen += part.decode()
    ending.join()
    answer.close()
    assert [kind for _, kind, _ in events_of(seen)] == ["queued", "claimed", "status", "end"]
    assert site.context.streams.taken == 0


def test_only_a_quarter_of_the_threads_stream_and_a_closed_one_makes_room(make):
    site = make(threads=4)
    run = site.submit()
    first = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM, buffered=False)
    refused = get(site, f"/v1/runs/{run}/events", 503, **STREAM)
    assert (refused.json["code"], refused.headers["Retry-After"]) == ("too-many-streams", "5")
    assert get(site, f"/v1/runs/{run}/events").json["items"]
    first.close()
    again = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM, buffered=False)
    assert again.status_code == 200
    again.close()
    assert site.context.streams.taken == 0


def test_a_quiet_stream_sends_comments_and_ends_in_time(make, monkeypatch):
    from service.api import events

    monkeypatch.setattr(events, "BEAT_SECONDS", 0.0)
    site = make()
    run = site.submit()
    answer = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM, buffered=False)
    parts = iter(answer.response)
    seen = b""
    while b": still here" not in seen:
        seen += next(parts)
    monkeypatch.setattr(events, "LONGEST_SECONDS", 0.0)
    answer.close()
    short = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM)
    assert short.data == b"retry: 1000\n\n"


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "9" * 10])
def test_a_last_event_id_that_is_no_number_is_refused(plain_site, wrong):
    run = plain_site.submit()
    told = get(plain_site, f"/v1/runs/{run}/events", 422, **STREAM, **{"Last-Event-ID": wrong}).json
    assert told["errors"][0]["header"] == "Last-Event-ID"
    get(plain_site, "/v1/runs/run_01JD8PZ4T8W2K5C7Q9R3M6X1BA/events", 404, **STREAM)


def test_over_a_socket_events_come_one_by_one_and_a_client_that_leaves_frees_its_seat(make):
    from service.address import listen
    from service.server import Server

    site = make(threads=4)
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=4)
    server.start()
    try:
        run = site.submit()
        connection = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=60)
        connection.request("GET", f"/v1/runs/{run}/events", headers=STREAM)
        answer = connection.getresponse()
        lines = [answer.readline().decode() for _ in range(5)]
        assert "event: queued\n" in lines
        site.client.post(f"/v1/runs/{run}/cancel")
        rest = answer.read().decode()
        assert "event: end" in rest
        assert "canceled" in rest
        connection.close()
    finally:
        server.stop()
