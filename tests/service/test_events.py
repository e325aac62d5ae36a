"""The events of a run: as a list, as a stream that resumes, and over sockets that hold no thread."""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import json
import socket
import sqlite3
import threading
from typing import Any

import pytest
import sqlalchemy as sa

from store import tables
from tests.support import waiting

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
    assert site.context.lists.taken == 0


def test_where_no_socket_is_handed_over_a_quarter_of_the_threads_stream_and_a_closed_one_makes_room(make):
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
    assert site.context.lists.taken == 0


def test_a_quiet_stream_sends_comments_and_ends_in_time(make, monkeypatch):
    from service.process import stream_writer

    monkeypatch.setattr(stream_writer, "BEAT_SECONDS", 0.0)
    site = make()
    run = site.submit()
    answer = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM, buffered=False)
    parts = iter(answer.response)
    seen = b""
    while b": still here" not in seen:
        seen += next(parts)
    monkeypatch.setattr(stream_writer, "LONGEST_SECONDS", 0.0)
    answer.close()
    short = site.app.test_client().get(f"/v1/runs/{run}/events", headers=STREAM)
    assert short.data == b"retry: 1000\n\n"


@pytest.mark.parametrize("wrong", ["x", "-1", "1.5", "9" * 10])
def test_a_last_event_id_that_is_no_number_is_refused(plain_site, wrong):
    run = plain_site.submit()
    told = get(plain_site, f"/v1/runs/{run}/events", 422, **STREAM, **{"Last-Event-ID": wrong}).json
    assert told["errors"][0]["header"] == "Last-Event-ID"
    get(plain_site, "/v1/runs/run_01JD8PZ4T8W2K5C7Q9R3M6X1BA/events", 404, **STREAM)


SECONDS = 60
eventually = functools.partial(waiting.wait_until, seconds=SECONDS)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def served(request, module_make, full_tier):
    """An application behind the real server; its port. Nobody works there."""
    from service.process.address import listen
    from service.server.http_server import Server
    from service.settings import RateLimits

    url = request.getfixturevalue("module_postgres_url") if request.param == "postgresql" else None
    rates = RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0)
    site = module_make(url, rates=rates, threads=4)
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=4)
    server.start()
    yield site, listening.getsockname()[1]
    server.stop()


@pytest.fixture
def exit_stack():
    """Sockets that a test keeps open, closed at its end."""
    with contextlib.ExitStack() as stack:
        yield stack


def open_stream(port, exit_stack, run, protocol="HTTP/1.1", more="", **options):
    """Request the event stream of a run. Return the connection, with a receive buffer of `buffer` bytes."""
    connection = exit_stack.enter_context(contextlib.closing(socket.socket()))
    if "buffer" in options:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options["buffer"])
    connection.settimeout(SECONDS)
    connection.connect(("127.0.0.1", port))
    connection.sendall(
        f"GET /v1/runs/{run}/events {protocol}\r\nHost: localhost\r\nAccept: text/event-stream\r\n{more}\r\n".encode()
    )
    return connection


def read_until(connection, text, read=b""):
    """Read up to this text, and maybe a little more."""
    while text not in read:
        piece = connection.recv(1 << 16)
        assert piece, read
        read += piece
    return read


def rest_of(connection, read=b""):
    """All that comes until the server ends it."""
    while piece := connection.recv(1 << 16):
        read += piece
    return read


def test_over_a_socket_events_come_one_by_one_and_the_end_ends_it(served, exit_stack):
    site, port = served
    run = site.submit()
    connection = open_stream(port, exit_stack, run)
    begun = read_until(connection, b"event: queued")
    head = begun.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith("HTTP/1.1 200 OK")
    assert {"Connection: close", "Transfer-Encoding: chunked", "X-Accel-Buffering: no"} <= set(head.split("\r\n"))
    assert "Content-Security-Policy: " in head
    site.client.post(f"/v1/runs/{run}/cancel")
    rest = rest_of(connection, begun)
    assert rest.endswith(b"\r\n0\r\n\r\n")
    parsed = http.client.HTTPResponse(Received(rest))
    parsed.begin()
    kinds = [kind for _, kind, _ in events_of(parsed.read().decode())]
    assert (kinds[0], kinds[-1]) == ("queued", "end")
    eventually(lambda: site.context.streams.seats.taken == 0)


class Received:
    """Bytes that were received, as `HTTPResponse` wants them."""

    def __init__(self, received):
        self._received = received

    def makefile(self, _mode):
        return io.BytesIO(self._received)


def test_to_a_client_of_http_1_0_a_stream_is_plain_and_ends_with_the_connection(served, exit_stack):
    site, port = served
    run = site.finished()
    text = rest_of(open_stream(port, exit_stack, run, "HTTP/1.0", "Connection: keep-alive\r\n"))
    head, _, body = text.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert b"Connection: close" in head
    assert body.startswith(b"retry: 1000\n\nid: 1\nevent: queued\n")
    assert [kind for _, kind, _ in events_of(body.decode())] == ["queued", "claimed", "status", "end"]


def test_a_stream_is_the_last_answer_of_its_connection(served, exit_stack):
    """What was asked before it is answered before it; what was sent behind it is asked again, on another one."""
    site, port = served
    run = site.submit()
    connection = exit_stack.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", port), SECONDS)))
    plain = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    stream = f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()
    connection.sendall(plain + stream + plain)
    begun = read_until(connection, b"event: queued")
    assert begun.count(b"HTTP/1.1 200 OK") == 2
    assert begun.index(b'"openapi"') < begun.index(b"text/event-stream; charset")
    site.client.post(f"/v1/runs/{run}/cancel")
    assert rest_of(connection, begun).count(b"HTTP/1.1 200 OK") == 2


def test_head_of_a_stream_takes_no_seat(served, exit_stack):
    site, port = served
    run = site.submit()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request("HEAD", f"/v1/runs/{run}/events", headers=STREAM)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream; charset=utf-8")
    assert site.context.streams.seats.taken == 0


def test_a_client_that_leaves_frees_its_seat_at_once(served, exit_stack):
    site, port = served
    run = site.submit()
    with contextlib.ExitStack() as leaving:
        for _ in range(5):
            read_until(open_stream(port, leaving, run), b"event: queued")
        assert site.context.streams.seats.taken == 5
    eventually(lambda: site.context.streams.seats.taken == 0)  # with nothing having happened to the run


def test_more_streams_than_threads_are_served_and_each_is_told(served, exit_stack):
    site, port = served
    runs = [site.submit() for _ in range(2)]
    streams = [(run, open_stream(port, exit_stack, run)) for run in runs * 20]
    begun = [read_until(stream, b"event: queued") for _, stream in streams]
    assert site.client.get("/healthz").status_code == 200
    site.client.post(f"/v1/runs/{runs[0]}/cancel")
    for (run, stream), read in zip(streams, begun, strict=True):
        if run == runs[0]:
            assert b'"status":"canceled"' in rest_of(stream, read)
    assert site.context.streams.seats.taken == 20
    site.client.post(f"/v1/runs/{runs[1]}/cancel")
    eventually(lambda: site.context.streams.seats.taken == 0)


def test_a_client_that_does_not_read_holds_up_nobody_and_is_let_go_of(served, exit_stack, monkeypatch):
    from service.process import stream_writer
    from store.tables import run_event

    site, port = served
    run = site.submit()
    stuck = open_stream(port, exit_stack, run, buffer=4096)
    read_until(stuck, b"event: queued")
    eventually(lambda: site.context.streams.seats.taken == 1)
    with site.context.database.begin() as transaction:
        row = transaction.execute(tables.run.select().where(tables.run.c.public_id == run)).one()
        more = [{"part": row.part, "run_id": row.id, "seq": 2 + n, "at": row.created_at, "kind": "progress",
                 "payload": {"x": "y" * 3000}} for n in range(2000)]  # fmt: skip
        transaction.execute(run_event.insert(), more)
        transaction.execute(tables.run.update().where(tables.run.c.id == row.id).values(events=2001))
    reading = open_stream(port, exit_stack, run)
    other = site.submit()
    begun = read_until(open_stream(port, exit_stack, other), b"event: queued")
    assert b"id: 1\n" in begun
    assert b"id: 2001\n" in read_until(reading, b"id: 2001\n")
    assert site.context.streams.seats.taken == 3
    monkeypatch.setattr(stream_writer, "STUCK_SECONDS", 0.0)
    eventually(lambda: site.context.streams.seats.taken == 2)
    for run_id in (run, other):
        site.client.post(f"/v1/runs/{run_id}/cancel")
    eventually(lambda: site.context.streams.seats.taken == 0)


def test_a_stream_says_that_it_is_still_there_and_ends_in_time(served, exit_stack, monkeypatch):
    from service.process import stream_writer

    site, port = served
    run = site.submit()
    monkeypatch.setattr(stream_writer, "BEAT_SECONDS", 0.0)
    connection = open_stream(port, exit_stack, run)
    begun = read_until(connection, b": still here\n\n")
    monkeypatch.setattr(stream_writer, "LONGEST_SECONDS", 0.0)
    assert rest_of(open_stream(port, exit_stack, run)).endswith(b"0\r\n\r\n")
    connection.close()
    assert begun.index(b"event: queued") < begun.index(b": still here")
    eventually(lambda: site.context.streams.seats.taken == 0)


def test_streams_go_on_behind_a_database_that_was_away(served, exit_stack, monkeypatch):
    from store.runs.reading import run_events

    site, port = served
    run = site.submit()
    connection = open_stream(port, exit_stack, run)
    begun = read_until(connection, b"event: queued")
    looked = threading.Event()
    look = run_events.standing

    def away(*_):
        looked.set()
        raise sa.exc.OperationalError("select", {}, sqlite3.OperationalError("gone"))

    monkeypatch.setattr(run_events, "standing", away)
    site.client.post(f"/v1/runs/{run}/cancel")
    assert looked.wait(SECONDS)
    monkeypatch.setattr(run_events, "standing", look)
    assert b"event: end" in rest_of(connection, begun)


def test_streams_end_with_the_service(make, exit_stack):
    from service.process.address import listen
    from service.server.http_server import Server

    site = make()
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=2)
    server.start()
    try:
        connection = open_stream(listening.getsockname()[1], exit_stack, site.submit())
        begun = read_until(connection, b"event: queued")
        site.context.hub.close()
        assert rest_of(connection, begun).endswith(b"\r\n0\r\n\r\n")
        assert site.context.streams.seats.taken == 0
    finally:
        server.stop()


def test_a_stream_that_begins_is_told_at_once_whatever_others_cost(make, exit_stack, monkeypatch):
    """The look at all streams pauses to keep its share of the time. A stream that begins in a pause gets a separate look."""
    from service.process import event_streams
    from service.process.address import listen
    from service.server.http_server import Server
    from store.runs.reading import run_events

    site = make()
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=2)
    server.start()
    exit_stack.callback(server.stop)
    port, looks, standing = listening.getsockname()[1], [], run_events.standing

    def looked(transaction, numbers):
        looks.append(len(numbers))
        return standing(transaction, numbers)

    monkeypatch.setattr(run_events, "standing", looked)
    for rest in ("PAUSE_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(event_streams, rest, 10.0 * SECONDS)
    read_until(open_stream(port, exit_stack, site.submit()), b"event: queued")
    eventually(lambda: looks == [1, 1])  # as it began, and then at all: again in ten minutes
    read_until(open_stream(port, exit_stack, site.submit()), b"event: queued")
    assert looks == [1, 1, 1]


def test_in_each_look_tenants_take_turns_and_the_rest_is_told_next():
    from types import SimpleNamespace

    from service.process.event_streams import _in_turns

    streams: Any = [SimpleNamespace(subject=SimpleNamespace(tenant_id=tenant)) for tenant in (1, 1, 1, 1, 2, 3, 3)]
    assert [stream.subject.tenant_id for stream in _in_turns(streams)] == [1, 2, 3, 1, 3, 1, 1]


def test_more_that_happened_than_one_look_reads_is_told_all_the_same(served, exit_stack, monkeypatch):
    from service.process import event_streams

    site, port = served
    monkeypatch.setattr(event_streams, "MOST_TOLD", 2)
    runs = [site.submit() for _ in range(7)]
    streams = [open_stream(port, exit_stack, run) for run in runs]
    begun = [read_until(stream, b"event: queued") for stream in streams]
    for run in runs:
        site.client.post(f"/v1/runs/{run}/cancel")
    assert all(b"event: end" in rest_of(stream, read) for stream, read in zip(streams, begun, strict=True))


@pytest.fixture
def keyed(site):
    """`keyed()`: a key of the first tenant, as JSON; `keyed(expires_at=...)`."""

    def make_key(**more):
        asked = {"name": "reader", "scopes": ["read"], **more}
        return site.client.post("/v1/keys", json=asked).json

    return make_key


def revoke(site, key):
    assert site.client.delete(f"/v1/keys/{key['id']}").status_code == 204


def expire(site, key):
    with site.context.database.begin() as transaction:
        found = sa.update(tables.api_key).where(tables.api_key.c.public_id == key["id"])
        transaction.execute(found.values(expires_at=tables.Now(-1.0)))


@pytest.mark.parametrize("end", [revoke, expire])
def test_a_stream_ends_when_its_key_does_and_the_others_go_on(served, exit_stack, end):
    site, port = served
    run = site.submit()
    keys = [site.client.post("/v1/keys", json={"name": "reader", "scopes": ["read"]}).json for _ in range(2)]
    lines = [open_stream(port, exit_stack, run, more=f"Authorization: Bearer {key['secret']}\r\n") for key in keys]
    begun = [read_until(line, b"event: queued") for line in lines]
    end(site, keys[0])
    assert b"event: end" not in rest_of(lines[0], begun[0])
    site.client.post(f"/v1/runs/{run}/cancel")
    assert b"event: end" in rest_of(lines[1], begun[1])
    eventually(lambda: site.context.streams.seats.taken == 0)


def test_a_stream_that_holds_its_thread_ends_with_its_key(site, keyed):
    run, key = site.submit(), keyed()
    headers = {**STREAM, "Authorization": f"Bearer {key['secret']}"}
    answer = site.app.test_client().get(f"/v1/runs/{run}/events", headers=headers, buffered=False)
    parts = iter(answer.response)
    seen = ""
    while "event: queued" not in seen:
        seen += next(parts).decode()
    revoke(site, key)
    assert "event: end" not in "".join(part.decode() for part in parts)
    answer.close()
    assert site.context.lists.taken == 0


def test_a_stream_of_a_person_ends_with_the_login(site):
    from service.process.event_streams import shut_out
    from service.process.stream_writer import Stream
    from store.access import logins

    streams = [Stream(owner=site.context.streams, subject=None, after=0, give_back=list, login=name) for name in "ab"]
    with site.context.database.begin() as transaction:
        logins.end(transaction, "a", "user:a@example.org", kept_seconds=60.0)
        assert shut_out(transaction, streams) == {streams[0]}
