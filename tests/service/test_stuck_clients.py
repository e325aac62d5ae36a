"""Clients that ask for much and do not read it: the threads that answer them come free again."""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import time

import pytest

from bench.stored_runs import short_record
from tests.support import waiting

SECONDS = 60
wait_until = functools.partial(waiting.wait_until, seconds=SECONDS)
THREADS = 8
SILENT_SECONDS = 2


@pytest.fixture(scope="module")
def served(module_make, full_tier):
    """An application behind the real server, which lets go of who is silent for 2 s; its port, and a run with 30 MB."""
    from service.process.address import listen
    from service.server.http_server import Server
    from service.settings import RateLimits

    rates = RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0)
    site = module_make(rates=rates, threads=THREADS)
    run = site.finished(short_record(100, 480))
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, THREADS, silent_seconds=SILENT_SECONDS)
    server.start()
    yield site, listening.getsockname()[1], run
    server.stop()


@pytest.fixture
def exit_stack():
    with contextlib.ExitStack() as stack:
        yield stack


def unread(port, exit_stack, path):
    """A connection that asks and does not read; its buffers are small."""
    connection = exit_stack.enter_context(contextlib.closing(socket.socket()))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(SECONDS)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet"])
def test_exports_that_nobody_reads_stop_nobody_and_are_let_go_of(served, exit_stack, form):
    site, port, run = served
    seats = site.context.lists
    path = f"/v1/runs/{run}/snapshots?format={form}"
    for _ in range(2 * THREADS):
        unread(port, exit_stack, path)
    wait_until(lambda: seats.taken == seats.most)
    status, headers, text = ask(port, path)
    assert (status, json.loads(text)["code"], headers["Retry-After"]) == (503, "too-many-streams", "5")
    assert ask(port, f"/v1/runs/{run}/tensors")[0] == 200
    assert ask(port, "/healthz")[0] == 200
    wait_until(lambda: seats.taken == 0)
    status, headers, text = ask(port, path)
    assert status == 200
    assert len(text) > 1 << 20 if form == "parquet" else text.count(b"\n") >= 48_000


def test_a_short_list_needs_no_seat(served):
    site, port, run = served
    taken = [site.context.lists.take() for _ in range(site.context.lists.most)]
    try:
        assert ask(port, f"/v1/runs/{run}/tensors?format=ndjson")[0] == 200
        assert ask(port, f"/v1/runs/{run}/snapshots?format=ndjson")[0] == 503
    finally:
        for give_back in taken:
            give_back()


def test_a_slow_reader_is_not_let_go_of(served, exit_stack):
    """It never rests; the kernel's buffer takes more only when a third of it has gone, which takes over two seconds."""
    _site, port, run = served
    connection = unread(port, exit_stack, f"/v1/runs/{run}/snapshots?format=ndjson")
    read, last = 0, b""
    begun = time.monotonic()
    while time.monotonic() < begun + 2 * SILENT_SECONDS:
        last = connection.recv(1 << 15)
        assert last, "the server let go of a client that reads"
        read += len(last)
        time.sleep(0.02)
    while piece := connection.recv(1 << 20):
        read, last = read + len(piece), last[-20:] + piece
        if last.endswith(b"0\r\n\r\n"):
            break
    assert read > 16 << 20
