"""Clients that hold the line and say nothing: ordinary requests of others are answered all the same."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.usefixtures("full_tier")

SECONDS = 120
"""Until something must have happened; long, for the machine may be busy with other things."""

SOURCE = b'{"source": "x = 1\\n"}'


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Start `backprobe api` in another process, on SQLite. There is no worker, so submitted runs stay queued."""
    home = tmp_path_factory.mktemp("home")
    environment = os.environ | {
        "BACKPROBE_HOME": str(home), "BACKPROBE_DATABASE_URL": "", "BACKPROBE_BROKER_URL": "", "PYTHONUNBUFFERED": "1",
        **{f"BACKPROBE_RATE_{what}": "0" for what in ("READS", "SUBMITS", "TENANT_READS", "TENANT_SUBMITS")},
    }  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "backprobe", "migrate"],
        env=environment,
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )
    said = home / "api.log"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "backprobe", "api", "--port", "0"], env=environment, stdout=out, stderr=subprocess.STDOUT
        )  # fmt: skip
    try:
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(r"API is at http://[\w.]+:(\d+)", said.read_text())):
            assert time.monotonic() < deadline and process.poll() is None, said.read_text()
            time.sleep(0.05)
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def exit_stack():
    """Sockets that a test keeps open, closed at its end."""
    with contextlib.ExitStack() as stack:
        yield stack


def connected(port, exit_stack, *pieces):
    """A connection on which these bytes were sent, and nothing was read."""
    connection = exit_stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))
    for piece in pieces:
        connection.sendall(piece)
    return connection


def ask(port, method, path, body=None, **headers):
    """Send an ordinary request on a new connection. Return status, headers and text of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Content-Type": "application/json", **headers} if body else headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def submitted(port):
    status, _headers, text = ask(port, "POST", "/v1/runs", SOURCE)
    assert status == 202, text
    return json.loads(text)["id"]


def stream_of(run):
    return f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()


def head_of(connection):
    """Status line and headers of the answer on a connection."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = connection.recv(1 << 16)
        assert piece, found
        found += piece
    return found.partition(b"\r\n\r\n")[0].decode()


def still_answers(port):
    for _ in range(5):
        assert ask(port, "GET", "/healthz")[0] == 200
        assert ask(port, "GET", "/v1/runs")[0] == 200
        submitted(port)


def test_five_hundred_idle_streams_do_not_stop_the_service(served, exit_stack):
    run = submitted(served)
    streams = [connected(served, exit_stack, stream_of(run)) for _ in range(500)]
    still_answers(served)
    heads = [head_of(stream) for stream in streams]
    assert {head.split()[1] for head in heads} == {"200"}
    still_answers(served)
    assert ask(served, "POST", f"/v1/runs/{run}/cancel")[0] in {200, 202}  # its end ends its streams
    for stream in streams:
        while stream.recv(1 << 16):
            pass


def test_streams_beyond_the_last_seat_are_told_to_come_again(served, exit_stack):
    run = submitted(served)
    heads = [head_of(connected(served, exit_stack, stream_of(run))) for _ in range(1010)]
    refused = [head for head in heads if " 503 " in head]
    assert len(refused) == 10
    assert all("Retry-After: 5" in head and "application/problem+json" in head for head in refused)
    still_answers(served)
    assert ask(served, "POST", f"/v1/runs/{run}/cancel")[0] in {200, 202}
    other = submitted(served)
    deadline = time.monotonic() + SECONDS
    while " 200 " not in head_of(connected(served, exit_stack, stream_of(other))):
        assert time.monotonic() < deadline, "the seats of ended streams are not free again"
        time.sleep(0.1)
    assert ask(served, "POST", f"/v1/runs/{other}/cancel")[0] in {200, 202}


def test_half_open_requests_do_not_stop_the_service(served, exit_stack):
    for _ in range(150):
        connected(served, exit_stack)
        connected(served, exit_stack, b"GET /v1/runs HTTP/1.1\r\nHost: local")
        connected(served, exit_stack, b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    still_answers(served)


def test_a_client_that_sends_byte_by_byte_holds_up_nobody_and_is_answered(served, exit_stack):
    request = (
        b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (len(SOURCE), SOURCE)
    )
    slow = [connected(served, exit_stack) for _ in range(40)]
    for at in range(0, len(request), 9):
        for connection in slow:
            connection.sendall(request[at : at + 9])
        if at % 45 == 0:
            assert ask(served, "GET", "/healthz")[0] == 200
    assert {head_of(connection).split()[1] for connection in slow} == {"202"}


def test_clients_that_do_not_read_their_answer_hold_up_nobody(served, exit_stack):
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(40):  # far more than threads; each answer is larger than the buffers of a socket that is not read
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        exit_stack.enter_context(connection).settimeout(SECONDS)
        connection.connect(("127.0.0.1", served))
        connection.sendall(asked)
    still_answers(served)


def test_waiters_are_bounded_and_the_rest_is_answered_as_the_run_stands(served):
    run, found = submitted(served), []

    def wait():
        found.append(ask(served, "GET", f"/v1/runs/{run}", Prefer="wait=30")[1].get("Preference-Applied"))

    waiting = [threading.Thread(target=wait) for _ in range(40)]
    for thread in waiting:
        thread.start()
    deadline = time.monotonic() + SECONDS
    while None not in found:  # only half of the 16 threads wait
        assert time.monotonic() < deadline
        time.sleep(0.05)
    still_answers(served)
    assert ask(served, "POST", f"/v1/runs/{run}/cancel")[0] in {200, 202}
    for thread in waiting:
        thread.join(SECONDS)
    assert len(found) == 40
    assert set(found) == {None, "wait=30"}


@pytest.fixture
def own(make):
    """The server in this process."""
    from service.process.address import listen
    from service.server import connection_loop
    from service.server.http_server import Server

    if not connection_loop.HAS_EPOLL:
        pytest.skip("epoll is Linux's")
    site = make()
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=2)
    server.start()
    yield server, listening.getsockname()[1]
    server.stop()


def rests(server):
    """Nothing that epoll has could wake the loop."""
    deadline = time.monotonic() + SECONDS
    while server._watched._epoll.poll(0):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_silent_connections_are_not_asked_when_others_are_answered(own, exit_stack, monkeypatch):
    from service.server.connections import Channel

    server, port = own
    for _ in range(50):
        connected(port, exit_stack, b"GET /v1/runs HTTP/1.1\r\nHost: local")
    deadline = time.monotonic() + SECONDS
    while len(server._server.active_channels) < 50 or server._watched._to_ask - {*server._watched} or not rests(server):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    silent, asked = set(server._server.active_channels.values()), []
    readable = Channel.readable

    def log_readable(self):
        asked.append(self)
        return readable(self)

    monkeypatch.setattr(Channel, "readable", log_readable)
    for _ in range(20):
        assert ask(port, "GET", "/healthz")[0] == 200
    asked_silent = [channel for channel in asked if channel in silent]
    assert len(asked_silent) <= len(silent)  # once, if the last byte had just come
    assert len([channel for channel in asked if channel not in silent]) >= 20


def test_a_socket_that_was_handed_over_wakes_the_loop_no_more(own, exit_stack):
    server, port = own
    run = submitted(port)
    stream = connected(port, exit_stack, stream_of(run))
    assert " 200 " in head_of(stream)
    deadline = time.monotonic() + SECONDS
    while server._server.active_channels:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert rests(server)  # its copy lives, and could be written to
    assert ask(port, "POST", f"/v1/runs/{run}/cancel")[0] in {200, 202}
