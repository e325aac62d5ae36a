"""Of each thing that tenants share, one takes all that it can get: another still submits, waits, reads, streams and ends.

How much slower that is than in quiet time is measured in `bench/fairness.py`; what each may take says
`docs/threat-model.md`.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import socket
import threading
import time
from collections import Counter

import pytest
from flask import Response

from backprobe.client import new_run_id
from backprobe.record import dumps, split
from tests.support import waiting

SECONDS = 60
wait_until = functools.partial(waiting.wait_until, seconds=SECONDS)
SEATS = 24
"""Of streams: few, so that they are soon taken."""

MEDIA = "application/vnd.backprobe.record"


class Tenant:
    """One of those who share the service, with as many keys as it likes, over real sockets.

    Attributes:
        keys: Headers of each.
        id: Number in the database.
    """

    def __init__(self, site, port, name, exit_stack, keys=4):
        from service.auth.caller import digest_of, new_key
        from store.access import keys as stored
        from store.access import tenants

        self.site, self.port, self.exit_stack, self.keys = site, port, exit_stack, []
        with site.context.database.begin() as transaction:
            self.id = tenants.create(transaction, name)
            for _ in range(keys):
                secret, prefix = new_key()
                digest = digest_of(secret, site.context.settings.secret)
                new = stored.NewKey(name="k", prefix=prefix, digest=digest, scopes=("admin",), created_by="test")
                stored.create(transaction, new, tenant_id=self.id)
                self.keys.append({"Authorization": f"Bearer {secret}"})

    def callers(self):
        """Each key as the application knows it."""
        from service.auth.caller import holder

        with self.site.app.test_request_context():
            return [holder(key["Authorization"].removeprefix("Bearer ")) for key in self.keys]

    def ask(self, method, path, body=None, key=0, **headers):
        """Send a request on a new connection. Return status, headers and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        if isinstance(body, dict):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
        with contextlib.closing(connection):
            connection.request(method, path, body, {**self.keys[key], **headers})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def submit(self, source="x = 1\n"):
        """A run that waits for a worker; None: refused."""
        status, _headers, text = self.ask("POST", "/v1/runs", {"source": source})
        return json.loads(text)["id"] if status == 202 else None

    def send_request(self, text, key=0, **headers):
        """Send this request and read nothing. Return the connection."""
        connection = self.exit_stack.enter_context(contextlib.closing(socket.socket()))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(SECONDS)
        connection.connect(("127.0.0.1", self.port))
        lines = [f"{name}: {value}" for name, value in {"Host": "localhost", **self.keys[key], **headers}.items()]
        connection.sendall("\r\n".join([f"{text} HTTP/1.1", *lines, "", ""]).encode())
        return connection

    def status_of(self, connection):
        """Status of what is answered there."""
        found = b""
        while b"\r\n" not in found:
            piece = connection.recv(4096)
            assert piece, found
            found += piece
        return int(found.split()[1])

    def gets_on(self, samples):
        """All that a tenant lives by: each is answered, and means what it says."""
        run = self.submit()
        assert run is not None
        status, headers, _ = self.ask("GET", f"/v1/runs/{run}", Prefer="wait=1")
        assert (status, headers["Preference-Applied"]) == (200, "wait=1")
        assert self.ask("GET", "/v1/runs?limit=5")[0] == 200
        stream = self.send_request(f"GET /v1/runs/{run}/events", Accept="text/event-stream")
        assert self.status_of(stream) == 200
        stream.close()
        large = {"files": [{"path": "main.py", "text": "# long\n" * 20_000}]}
        assert self.ask("POST", "/v1/snippets", large)[0] in {200, 201}
        record, job = dumps(samples.tutorial()), new_run_id()
        assert self.ask("PUT", f"/v1/runs/{job}", {})[0] == 201
        for number, frame in enumerate(split(record)):
            path = f"/v1/runs/{job}/frames/{number}"
            assert self.ask("PUT", path, frame, **{"Content-Type": MEDIA})[0] == 204
        status, _headers, text = self.ask("POST", f"/v1/runs/{job}/end", {"status": "succeeded"})
        assert (status, json.loads(text)["status"]) == (200, "succeeded")
        assert self.ask("GET", f"/v1/runs/{job}/record")[0] == 200
        assert self.ask("POST", "/v1/records", record, **{"Content-Type": MEDIA})[0] == 202
        status, _headers, _text = self.ask("POST", f"/v1/runs/{run}/cancel")
        assert status in {200, 202}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def served(request, module_make, full_tier):
    """An application behind the real server, small enough that one tenant soon has all it may."""
    from service.process.address import listen
    from service.server.http_server import Server
    from service.settings import RateLimits

    url = request.getfixturevalue("module_postgres_url") if request.param == "postgresql" else None
    rates = RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0)
    site = module_make(url, rates=rates, threads=16, most_queued=120, api_key="the-server")
    listening = listen("127.0.0.1", 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.server.http_server.MOST_CONNECTIONS", 300)
        server = Server(site.app, listening, threads=16, body_room=1 << 20)
    site.context.streams.seats.most = SEATS
    server.start()
    yield site, listening.getsockname()[1], server
    server.stop()


@pytest.fixture
def exit_stack():
    """Connections and servers of a test, closed at its end."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def two(served, exit_stack, request):
    """One who takes what there is, and another."""
    site, port, _server = served
    name = f"tnt_{len(request.node.name)}{time.monotonic_ns()}"
    return Tenant(site, port, f"{name}a", exit_stack), Tenant(site, port, f"{name}b", exit_stack)


def streams(greedy, _served, _held):
    run = greedy.submit()
    statuses = Counter(
        greedy.status_of(greedy.send_request(f"GET /v1/runs/{run}/events", key, Accept="text/event-stream"))
        for key in range(4)
        for _ in range(SEATS)
    )
    assert statuses[200] == SEATS * 3 // 4
    assert set(statuses) == {200, 503}


def waits(greedy, served, exit_stack):
    run = greedy.submit()
    exit_stack.callback(greedy.ask, "POST", f"/v1/runs/{run}/cancel")  # its end ends them
    for key in range(4):
        for _ in range(8):
            greedy.send_request(f"GET /v1/runs/{run}", key, Prefer="wait=30")
    wait_until(lambda: served[0].context.waiters.waiting >= 6)


def seats(name):
    """All that it may have of these seats, as requests that are in hand would have them."""

    def take_seats(greedy, served, exit_stack):
        found = [getattr(served[0].context, name).take(caller) for caller in greedy.callers() for _ in range(4)]
        for give_back in (seat for seat in found if not isinstance(seat, str)):
            exit_stack.callback(give_back)
        assert any(isinstance(seat, str) and "the rest is for others" in seat for seat in found)
        most = getattr(served[0].context, name).most
        assert sum(not isinstance(seat, str) for seat in found) == most * 3 // 4

    return take_seats


def body_room(greedy, served, _held):
    _site, _port, server = served
    assert greedy.ask("GET", "/v1/me")[0] == 200
    for key in ({}, greedy.keys[0]):  # of one whom nobody knows, and of a tenant
        for _ in range(12):
            connection = greedy.send_request(
                "POST /v1/snippets", **{"Authorization": "none", **key, "Content-Length": "1000000"}
            )
            with contextlib.suppress(OSError):
                connection.sendall(b"x" * 140_000)
    wait_until(lambda: server.bodies.bytes_taken > 400_000)


def queue(greedy, _served, _held):
    while greedy.submit() is not None:
        pass


def database(greedy, _served, exit_stack):
    """Reads and writes without a pause, from more clients than there are threads."""
    over, statuses = threading.Event(), Counter()

    def busy(number):
        key = number % 4
        while not over.is_set():
            statuses[greedy.ask("GET", "/v1/findings?limit=1000", key=key)[0]] += 1
            statuses[greedy.ask("PUT", f"/v1/runs/{new_run_id()}", {}, key=key)[0]] += 1

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    exit_stack.callback(lambda: [thread.join(SECONDS) for thread in threads])
    exit_stack.callback(over.set)
    wait_until(lambda: statuses.total() > 50)


def audits(greedy, _served, exit_stack):
    """One after the other, each as large as may be sent at once."""
    over, statuses = threading.Event(), Counter()
    items = [{"custom_id": str(number), "source": f"x = {number}\n"} for number in range(30)]

    def busy(key):
        while not over.is_set():
            statuses[greedy.ask("POST", "/v1/audits", {"items": items}, key=key)[0]] += 1

    threads = [threading.Thread(target=busy, args=(key,)) for key in range(4)]
    for thread in threads:
        thread.start()
    exit_stack.callback(lambda: [thread.join(SECONDS) for thread in threads])
    exit_stack.callback(over.set)
    wait_until(lambda: statuses[503] or statuses.total() > 8)


def connections(greedy, _served, exit_stack):
    for number in range(400):
        connection = exit_stack.enter_context(
            contextlib.closing(socket.create_connection(("127.0.0.1", greedy.port), SECONDS))
        )
        with contextlib.suppress(OSError):
            connection.sendall(b"GET /v1/runs HTTP/1.1\r\nHost: local" if number % 2 else b"")


TAKEN = {
    "streams": streams,
    "waits": waits,
    "long lists": seats("lists"),
    "records": seats("records"),
    "ends": seats("ends"),
    "body room": body_room,
    "queue": queue,
    "database": database,
    "audits": audits,
    "connections": connections,
}
"""How each is taken; tries at webhooks, which no request waits for, stand in tests/workers/test_sender.py."""


@pytest.mark.parametrize("what", TAKEN)
def test_where_one_takes_all_it_can_another_gets_on(served, two, exit_stack, samples, what):
    greedy, other = two
    other.ask("GET", "/v1/me")  # a key that was good once is known to the server
    with exit_stack:
        TAKEN[what](greedy, served, exit_stack)
        other.gets_on(samples)
    emptied(served[0])


def test_where_one_takes_all_of_everything_another_gets_on(served, two, exit_stack, samples):
    greedy, other = two
    other.ask("GET", "/v1/me")
    with exit_stack:
        for what in ("streams", "waits", "long lists", "records", "ends", "body room", "queue"):
            TAKEN[what](greedy, served, exit_stack)
        other.gets_on(samples)
    emptied(served[0])


def emptied(site):
    """What waits in the queue is canceled, so that the next test finds it as this one did."""
    from store import tables
    from store.runs import lifecycle

    with site.context.database.read() as reading:
        waiting = list(reading.execute(tables.run.select().where(tables.run.c.status == "queued")))
    with site.context.database.begin() as transaction:
        for row in waiting:
            lifecycle.request_cancel(transaction, row.public_id, tenant_id=row.tenant_id)
    site.context.backlog._counted.clear()


def test_requests_take_turns_among_tenants_where_no_thread_is_free(module_make, exit_stack):
    """However many of one wait for a thread, another's is among the next two that are answered."""
    from service.process.address import listen
    from service.server.http_server import Server
    from store.runs import lifecycle

    site = module_make(threads=1, api_key="the-server")
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=1)
    server.start()
    exit_stack.callback(server.stop)
    greedy, other = (Tenant(site, listening.getsockname()[1], name, exit_stack) for name in ("tnt_greedy", "tnt_other"))
    other.ask("GET", "/v1/me")
    run = greedy.submit()
    greedy.send_request(f"GET /v1/runs/{run}", Prefer="wait=30")
    wait_until(lambda: site.context.waiters.waiting == 1)
    queue = server._server.task_dispatcher.queue
    body = b'{"source": "x = 1\\n"}'
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    for number, tenant in enumerate([*[greedy] * 30, other]):
        tenant.send_request("POST /v1/runs", **sent).sendall(body)
        wait_until(lambda number=number: len(queue) == number + 1)
    with site.context.database.begin() as transaction:
        lifecycle.request_cancel(transaction, run, tenant_id=greedy.id)
    wait_until(lambda: not queue)
    wait_until(lambda: len(load_run_tenants(site)) == 32)
    assert other.id in load_run_tenants(site)[1:3]


def load_run_tenants(site):
    """Return the tenant of each run, in the order in which the runs were stored."""
    from store import tables

    with site.context.database.read() as reading:
        return [row.tenant_id for row in reading.execute(tables.run.select().order_by(tables.run.c.id))]


def test_workers_take_turns_among_tenants(served, two):
    """However much one has waiting, another's run is among the next that are claimed."""
    from store.runs import lifecycle

    site, _port, _server = served
    emptied(site)
    greedy, other = two
    for _ in range(30):
        assert greedy.submit() is not None
    mine = other.submit()
    claimed = [lifecycle.claim(site.context.database, site.worker()) for _ in range(2)]
    assert mine in {claim.public_id for claim in claimed if claim is not None}
    emptied(site)


def test_frames_of_one_are_decoded_while_anothers_are(served, two, exit_stack, samples, monkeypatch):
    """However long those take."""
    from service.api.runs import recorders

    greedy, other = two
    decoding, goes_on, decoded = threading.Event(), threading.Event(), recorders.frame_kind
    exit_stack.callback(goes_on.set)
    frames = list(split(dumps(samples.tutorial())))
    slow = frames[0][:-1] + b"?"

    def kind_of(frame):
        if frame == slow:
            decoding.set()
            assert goes_on.wait(SECONDS)
        return decoded(frame)

    monkeypatch.setattr(recorders, "frame_kind", kind_of)
    jobs = [new_run_id(), new_run_id()]
    for tenant, job in zip(two, jobs, strict=True):
        assert tenant.ask("PUT", f"/v1/runs/{job}", {})[0] == 201
    hanging = greedy.send_request(
        f"PUT /v1/runs/{jobs[0]}/frames/0", **{"Content-Type": MEDIA, "Content-Length": len(slow)}
    )
    hanging.sendall(slow)
    assert decoding.wait(SECONDS)
    for number, frame in enumerate(frames):
        path = f"/v1/runs/{jobs[1]}/frames/{number}"
        assert other.ask("PUT", path, frame, **{"Content-Type": MEDIA})[0] == 204
    assert not goes_on.is_set()


@pytest.fixture
def standing(module_make, exit_stack, full_tier):
    """A server, two tenants, and a view that stands until `go` is set; `begun` has the tenants that are in it."""
    from service.auth.caller import caller
    from service.process.address import listen
    from service.server.http_server import Server

    site = module_make(threads=16, api_key="the-server")
    begun, go = [], threading.Event()

    @site.app.get("/v1/standing")
    def stand():
        begun.append(caller().tenant_id)
        assert go.wait(SECONDS)
        return {}

    @site.app.get("/v1/large")
    def write():
        """More than waitress and the kernel keep for a client that does not read."""
        return Response(b"x" * (1 << 20) for _ in range(64))

    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=16)
    server.start()
    exit_stack.callback(server.stop, 0)
    exit_stack.callback(go.set)
    greedy, other = (
        Tenant(site, listening.getsockname()[1], f"tnt_{name}", exit_stack) for name in ("greedy", "other")
    )
    for tenant in (greedy, other):
        for key in range(4):
            assert tenant.ask("GET", "/v1/me", key=key)[0] == 200
    return server, greedy, other, begun, go


def test_one_tenant_has_two_requests_at_work_while_another_asks_and_metrics_say_that_the_rest_waits(standing):
    server, greedy, other, begun, go = standing
    sent = [greedy.send_request("GET /v1/standing", number % 4) for number in range(20)]
    wait_until(lambda: server.turns.waiting == 18 and len(begun) == 2)
    assert begun == [greedy.id] * 2
    assert other.ask("GET", "/v1/runs")[0] == 200
    assert other.ask("GET", "/healthz")[0] == 200
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", greedy.port, timeout=SECONDS)) as operator:
        operator.request("GET", "/metrics", headers={"Authorization": "Bearer the-server"})
        told = operator.getresponse().read().decode()
    assert "backprobe_http_waiting 18.0" in told
    assert 'backprobe_http_held_back_total{kind="waited"} 18.0' in told
    assert 'backprobe_http_held_back_total{kind="refused"} 0.0' in told
    go.set()
    assert {greedy.status_of(connection) for connection in sent} == {200}
    assert server.turns.waiting == 0


def test_a_request_that_was_held_back_for_too_long_is_told_to_come_again(standing, monkeypatch):
    server, greedy, _other, begun, go = standing
    monkeypatch.setattr("service.limits.turns.LONGEST_SECONDS", 0.0)
    for _ in range(2):
        greedy.send_request("GET /v1/standing")
    wait_until(lambda: len(begun) == 2)
    late = greedy.send_request("GET /v1/standing")
    wait_until(lambda: server.turns.waiting == 1)
    go.set()
    answer = http.client.HTTPResponse(late)
    answer.begin()
    told = json.loads(answer.read())
    assert (answer.status, told["code"], answer.headers["Retry-After"]) == (503, "too-many-at-work", "5")
    assert "was not begun" in told["detail"]
    assert len(begun) == 2


def test_a_client_that_does_not_read_its_answer_keeps_no_request_of_its_tenant_from_being_answered(standing):
    server, greedy, other, _begun, _go = standing
    for key in range(3):
        greedy.send_request("GET /v1/large", key)
    wait_until(
        lambda: sum(len(active_channel.requests) for active_channel in server._server.active_channels.values()) == 3
    )
    other.ask("GET", "/v1/me")
    for _ in range(3):
        assert greedy.ask("GET", "/v1/me")[0] == 200
    assert server.turns.waiting == 0


def test_two_that_wait_for_a_run_s_end_keep_no_request_of_their_tenant_from_being_answered(standing, exit_stack):
    server, greedy, other, _begun, _go = standing
    run = greedy.submit()
    exit_stack.callback(greedy.ask, "POST", f"/v1/runs/{run}/cancel")
    for key in range(4):
        greedy.send_request(f"GET /v1/runs/{run}", key, Prefer="wait=30")
    other.ask("GET", "/v1/me")
    wait_until(lambda: greedy.site.context.waiters.waiting == 4)
    assert greedy.ask("GET", "/v1/me")[0] == 200
    assert server.turns.waiting == 0


def test_a_person_who_is_alone_has_all_threads(module_make, exit_stack):
    """On loopback without a key there is nobody to share with."""
    from service.process.address import listen
    from service.server.http_server import Server

    site = module_make(threads=3)
    inside = threading.Barrier(3)

    @site.app.get("/v1/standing")
    def stand():
        inside.wait(SECONDS)
        return {}

    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=3)
    server.start()
    exit_stack.callback(server.stop)
    answers = []

    def ask():
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=SECONDS)
        ) as connection:
            connection.request("GET", "/v1/standing")
            answers.append(connection.getresponse().status)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert answers == [200] * 3
