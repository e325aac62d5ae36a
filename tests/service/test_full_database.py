"""A database with a cap: who fills it is refused, and nobody else loses a record; on both databases."""

from __future__ import annotations

import dataclasses

import pytest

from store.access import shares
from store.records.expiry import removal
from store.runs import snippets

BIG = "#" * 300_000


@pytest.fixture
def capped(site):
    """`capped(more)`: the cap, so many bytes above what there is; the application knows it from now on."""
    before = site.app.extensions["backprobe"]

    def set_cap(more):
        with site.context.database.read() as reading:
            most = shares.used_bytes(reading) + more
        room = dataclasses.replace(before.room, most_bytes=most)
        site.app.extensions["backprobe"] = dataclasses.replace(before, room=room)
        return most

    yield set_cap
    site.app.extensions["backprobe"] = before


def keep(site, headers, n):
    files = [{"path": "a.py", "text": f"x = {n}\n{BIG}"}]
    return site.client.post("/v1/snippets", json={"files": files}, headers=headers)


def reaped(site, most):
    """What the reaper does every ten seconds."""
    database = site.context.database
    gone = [removed.run for removed in removal.shrink(database, most)]
    snippets.expire_unused(database)
    shares.fold(database)
    return gone


def record_of(site, headers, samples):
    run = site.client.post("/v1/runs", json={"source": samples.TUTORIAL}, headers=headers).json["id"]
    site.finish(run, samples.tutorial())
    return run


def test_who_fills_the_database_is_refused_and_others_keep_their_records(site, two, capped, samples):
    """60 programs of one tenant, sent as fast as they are taken, had cost the other its records within seconds."""
    attacker, other = two
    run = record_of(site, other, samples)
    most = capped(3_000_000)
    refused, taken = None, 0
    for n in range(30):
        answer = keep(site, attacker, n)
        if answer.status_code != 201:
            refused = refused or answer
        else:
            taken += 1
        if n % 15 == 14:
            assert reaped(site, most) == []
            assert site.client.get(f"/v1/runs/{run}/tensors", headers=other).status_code == 200
    assert refused is not None
    assert 5 < taken < 15
    assert (refused.status_code, refused.json["code"], refused.headers["Retry-After"]) == (507, "database-full", "600")
    assert refused.json["detail"].startswith("The database is full, and ")
    assert "are your share" in refused.json["detail"]
    assert keep(site, other, 0).status_code == 201
    later = record_of(site, other, samples)
    assert reaped(site, most) == []
    for run_id in (run, later):
        assert site.client.get(f"/v1/runs/{run_id}/tensors", headers=other).status_code == 200


def test_who_is_over_its_share_loses_its_own_records_and_is_told_why(site, two, capped, samples):
    attacker, other = two
    run, theirs = record_of(site, other, samples), record_of(site, attacker, samples)
    most = capped(1_000_000)
    statuses = {keep(site, attacker, n).status_code for n in range(8)}
    assert statuses == {201, 507}
    assert reaped(site, most) == [theirs]
    assert site.client.get(f"/v1/runs/{run}/tensors", headers=other).status_code == 200
    gone = site.client.get(f"/v1/runs/{theirs}/tensors", headers=attacker)
    assert (gone.status_code, gone.json["code"]) == (410, "record-expired")
    assert gone.json["detail"] == (
        f"The record of {theirs} was dropped before its time: the database was nearly full, and more than your share of "
        "it was yours."
    )
    assert keep(site, attacker, 100).status_code == 201  # there is room again


@pytest.mark.parametrize(
    ("how", "detail"), [("deleted", "deleted on request"), ("kept-until", "was kept until 2020-01-01")]
)
def test_a_record_that_is_gone_says_why(site, samples, how, detail):
    from store.tables import run as runs

    run = site.finished()
    if how == "deleted":
        assert site.client.delete(f"/v1/runs/{run}").status_code == 204
    else:
        with site.context.database.begin() as transaction:
            transaction.execute(runs.update().values(kept_until="2020-01-01T00:00:00.000Z"))
        assert [removed.run for removed in removal.expire(site.context.database)] == [run]
    for ask in (f"/v1/runs/{run}/tensors", f"/v1/runs/{run}/record", f"/v1/runs/{run}/output"):
        told = site.client.get(ask)
        assert (told.status_code, detail in told.json["detail"]) == (410, True), told.text
    assert detail in site.client.post(f"/v1/runs/{run}/judge").json["detail"]


def test_the_cap_is_that_of_the_environment(make):
    store = make().context.settings.store
    assert store.max_database_bytes is None
    site = make(store=dataclasses.replace(store, max_database_bytes=1))
    assert site.context.room.most_bytes == 1
    refused = site.post()
    assert (refused.status_code, refused.json["code"]) == (507, "database-full")
    assert site.client.get("/v1/runs").json["items"] == []
    assert make(store=dataclasses.replace(store, max_database_bytes=1 << 40)).post().status_code == 202
