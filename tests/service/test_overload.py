"""Submissions outrun the workers: the queue's growth is refused with a time to come again, and reads stay served."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import threading
import time
from collections import Counter

import pytest

CLIENTS = 20
SECONDS = 60
"""For one answer: beyond it a client gives up, and the test fails."""

REFUSED = {429: "quota-exceeded", 503: "queue-full"}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def served(request, tmp_path, full_tier):
    """`served(rates=...)`: an application behind the real server, and its port; nobody works."""
    make = request.getfixturevalue("module_make")
    from service.process.address import listen
    from service.server.http_server import Server
    from service.settings import RateLimits

    with contextlib.ExitStack() as stack:

        def start_server(**settings):
            url = request.getfixturevalue("module_postgres_url") if request.param == "postgresql" else None
            rates = RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0)
            site = make(url, **{"rates": rates} | settings)
            listening = listen("127.0.0.1", 0)
            server = Server(site.app, listening, threads=16)
            server.start()
            stack.callback(server.stop)
            return site, listening.getsockname()[1]

        yield start_server


class Client(threading.Thread):
    """Submits without a pause, and reads after each; what it was told, in order."""

    def __init__(self, port, until):
        super().__init__(daemon=True)
        self.port, self.until = port, until
        self.submits, self.reads, self.failed = [], [], []

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            while not self.until.is_set():
                self.submits.append(self.ask(connection, "POST", b'{"source": "x = 1\\n"}'))
                self.reads.append(self.ask(connection, "GET"))
        except OSError as error:
            self.failed.append(repr(error))
        finally:
            connection.close()

    def ask(self, connection, method, body=None):
        connection.request(
            method, "/v1/runs?limit=5" if body is None else "/v1/runs", body, {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def outrun(port, until):
    """All clients at once, until the condition is true; what they were told."""
    stop = threading.Event()
    clients = [Client(port, stop) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    deadline = time.monotonic() + 2 * SECONDS
    while not until(clients):
        assert time.monotonic() < deadline, [Counter(told[0] for told in client.submits) for client in clients]
        time.sleep(0.05)
    stop.set()
    for client in clients:
        client.join(2 * SECONDS)
        assert not client.is_alive(), "a request hangs"
    assert [client.failed for client in clients] == [[]] * CLIENTS
    return [told for client in clients for told in client.submits], [
        told for client in clients for told in client.reads
    ]


def everybody_refused(clients):
    return all(any(told[0] in REFUSED for told in client.submits) for client in clients)


def waiting(site):
    return site.client.get("/v1/queue").json["queues"][0]["queued"]


def check(submits, reads, status):
    assert {told[0] for told in reads} == {200}
    assert {told[0] for told in submits} == {202, status}
    for _, headers, text in (told for told in submits if told[0] == status):
        problem = json.loads(text)
        assert (problem["code"], problem["status"]) == (REFUSED[status], status)
        assert headers["Content-Type"] == "application/problem+json"
        assert int(headers["Retry-After"]) >= 1


def test_a_queue_that_workers_do_not_empty_is_full_for_everybody_and_takes_more_when_they_do(served):
    site, port = served()
    before = waiting(site)
    most = site.context.backlog.most = before + 50
    submits, reads = outrun(port, everybody_refused)
    check(submits, reads, 503)
    accepted = sum(told[0] == 202 for told in submits)
    queued = waiting(site)
    assert queued == before + accepted
    # A count is renewed each second, and does not see what others have not committed yet: each of those at work then
    # may pass the bound by one.
    assert most <= queued < most + 16
    for refused in (told[2] for told in submits if told[0] == 503):
        told = re.fullmatch(rf"(\d+) runs wait in the queue cpu, {most} may\.", json.loads(refused)["detail"])
        # A run that is committed while another request counts may be counted twice, until the next count.
        assert told is not None and most <= int(told[1]) < queued + 16
    from store.runs import lifecycle as runs

    for _ in range(queued - most + 3):
        assert runs.claim(site.context.database, site.worker()) is not None
    deadline = time.monotonic() + SECONDS
    while (answer := site.post()).status_code == 503:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert answer.status_code == 202


def test_a_tenant_that_outruns_its_quota_is_refused_and_its_reads_are_served(served):
    from store.tables import tenant

    site, port = served()
    allowed = 30 + waiting(site)

    def allow(runs):
        with site.context.database.begin() as transaction:
            transaction.execute(tenant.update().where(tenant.c.id == 1).values(max_queued=runs))

    allow(allowed)
    try:
        submits, reads = outrun(port, everybody_refused)
    finally:
        allow(10_000)
    check(submits, reads, 429)
    # A request that counts sees what others have committed: each of those at work beside it may pass the quota by one.
    assert allowed <= waiting(site) < allowed + 16


def test_each_of_many_keys_is_told_its_rate_while_all_submit_at_once(served):
    from service.settings import RateLimits

    site, port = served(api_key="the-server", rates=RateLimits(reads=1000, submits=5, tenant_reads=0, tenant_submits=0))
    key = {"Authorization": "Bearer the-server", "Content-Type": "application/json"}
    secrets = [
        site.client.post("/v1/keys", json={"name": f"k{n}", "scopes": ["read", "runs:write"]}, headers=key).json[
            "secret"
        ]
        for n in range(4)
    ]
    told = {secret: [] for secret in secrets}

    def submit(secret):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        for _ in range(8):
            connection.request(
                "POST", "/v1/runs", b'{"source": "x = 1\\n"}', key | {"Authorization": f"Bearer {secret}"}
            )
            answer = connection.getresponse()
            answer.read()
            told[secret].append((answer.status, answer.headers))
        connection.close()

    threads = [threading.Thread(target=submit, args=(secret,)) for secret in secrets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * SECONDS)
    for answers in told.values():
        statuses = Counter(status for status, _ in answers)
        assert set(statuses) == {202, 429}
        assert statuses[202] in {5, 6}  # one comes back in 12 s
        assert {headers["RateLimit-Policy"] for _, headers in answers} == {'"key-submits";q=5;w=60'}
        left = [int(headers["RateLimit"].partition("r=")[2].partition(";")[0]) for _, headers in answers]
        assert left[:5] == [4, 3, 2, 1, 0]
        assert all(1 <= int(headers["Retry-After"]) <= 12 for status, headers in answers if status == 429)
