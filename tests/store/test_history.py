"""The history of tensors as arrays: what chunks answer is what the snapshots say, however they were cut."""

import numpy as np
import pytest

from store import queries, tables
from store.records.bulk import Batch, write
from store.records.chunk_encoding import chunk_rows, floats
from store.records.chunk_format import CHUNK, GRAD_NONE, REQUIRES_GRAD
from store.runs import completion

TENSORS, MOMENTS = 6, CHUNK + 200


def whole_run():
    """Tensor 0 is frozen, 1 has no gradient for a while, 2 is seen at moments with gaps, 3 from the middle on only."""
    random = np.random.default_rng(3)
    norm = random.lognormal(size=(TENSORS, MOMENTS)).astype("<f4")
    flags = np.full((TENSORS, MOMENTS), REQUIRES_GRAD, "<i2")
    flags[0] = 0
    norm[0] = np.nan
    flags[1, 100:140] |= GRAD_NONE
    norm[1, 100:140] = np.nan
    norm[4, 77] = 1e6
    seen = np.ones((TENSORS, MOMENTS), bool)
    seen[2] = random.random(MOMENTS) < 0.4
    seen[3, : MOMENTS // 2] = False
    tensor, moment = np.nonzero(seen)
    return {
        "tensor": tensor.astype("<i4"),
        "moment": moment.astype("<i4"),
        "flags": flags[seen],
        "version": (moment // 1).astype("<i4"),
        "grad_norm": floats(norm[seen].tolist()),
    }


@pytest.fixture(params=[MOMENTS, 96])
def stored_history(request, database, submit, claim, look, a_record):
    """A finished run with that history, and the history itself: in long chunks, or in short ones."""
    whole = whole_run()
    run = submit()
    held = claim()
    assert completion.finish(database, held, completion.Ending(status="succeeded"), without_snapshots(a_record), None)
    for start in range(0, MOMENTS, request.param):
        chosen = (whole["moment"] >= start) & (whole["moment"] < start + request.param)
        rows = chunk_rows({name: column[chosen] for name, column in whole.items()})
        with database.begin() as transaction:
            write(transaction, held.key, [Batch(table=tables.snapshot_chunk, rows=rows)])
    return whole, look(run)


def without_snapshots(record):
    """Six tensors of their own, so that a state has whom to be of; the history comes from elsewhere."""
    import msgspec

    first = record.tensors[0]
    tensors = tuple(msgspec.structs.replace(first, tensor=n, moment=0) for n in range(TENSORS))
    return msgspec.structs.replace(record, tensors=tensors, snapshots=())


def test_series_and_state_and_heatmap_are_what_the_snapshots_say(stored_history, database):
    whole, run = stored_history
    with database.read() as reading:
        for tensor in range(TENSORS):
            of = whole["tensor"] == tensor
            for low, high in ((0, MOMENTS), (90, 150), (CHUNK - 1, CHUNK), (MOMENTS, MOMENTS + 5)):
                found = queries.series(reading, run, tensor, ("version", "grad_norm"), from_moment=low, to_moment=high)
                chosen = of & (whole["moment"] >= low) & (whole["moment"] <= high)
                for name in ("moment", "version", "grad_norm"):
                    assert found[name].tobytes() == whole[name][chosen].tobytes()
        for moment in (0, 50, 120, MOMENTS // 2, CHUNK, MOMENTS - 1, MOMENTS + 9):
            state = queries.state_at(reading, run, moment, ("flags", "version", "grad_norm"))
            last = [
                int(np.flatnonzero((whole["tensor"] == n) & (whole["moment"] <= moment))[-1:].sum())
                for n in range(TENSORS)
                if ((whole["tensor"] == n) & (whole["moment"] <= moment)).any()
            ]
            for name in ("tensor", "moment", "flags", "version", "grad_norm"):
                assert state[name].tobytes() == whole[name][last].tobytes(), (moment, name)
        points = [0, 3, 110, CHUNK - 1, CHUNK, MOMENTS - 1, MOMENTS + 3]
        heat = queries.heatmap(reading, run, (5, 2, 0, 3), points)
    expected = np.full((4, len(points)), np.nan, "<f4")
    for row, tensor in enumerate((5, 2, 0, 3)):
        for place, moment in enumerate(points):
            hit = (whole["tensor"] == tensor) & (whole["moment"] == moment)
            expected[row, place] = whole["grad_norm"][hit][0] if hit.any() else np.nan
    np.testing.assert_array_equal(heat.values, expected)


def test_the_highest_norms_are_found_however_few_chunks_name_them(stored_history, database, monkeypatch):
    run = stored_history[1]
    with database.read() as reading:
        by_index = [queries.top(reading, run, limit=limit) for limit in (1, 3, 5, 20)]
        monkeypatch.setattr("store.queries.history.highest_norms.FIRST", 1)  # the first chunks are of one tensor
        by_all = [queries.top(reading, run, limit=limit) for limit in (1, 3, 5, 20)]
        assert queries.top(reading, run, limit=0) == ()
    assert by_index == by_all
    assert [len(runs) for runs in by_all] == [1, 3, 5, 5]


def test_top_peaks_and_tensors_without_grad_are_what_the_snapshots_say(stored_history, database):
    whole, run = stored_history
    with database.read() as reading:
        highest = queries.top(reading, run, limit=3)
        missing = queries.tensors_without_grad(reading, run)
        blocks = queries.peaks(reading, run, range(TENSORS))
    by_tensor = {n: np.nanmax(whole["grad_norm"][whole["tensor"] == n]) for n in range(1, TENSORS)}
    order = sorted(by_tensor, key=lambda n: -by_tensor[n])[:3]
    assert [(row.tensor, row.grad_norm) for row in highest] == [(n, float(by_tensor[n])) for n in order]
    assert (highest[0].tensor, highest[0].moment) == (4, 77)
    assert missing == (1,)
    assert 0 not in blocks
    for tensor, (moments, norms) in blocks.items():
        assert len(moments) == len(norms) >= MOMENTS // 16 // 3
        assert np.nanmax(norms) == by_tensor[tensor]


def test_a_run_without_a_record_has_no_history(submit, database, look):
    run = look(submit())
    with database.read() as reading:
        assert len(queries.series(reading, run, 0, ("flags",))["moment"]) == 0
        assert len(queries.state_at(reading, run, 0)["moment"]) == 0
        assert np.isnan(queries.heatmap(reading, run, (0,), (1,)).values).all()
        assert (queries.top(reading, run), queries.tensors_without_grad(reading, run)) == ((), ())
        assert queries.peaks(reading, run, (0,)) == {}
        with pytest.raises(KeyError):
            queries.series(reading, run, 0, ("no_such",))
