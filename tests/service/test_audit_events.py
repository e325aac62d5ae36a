"""Audits while they go on, as events; and what they came to, day by day."""

from __future__ import annotations

import contextlib
import datetime
import json
import socket
import threading

import pytest
import sqlalchemy as sa

from store import tables
from store.audits import judging

STREAM = {"Accept": "text/event-stream"}
SECONDS = 60


def ask(site, method, path, status, **more):
    answer = site.client.open(path, method=method, **more)
    assert answer.status_code == status, answer.text
    return answer


def begin_audit(site, samples, *names, **more):
    """Begin an audit of the tutorial under each of these names. Return its id and its runs by name."""
    items = [{"custom_id": name, "source": samples.TUTORIAL} for name in names]
    audit = ask(site, "POST", "/v1/audits", 202, json={"items": items, **more}).json["id"]
    told = ask(site, "GET", f"/v1/audits/{audit}/items", 200).json["items"]
    return audit, {item["custom_id"]: item["run"] for item in told}


def settle(site):
    return judging.settle(site.context.database)


def events_of(text):
    """(id, kind, data) of each event of a stream."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return found


def test_what_is_new_of_an_audit_is_told_once(site, samples):
    audit, runs = begin_audit(site, samples, "a", "b")
    path = f"/v1/audits/{audit}/events"
    (first,) = ask(site, "GET", path, 200).json["items"]
    assert (first["kind"], first["items"], first["verdict"]) == ("progress", {"total": 2, "running": 2}, None)
    assert ask(site, "GET", f"{path}?after={first['seq']}", 200).json == {"items": [], "next_cursor": None}
    site.finish(runs["a"], samples.tutorial())
    settle(site)
    (second,) = ask(site, "GET", f"{path}?after={first['seq']}", 200).json["items"]
    assert (second["kind"], second["items"]["running"], second["seq"] > first["seq"]) == ("progress", 1, True)
    site.finish(runs["b"], samples.tutorial())
    settle(site)
    (last,) = ask(site, "GET", f"{path}?after={second['seq']}", 200).json["items"]
    assert (last["audit"], last["kind"], last["items"]["running"], last["verdict"]) == (audit, "judged", 0, "passed")


def test_a_stream_tells_each_item_that_ends_then_the_verdict_and_ends(site, samples):
    audit, runs = begin_audit(site, samples, "a", "b")
    answer = site.app.test_client().get(f"/v1/audits/{audit}/events", headers=STREAM, buffered=False)
    assert answer.mimetype == "text/event-stream"
    parts, seen = iter(answer.response), ""
    for run in runs.values():
        while len(events_of(seen)) < 1 or not seen.endswith("\n\n"):
            seen += next(parts).decode()
        so_far = len(events_of(seen))
        site.finish(run, samples.tutorial())
        settle(site)
        while len(events_of(seen)) == so_far:
            seen += next(parts).decode()
    seen += "".join(part.decode() for part in parts)
    answer.close()
    found = events_of(seen)
    assert [data["items"]["running"] for _, kind, data in found if kind != "end"][:2] == [2, 1]
    assert [kind for _, kind, _ in found][-2:] == ["judged", "end"]
    assert found[-2][2]["verdict"] == "passed"
    assert found[-1] == (None, "end", {"audit": audit, "status": "judged"})
    numbers = [int(number) for number, kind, _ in found if kind != "end"]
    assert numbers == sorted(set(numbers))
    path = f"/v1/audits/{audit}/events"
    assert ask(site, "GET", path, 204, headers={**STREAM, "Last-Event-ID": str(numbers[-1])}).data == b""
    resumed = events_of(ask(site, "GET", path, 200, headers={**STREAM, "Last-Event-ID": str(numbers[0])}).text)
    assert [kind for _, kind, _ in resumed] == ["judged", "end"]
    assert site.context.lists.taken == 0


def test_a_stream_of_an_audit_that_is_canceled_ends_with_it(site, samples):
    audit, _ = begin_audit(site, samples, "a")
    answer = site.app.test_client().get(f"/v1/audits/{audit}/events", headers=STREAM, buffered=False)
    parts, seen = iter(answer.response), ""
    while "event: progress" not in seen:
        seen += next(parts).decode()
    canceling = threading.Thread(target=ask, args=(site, "POST", f"/v1/audits/{audit}/cancel", 202))
    canceling.start()
    seen += "".join(part.decode() for part in parts)
    canceling.join()
    answer.close()
    assert [kind for _, kind, _ in events_of(seen)] == ["progress", "canceled", "end"]


def test_who_may_not_see_an_audit_is_told_of_no_events(site, samples):
    audit, _ = begin_audit(site, samples, "a")
    other = ask(site, "POST", "/v1/projects", 201, json={"name": "events"}).json["id"]
    made = ask(site, "POST", "/v1/keys", 201, json={"name": "events", "scopes": ["read"], "project": other}).json
    key = {"Authorization": f"Bearer {made['secret']}"}
    ask(site, "GET", f"/v1/audits/{audit}/events", 404, headers=key)
    ask(site, "GET", f"/v1/audits/{audit}/events", 404, headers={**key, **STREAM})
    assert ask(site, "GET", "/v1/audits/trend", 200, headers=key).json == {"items": []}


@pytest.fixture
def served(make, full_tier):
    """An application behind the real server; its port. Nobody works there."""
    from service.process.address import listen
    from service.server.http_server import Server

    site = make(threads=4)
    listening = listen("127.0.0.1", 0)
    server = Server(site.app, listening, threads=4)
    server.start()
    yield site, listening.getsockname()[1]
    server.stop()


def test_over_sockets_streams_of_a_run_and_of_an_audit_with_one_number_are_told_apart(served, samples):
    site, port = served
    audit, runs = begin_audit(site, samples, "a")
    with site.context.database.read() as reading:
        numbers = [reading.execute(sa.select(table.c.id)).scalars().all() for table in (tables.run, tables.audit)]
    assert numbers[0] == numbers[1], "what could be taken for each other"
    with contextlib.ExitStack() as held:
        connections = []
        for path in (f"/v1/runs/{runs['a']}/events", f"/v1/audits/{audit}/events"):
            connection = held.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", port), SECONDS)))
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
            connections.append(connection)
        texts = []
        for connection, first in zip(connections, (b"event: queued", b"event: progress"), strict=True):
            read = b""
            while first not in read:
                piece = connection.recv(1 << 16)
                assert piece, read
                read += piece
            texts.append(read)
        site.finish(runs["a"], samples.tutorial())
        settle(site)
        for at, connection in enumerate(connections):
            while piece := connection.recv(1 << 16):
                texts[at] += piece
    of_run, of_audit = (events_of(text.partition(b"\r\n\r\n")[2].decode()) for text in texts)
    assert [kind for _, kind, _ in of_run] == ["queued", "claimed", "status", "end"]
    assert {data["audit"] for _, _, data in of_audit} == {audit}
    assert [kind for _, kind, _ in of_audit][-2:] == ["judged", "end"]


def test_the_trend_counts_the_newest_verdicts_of_each_day(site, samples):
    policy = ask(site, "POST", "/v1/policies", 201, json={"name": "trend", "fail": ["BP1"]}).json["id"]
    for more in ({"policy": policy}, {"policy": policy}, {}):
        _, runs = begin_audit(site, samples, "a", "b", **more)
        for run in runs.values():
            site.finish(run, samples.tutorial())
    settle(site)
    audit, _ = begin_audit(site, samples, "c", policy=policy)
    ask(site, "POST", f"/v1/audits/{audit}/cancel", 202)
    with site.context.database.begin() as transaction:
        older = sa.select(sa.func.min(tables.audit.c.id)).scalar_subquery()
        then = tables.audit.update().where(tables.audit.c.id == older)
        transaction.execute(then.values(created_at="2026-05-03T12:00:00.000Z"))
        verdict = transaction.execute(sa.select(tables.audit_verdict)).mappings().first()
        before = {**verdict, "ruleset": "older", "verdict": "passed", "judged_at": "2020-01-01T00:00:00.000Z"}
        transaction.execute(tables.audit_verdict.insert().values(before))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = f"/v1/audits/trend?policy={policy}"
    (old,) = ask(site, "GET", f"{path}&from=2026-05-01&to=2026-05-31", 200).json["items"]
    assert old == {
        "day": "2026-05-03", "audits": 1, "passed": 0, "failed": 1, "canceled": 0,
        "items": {"pass": 0, "warn": 0, "fail": 2, "error": 0, "not_run": 0},
        "findings": {"new": 1, "known": 0, "gone": 0},
    }  # fmt: skip
    (new,) = ask(site, "GET", f"{path}&from={today}&to={today}", 200).json["items"]
    assert [new[name] for name in ("day", "audits", "passed", "failed", "canceled")] == [today, 2, 0, 1, 1]
    (every,) = ask(site, "GET", f"/v1/audits/trend?from={today}&to={today}", 200).json["items"]
    assert (every["audits"], every["passed"], every["items"]["warn"], every["items"]["fail"]) == (3, 1, 2, 2)
    assert ask(site, "GET", f"/v1/audits/trend?from=2020-01-01&to={today}", 422).json["code"] == "too-much-asked"
    nobody = "pol_01J9ZZZZZZZZZZZZZZZZZZZZZZ"
    assert ask(site, "GET", f"/v1/audits/trend?policy={nobody}", 200).json["items"] == []
