"""The server's own answers, before the application sees a request; and bodies of every size over a real socket."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys

import pytest


@pytest.fixture
def port(make):
    from service.process.address import listen
    from service.server.http_server import Server

    site = make()
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=2)
    server.start()
    yield listening.getsockname()[1]
    server.stop()


def raw(port, *pieces):
    """Send bytes as they are; the status, headers and body that come back."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.headers, json.loads(answer.read())


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"NONSENSE\r\n\r\n", 400, "malformed-request"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n", 431, "too-large"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n", 413, "too-large"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n10;" + b"a" * 20_000, 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 5_000, 400, "malformed-request"),
        (b"GET /v1/runs HTTP/1.1\r\nX-A: b\r\n\r\n", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "transfer-encoding-unknown"),
        (b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400, "malformed-request"),
        (b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\nhost: localhost\r\n\r\n", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", 400, "malformed-request"),
        (b"POST /v1/runs HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "malformed-request"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_answered_in_the_one_shape(port, sent, status, code):
    answered, headers, told = raw(port, sent)
    assert (answered, told["code"], told["status"]) == (status, code, status)
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["X-Request-Id"] == told["request_id"]
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
    assert set(told) == {"type", "title", "status", "detail", "code", "hint", "instance", "request_id", "errors"}


def test_ten_megabytes_are_read_to_their_end_and_refused(port):
    body = b'{"source": "' + b"x" * 10_000_000 + b'"}'
    head = f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    status, _headers, told = raw(port, head.encode(), body)
    assert (status, told["code"]) == (413, "too-large")


def test_a_body_in_chunks_is_a_body(port):
    body = b'{"source": "x = 1"}'
    head = b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    status, _headers, told = raw(port, head, f"{len(body):x}\r\n".encode(), body, b"\r\n0\r\n\r\n")
    assert (status, told["status"]) == (202, "queued")


def test_one_that_is_silent_makes_room_for_one_that_asks(make, monkeypatch):
    """However many connections somebody opens and leaves, also in the middle of a request: another one is answered."""
    from service.process.address import listen
    from service.server import http_server as serving

    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 40)
    listening = listen("127.0.0.1", 0)
    server = serving.Server(make().app, listening, threads=2)
    server.start()
    try:
        with contextlib.ExitStack() as held:
            address = listening.getsockname()
            for number in range(200):
                connection = held.enter_context(contextlib.closing(socket.create_connection(address, timeout=60)))
                if number % 2:
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
            assert raw(address[1], b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200
            kept = http.client.HTTPConnection("127.0.0.1", address[1], timeout=60)
            for _ in range(50):  # it is asked on, so it is never the one that was silent the longest
                held.enter_context(contextlib.closing(socket.create_connection(address, timeout=60)))
                kept.request("GET", "/healthz")
                assert kept.getresponse().read()
            kept.close()
    finally:
        server.stop()


def test_the_next_request_is_unaffected(port):
    raw(port, b"NONSENSE\r\n\r\n")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert json.loads(connection.getresponse().read()) == {"status": "ok"}
    connection.close()


def test_stopping_does_not_fail_where_the_loop_has_closed_all_before_it_is_woken(plain_site):
    from service.process.address import listen
    from service.server.http_server import Server

    listening = listen("127.0.0.1", 0)
    server = Server(plain_site.app, listening, threads=2)
    server.start()
    trigger, pulls = server._server.trigger, []
    pull = trigger._physical_pull

    def late():
        pulls.append(None)
        pull()
        if len(pulls) == 2:  # the loop, awake by another pull, finds the last word before we have woken it
            server._thread.join(30)
            pull()

    trigger._physical_pull = late
    server.stop()
    assert len(pulls) == 2
    assert not server._thread.is_alive()


def test_what_a_served_application_is_made_of_is_no_garbage_to_look_through(tmp_path):
    code = (
        "import gc, socket, sys\nfrom pathlib import Path\nfrom service.server.serve import start_web\n"
        "from service.settings import Settings\n"
        "listening = socket.create_server(('127.0.0.1', 0))\n"
        "server, shared = start_web(Settings.from_environment({}, Path(sys.argv[1])), listening)\n"
        "print(gc.get_freeze_count() > 10 * len(gc.get_objects(generation=2)))\nserver.stop()\nshared.close()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.stdout == "True\n", found.stderr
