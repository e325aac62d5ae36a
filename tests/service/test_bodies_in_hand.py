"""Bodies that nobody has asked for yet fill no disk: those of all requests together have so much room, and no more."""

from __future__ import annotations

import contextlib
import errno
import functools
import http.client
import io
import json
import os
import socket
from types import SimpleNamespace

import pytest
import waitress.buffers
from waitress.adjustments import Adjustments

from service.limits import request_bodies
from service.limits.request_bodies import NO_KEY, BodyRoom, NoRoom, Senders
from tests.support import waiting

SECONDS = 60
wait_until = functools.partial(waiting.wait_until, seconds=SECONDS)
MANY = 1 << 20
GOOD = "Authorization: Bearer a-key\r\n"
"""Of who is known, and may fill three quarters of the room."""

UNREAD = 415
"""Status of the answer to a body of no media type: it was taken, and let go of."""


@pytest.fixture
def server(make, full_tier):
    """A server with room for one MiB of bodies, which demands a key and has seen it once."""
    from service.process.address import listen
    from service.server.http_server import Server

    site = make(api_key="a-key")
    listening = listen("127.0.0.1", 0)
    serving = Server(site.app, listening, threads=2, body_room=MANY)
    serving.start()
    assert site.client.get("/v1/me", headers={"Authorization": "Bearer a-key"}).status_code == 200
    yield serving, listening.getsockname()[1]
    serving.stop()


def open_upload(port, length, sent, key=GOOD):
    """Open a connection and send the first `sent` bytes of a body. Return the connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    head = f"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\n{key}Content-Length: {length}\r\n\r\n"
    connection.sendall(head.encode() + b"x" * sent)
    return connection


def answer(connection):
    """Status, headers and problem."""
    told = http.client.HTTPResponse(connection)
    told.begin()
    return told.status, told.headers, json.loads(told.read())


def test_a_body_that_finds_no_room_is_told_to_come_again(server):
    serving, port = server
    with contextlib.ExitStack() as held:
        first = held.enter_context(open_upload(port, 760_000, 700_000))
        wait_until(lambda: serving.bodies.bytes_taken > 600_000)
        second = held.enter_context(open_upload(port, 200_000_000, 600_000))
        status, headers, told = answer(second)
        assert (status, told["code"], told["status"]) == (503, "unavailable", 503)
        assert int(headers["Retry-After"]) > 0
        small = held.enter_context(open_upload(port, 50_000, 50_000))
        assert answer(small)[0] == UNREAD  # one that is in memory is always taken
        first.sendall(b"x" * 60_000)
        assert answer(first)[0] == UNREAD
    wait_until(lambda: serving.bodies.bytes_taken == 0)


def test_who_goes_away_leaves_his_room_to_others(server):
    serving, port = server
    for _ in range(3):
        with open_upload(port, 760_000, 700_000):
            wait_until(lambda: serving.bodies.bytes_taken > 600_000)
        wait_until(lambda: serving.bodies.bytes_taken == 0)
    with open_upload(port, 700_000, 700_000) as last:
        assert answer(last)[0] == UNREAD


def test_who_has_shown_no_good_key_fills_a_quarter_of_the_room_and_who_has_finds_some(server):
    serving, port = server
    with contextlib.ExitStack() as held:
        for key in ("", "Authorization: Bearer bp_00000000_x\r\n"):
            for _ in range(4):
                held.enter_context(open_upload(port, 1_000_000, 120_000, key))
        wait_until(lambda: serving.bodies.bytes_taken > 200_000)
        refused = held.enter_context(open_upload(port, 1_000_000, 300_000, ""))
        assert answer(refused)[0] == 503
        assert serving.bodies.bytes_taken <= MANY // 4
        known = held.enter_context(open_upload(port, 450_000, 450_000))
        assert answer(known)[0] == UNREAD
    wait_until(lambda: serving.bodies.bytes_taken == 0)


def test_a_tenant_leaves_a_quarter_of_the_room_to_the_others():
    room = BodyRoom(Senders(), 1000)
    assert room.take(750, 1)
    assert not room.take(1, 1)
    assert room.take(250, 2)
    assert not room.take(1, 2)
    room.give_back(750, 1)
    assert room.take(250, None)
    assert not room.take(1, None)
    assert room.take(250, 2)
    assert BodyRoom(Senders(), 1000, keyed=False).take(1000, None)


def test_what_comes_without_a_good_key_may_be_a_tenant_s_own_and_counts_against_its_share():
    for first, second in ((1, None), (None, 1)):
        room = BodyRoom(Senders(), 1000)
        assert room.take(250 if first is None else 750, first)
        assert not room.take(501 if second == 1 else 1, second)
        assert room.take(250, 2)


def test_what_comes_without_any_key_takes_nothing_from_anybody():
    room = BodyRoom(Senders(), 1600)
    assert room.take(100, NO_KEY)
    assert not room.take(1, NO_KEY)
    assert room.take(400, None)
    assert room.take(800, 1)
    assert room.take(400, 2)
    assert not room.take(1, 2)
    room.give_back(100, NO_KEY)
    assert room.take(100, NO_KEY)
    assert (room.owner(""), room.owner("Bearer x")) == (NO_KEY, None)
    assert BodyRoom(Senders(), keyed=False).owner("") is None


def test_the_room_is_no_larger_than_the_file_system_has_it(monkeypatch):
    free = 512 << 10
    monkeypatch.setattr(
        request_bodies.os, "statvfs", lambda _folder: SimpleNamespace(f_bavail=free >> 12, f_frsize=1 << 12)
    )
    room = BodyRoom(Senders(), MANY, folder="/tmp")
    assert not room.take((288 << 10) + 1, 1)
    assert room.take(288 << 10, 1)  # three quarters of three quarters
    free -= 288 << 10
    assert not room.take(1, 1)
    assert room.take(96 << 10, 2)
    free = 0
    assert not room.take(1, 2)
    room.give_back(288 << 10, 1)
    free = 8 << 20
    assert room.take(600 << 10, 2)
    assert not room.take(MANY, 1)


class FullDisk(io.BytesIO):
    """A file on a disk that has no room."""

    def write(self, _data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_body_that_finds_the_disk_full_is_told_to_come_again(server, monkeypatch):
    serving, port = server
    monkeypatch.setattr(waitress.buffers.TempfileBasedBuffer, "newfile", lambda _self: FullDisk())
    with open_upload(port, 500_000, 100_000) as connection:
        status, headers, told = answer(connection)
        assert (status, told["code"]) == (503, "unavailable")
        assert "disk of temporary files is full" in told["detail"]
        assert int(headers["Retry-After"]) > 0
    with open_upload(port, 50_000, 50_000) as small:
        assert answer(small)[0] == UNREAD
    monkeypatch.undo()
    with open_upload(port, 500_000, 500_000) as later:
        assert answer(later)[0] == UNREAD
    wait_until(lambda: serving.bodies.bytes_taken == 0)


def test_of_bodies_that_grow_side_by_side_as_many_are_taken_as_have_room():
    """What the refused ones took is free before anybody has answered them."""
    room = BodyRoom(Senders(), MANY, keyed=False)
    bodies = [room.parser(Adjustments()) for _ in range(8)]
    for body in bodies:
        body.received(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n")
    for _ in range(300):
        for body in bodies:
            body.received(b"x" * 1000)
    refused = [body for body in bodies if body.error is not None]
    assert {type(body.error) for body in refused} == {NoRoom}
    assert len(refused) == 5
    taken = room.bytes_taken
    assert 3 * (300_000 - request_bodies.SMALL_BYTES) < taken <= 3 * 300_000
    for unread in refused:  # as the server does when it has answered
        unread.close()
    assert room.bytes_taken == taken  # given back once
    for body in bodies:
        body.close()
    assert room.bytes_taken == 0


def test_a_key_is_the_same_however_it_is_spelled():
    senders = Senders()
    senders.remember("Bearer KEY", 1)
    assert [senders.tenant(header) for header in ("bEARER   KEY", " Bearer KEY  ", "Bearer key")] == [1, 1, None]


def test_an_authorization_is_of_whom_it_was_good_for_last_and_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(request_bodies, "MOST_KNOWN", 2)
    senders = Senders()
    for number in range(3):
        senders.remember(f"Bearer {number}", number)
    assert [senders.tenant(f"Bearer {number}") for number in range(3)] == [None, 1, 2]
    senders.remember("Bearer 1", 7)
    assert senders.tenant("Bearer 1") == 7


def test_a_body_in_chunks_without_an_end_is_counted_as_it_comes(server):
    serving, port = server
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as connection:
        connection.sendall(
            f"POST /v1/audits HTTP/1.1\r\nHost: localhost\r\n{GOOD}Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        connection.sendall(piece * 10)
        wait_until(lambda: serving.bodies.bytes_taken > 500_000)
        with contextlib.suppress(OSError):  # it is answered, and closed, while this is sent
            connection.sendall(piece * 40)
        wait_until(lambda: serving.bodies.bytes_taken == 0)
