"""Bodies that nobody has asked for yet fill no disk: those of all requests together have so much room, and no more."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time

import pytest

SECONDS = 60
MANY = 1 << 20


@pytest.fixture
def server(make):
    """A server with room for one MiB of bodies, which demands a key that nobody here has."""
    from service.address import listen
    from service.server import Server

    site = make(api_key="a-key")
    listening = listen("127.0.0.1", 0)
    serving = Server(site.app, listening, threads=2, body_room=MANY)
    serving.start()
    yield serving, listening.getsockname()[1]
    serving.stop()


def begun(port, length, sent):
    """A connection on which so much of a body has been sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    head = f"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    connection.sendall(head.encode() + b"x" * sent)
    return connection


def answer(connection):
    """Status, headers and problem."""
    told = http.client.HTTPResponse(connection)
    told.begin()
    return told.status, told.headers, json.loads(told.read())


def until(true):
    deadline = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_body_that_finds_no_room_is_told_to_come_again(server):
    serving, port = server
    with contextlib.ExitStack() as held:
        first = held.enter_context(begun(port, 1_000_000, 900_000))
        until(lambda: serving.bodies.taken > 800_000)
        second = held.enter_context(begun(port, 200_000_000, 600_000))
        status, headers, told = answer(second)
        assert (status, told["code"], told["status"]) == (503, "unavailable", 503)
        assert int(headers["Retry-After"]) > 0
        small = held.enter_context(begun(port, 50_000, 50_000))
        assert answer(small)[0] == 401  # one that is in memory is always taken
        first.sendall(b"x" * 100_000)
        assert answer(first)[0] == 401
    until(lambda: serving.bodies.taken == 0)


def test_who_goes_away_leaves_his_room_to_others(server):
    serving, port = server
    for _ in range(3):
        with begun(port, 1_000_000, 900_000):
            until(lambda: serving.bodies.taken > 800_000)
        until(lambda: serving.bodies.taken == 0)
    with begun(port, 900_000, 900_000) as last:
        assert answer(last)[0] == 401


def test_a_body_in_chunks_without_an_end_is_counted_as_it_comes(server):
    serving, port = server
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(b"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        connection.sendall(piece * 10)
        until(lambda: serving.bodies.taken > 500_000)
        with contextlib.suppress(OSError):  # it is answered, and closed, while this is sent
            connection.sendall(piece * 40)
        until(lambda: serving.bodies.taken == 0)
