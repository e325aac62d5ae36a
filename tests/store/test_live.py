"""Snapshots of a run that goes on: short tails, merged under the fence; a reader never knows."""

import numpy as np
import pytest
import sqlalchemy as sa

from store import tables
from store.records import live_snapshots, storage
from store.records.chunk_encoding import NAMES, chunk_rows, columns_of, floats
from store.records.chunk_format import CHUNK
from store.records.live_snapshots import Live
from store.records.rows import _grad_fns, snapshot_columns
from store.runs import completion, lifecycle

MOMENTS = 2 * CHUNK + 37


def columns(tensors=3, moments=MOMENTS, seed=0):
    """A run of some tensors: a norm that wanders, NaNs in places, a version that counts, one frozen."""
    random = np.random.default_rng(seed)
    n = tensors * moments
    norm = floats(random.lognormal(size=n).tolist())
    norm[::97] = np.nan
    return {
        "tensor": np.repeat(np.arange(tensors, dtype="<i4"), moments),
        "moment": np.tile(np.arange(moments, dtype="<i4") * 2, tensors),
        "flags": np.repeat(random.integers(0, 8, tensors).astype("<i2"), moments),
        "version": np.tile(np.arange(moments, dtype="<i4"), tensors),
        "grad_norm": norm,
        "grad_nan": random.integers(0, 2, n).astype("<i8"),
    }


def cut_moments(whole, first, last):
    """The snapshots of the moments of these numbers."""
    chosen = (whole["moment"] >= 2 * first) & (whole["moment"] < 2 * last)
    return {name: column[chosen] for name, column in whole.items()}


def load_chunks(database, held):
    query = sa.select(*(tables.snapshot_chunk.c[name] for name in NAMES)).where(
        tables.snapshot_chunk.c.run_id == held.run_id, tables.snapshot_chunk.c.attempt == held.attempt
    )
    with database.read() as reading:
        order = (tables.snapshot_chunk.c.tensor, tables.snapshot_chunk.c.first_moment)
        return reading.execute(query.order_by(*order)).mappings().all()


def same(whole, rows):
    found = columns_of(rows)
    return all(found[name].tobytes() == column.tobytes() for name, column in whole.items())


@pytest.mark.parametrize("flush", [1, 16, 96, CHUNK, CHUNK + 1, MOMENTS])
def test_however_it_is_cut_it_ends_as_the_rows_of_the_whole(database, submit, claim, flush):
    moments = MOMENTS if flush > 1 else 40
    whole = columns(moments=moments)
    submit()
    held = claim()
    writer = Live(database, held)
    for start in range(0, moments, flush):
        writer.append(cut_moments(whole, start, start + flush))
        assert same(cut_moments(whole, 0, start + flush), load_chunks(database, held))
        if flush >= 16 or start == 39:
            most = sum(-(-n // CHUNK) for n in [start + flush] * 3) + 3 * -(-CHUNK // flush)
            assert len(load_chunks(database, held)) <= most
    writer.close()
    assert [tuple(row.values()) for row in load_chunks(database, held)] == chunk_rows(whole)


def test_tensors_that_come_and_go_merge_each_at_its_own_pace(database, submit, claim):
    whole = columns(tensors=4)
    life = {0: (0, MOMENTS), 1: (100, 700), 2: (500, MOMENTS), 3: (900, 901)}
    alive = [life[t][0] <= m // 2 < life[t][1] for t, m in zip(whole["tensor"], whole["moment"], strict=True)]
    whole = {name: column[np.array(alive)] for name, column in whole.items()}
    submit()
    held = claim()
    writer = Live(database, held)
    for start in range(0, MOMENTS, 96):
        writer.append(cut_moments(whole, start, start + 96))
    writer.close()
    assert same(whole, load_chunks(database, held))


def test_more_tensors_than_one_merge_takes(database, submit, claim, monkeypatch):
    monkeypatch.setattr(live_snapshots, "MERGE_TENSORS", 2)
    whole = columns(tensors=5, moments=600)
    submit()
    held = claim()
    writer = Live(database, held)
    for start in range(0, 600, 96):
        writer.append(cut_moments(whole, start, start + 96))
    writer.close()
    assert [tuple(row.values()) for row in load_chunks(database, held)] == chunk_rows(whole)


def test_an_append_is_a_heartbeat(database, submit, claim, look):
    run = submit()
    held = claim(lease_seconds=0.001)
    with database.begin() as transaction:
        lifecycle.request_cancel(transaction, run.id)
    slow = Live(database, held)
    assert slow.append(columns(moments=2)).cancel_requested
    with database.begin() as transaction:
        renewed = sa.update(tables.run).values(lease_until=tables.Now(-1.0))
        transaction.execute(renewed)
    held = lifecycle.Claim(**{name: getattr(held, name) for name in held.__slots__} | {"lease_seconds": 60.0})
    Live(database, held).append(cut_moments(columns(moments=4), 2, 4))
    assert lifecycle.expire_leases(database) == lifecycle.Expired(requeued=(), lost=(), canceled=())


def test_a_stale_attempt_appends_and_merges_nothing(database, submit, claim, change):
    submit()
    held = claim(lease_seconds=-1.0)
    writer = Live(database, held)
    writer.append(columns(moments=5))
    writer.append(cut_moments(columns(moments=9), 5, 9))
    assert lifecycle.expire_leases(database).requeued == (held.public_id,)
    assert load_chunks(database, held) == []
    for act in (lambda: writer.append(cut_moments(columns(moments=12), 9, 12)), writer.close):
        with pytest.raises(lifecycle.FencedOut):
            act()
    assert load_chunks(database, held) == []
    change(held, not_before="2020-01-01T00:00:00.000Z")
    fresh = claim(worker="w2")
    Live(database, fresh).append(columns(moments=3))
    with pytest.raises(lifecycle.FencedOut):
        writer.append(cut_moments(columns(moments=12), 9, 12))
    assert load_chunks(database, held) == []
    assert len(load_chunks(database, fresh)) == 3


def test_a_merge_that_fails_half_way_loses_nothing(database, submit, claim, monkeypatch):
    submit()
    held = claim()
    writer = Live(database, held)
    whole = columns(moments=40)
    writer.append(cut_moments(whole, 0, 20))
    writer.append(cut_moments(whole, 20, 40))
    before = load_chunks(database, held)

    def broken(*_):
        raise OSError("the connection is gone")

    monkeypatch.setattr(live_snapshots, "write", broken)
    with pytest.raises(OSError, match="gone"):
        writer.close()
    assert load_chunks(database, held) == before


def test_the_record_of_the_end_takes_the_place_of_what_was_appended(database, submit, claim, a_record, same):
    submit()
    held = claim()
    early = snapshot_columns(a_record.snapshots[:2], _grad_fns(a_record.snapshots))
    Live(database, held).append(early)
    good = completion.Ending(status="succeeded", exit_code=0)
    assert completion.finish(database, held, good, a_record, None, live=True)
    with database.read() as reading:
        assert same(storage.load(reading, held.key), a_record) in ([], ["streams"])
