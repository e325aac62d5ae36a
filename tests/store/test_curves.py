"""Series and heatmaps as they are returned: what was not captured is None, NaN is a word, peaks are never lost."""

import math

import msgspec
import numpy as np
import pytest

from backprobe import record as r
from store import queries
from store.queries.history import curves
from store.records.chunk_format import MISSING
from tests.store.small_record import snapshot

MISSED = np.array([MISSING], "<u4").view("<f4")[0]
NORMS = [0.5, math.nan, 3.0, math.inf, 0.25, 0.125, 7.0, 1.0, 0.0, 2.0]


@pytest.fixture
def stored_run(ended_run, a_record):
    """Tensor 1 with a gradient after each of ten steps' backward calls, tensor 0 without any, 2 seen once."""
    moments, snapshots = [], [snapshot(0, 0, value=r.Statistics(norm=1.0, min=-2.0, max=1.0, counted=3, nan=0))]
    for step, norm in enumerate(NORMS):
        at = 2 * step
        moments += [
            r.Moment(moment=at, kind="after-statement", time_ns=at, site=0, step=step),
            r.Moment(moment=at + 1, kind="after-backward", time_ns=at, site=3, step=step, k=step),
        ]
        stats = r.Statistics(norm=norm, min=-norm, max=norm, counted=3, nan=3 * math.isnan(norm))
        snapshots.append(
            snapshot(1, at + 1, requires_grad=True, grad="present", grad_id=0, grad_version=0, grad_stats=stats)
        )
    snapshots.append(snapshot(2, 4))
    end = r.Moment(moment=20, kind="end", time_ns=20, step=10)
    changed = msgspec.structs.replace(
        a_record, moments=(*moments, end), snapshots=tuple(snapshots), small_values=(), leaf_grads=(), retentions=(),
        inplace_events=(),
    )  # fmt: skip
    return ended_run(changed)


@pytest.fixture
def ask(database, stored_run):
    def ask_query(question, *args, **more):
        with database.read() as reading:
            return question(reading, stored_run, *args, **more)

    return ask_query


def test_a_series_is_told_with_its_steps_and_words_for_what_is_no_number(ask):
    found = ask(queries.curve, 1, ["grad_norm", "grad_nan", "value_norm", "value_nan", "version"])
    assert found.moments == list(range(1, 20, 2))
    assert found.steps == list(range(10))
    assert found.columns["grad_norm"] == [0.5, "NaN", 3.0, "Infinity", 0.25, 0.125, 7.0, 1.0, 0.0, 2.0]
    assert found.columns["grad_nan"] == [0, 3, *[0] * 8]
    assert found.columns["value_norm"] == found.columns["value_nan"] == [None] * 10
    assert found.columns["version"] == [0] * 10
    assert (found.exact, found.snapshots) == (True, 10)


def test_a_stretch_of_moments_is_cut_out(ask):
    found = ask(queries.curve, 1, ["grad_norm"], from_moment=4, to_moment=9)
    assert (found.moments, found.columns["grad_norm"]) == ([5, 7, 9], [3.0, "Infinity", 0.25])
    assert ask(queries.curve, 7, ["grad_norm"]).snapshots == 0


def test_of_each_bucket_the_peak_is_told_and_nan_is_the_highest(ask):
    found = ask(queries.curve, 1, ["grad_norm", "grad_min", "grad_nan", "value_max"], points=3)
    assert (found.exact, found.snapshots, found.moments, found.steps) == (False, 10, [1, 7, 13], [0, 3, 6])
    assert found.columns["grad_norm"] == ["NaN", "Infinity", 7.0]  # of 0.5 NaN 3 | inf 0.25 0.125 | 7 1 0 2
    assert found.columns["grad_min"] == ["NaN", "-Infinity", -7.0]
    assert found.columns["grad_nan"] == [3, 0, 0]
    assert found.columns["value_max"] == [None, None, None]
    assert ask(queries.curve, 1, ["grad_norm"], points=10).exact


def test_what_is_too_much_is_refused_with_its_count(ask, monkeypatch):
    monkeypatch.setattr(curves, "MOST_VALUES", 19)
    with pytest.raises(queries.TooMuch, match="20 values"):
        ask(queries.curve, 1, ["grad_norm", "grad_min"])
    assert ask(queries.curve, 1, ["grad_norm", "grad_min"], points=9).snapshots == 10
    with pytest.raises(queries.TooMuch, match="3 tensors at 10 moments"):
        ask(queries.heat, "grad_norm")
    monkeypatch.setattr(curves, "MOST_ROWS", 2)
    with pytest.raises(queries.TooMuch, match="3 tensors"):
        ask(queries.heat, "grad_norm", points=1)


def test_a_heatmap_has_a_row_for_each_tensor_and_none_where_nothing_was_captured(ask):
    found = ask(queries.heat, "grad_norm")
    assert (found.stat, found.kind, found.exact) == ("grad_norm", "after-backward", True)
    assert (found.moments, found.steps) == (list(range(1, 20, 2)), list(range(10)))
    assert [(row.tensor, row.name, row.line) for row in found.rows] == [(0, "x", 2), (1, "w", 3), (2, "y", 4)]
    assert found.rows[0].values == found.rows[2].values == [None] * 10
    assert found.rows[1].values == [0.5, "NaN", 3.0, "Infinity", 0.25, 0.125, 7.0, 1.0, 0.0, 2.0]


def test_a_heatmap_is_of_some_steps_and_tensors_and_thinned_out_evenly(ask):
    found = ask(queries.heat, "grad_norm", first_step=2, last_step=8, points=3, tensors=queries.TensorFilter(name="w"))
    assert (found.steps, found.exact, len(found.rows)) == ([2, 5, 8], False, 1)
    assert found.rows[0].values == [3.0, 0.125, 0.0]
    other = ask(queries.heat, "value_norm", kind="after-statement", tensors=queries.TensorFilter(numbers=[0]))
    assert other.rows[0].values == [1.0, *[None] * 9]
    assert ask(queries.heat, "grad_norm", first_step=50).moments == []


def test_numbers_tell_what_is_missing_from_what_is_not_finite():
    values = np.array([1.5, np.nan, MISSED, np.inf, -np.inf], "<f4")
    assert curves.numbers(values) == [1.5, "NaN", None, "Infinity", "-Infinity"]
    assert curves.numbers(values, np.array([False, True, True, True, True])) == [
        None,
        "NaN",
        None,
        "Infinity",
        "-Infinity",
    ]
    assert curves.numbers(np.array([3, 4], "<i8"), np.array([True, False])) == [3, None]


def test_a_run_without_a_record_has_no_curve(database, submit, look):
    run = look(submit())
    with database.read() as reading:
        assert queries.curve(reading, run, 0, ["grad_norm"]).columns == {"grad_norm": []}
        assert queries.heat(reading, run, "grad_norm").rows == []
        assert queries.load_held_graphs(reading, run) == ()
        assert queries.nodes(reading, run).items == ()
        assert queries.node(reading, run, 0) is None
        assert queries.passes(reading, run, 0).items == ()
        assert queries.select_rows(reading, run, "moments").items == ()


def test_curves_over_steps_are_peaks_and_lose_no_nan(ended_run, a_record, database):
    losses = [4.0, math.nan, 2.0, None, 1.0]
    steps = tuple(
        r.Step(step=n + 3, sampled=n < 2, loss=loss, grad_norm=math.inf if n == 4 else float(n))
        for n, loss in enumerate(losses)
    )
    run = ended_run(msgspec.structs.replace(a_record, steps=steps))
    with database.read() as reading:
        every = queries.step_curves(reading, run)
        peaks = queries.as_json(queries.step_curves(reading, run, points=2))
        part = queries.as_json(queries.step_curves(reading, run, first_step=6, last_step=9))
        rows = queries.as_json(queries.step_rows(reading, run, first_step=4, limit=2))
    assert (every.steps, every.count, every.exact) == ([3, 4, 5, 6, 7], 5, True)
    assert peaks == {
        "steps": [3, 6], "loss": ["NaN", 1.0], "grad_norm": [2.0, "Infinity"], "learning_rate": [None, None], "count": 5, "exact": False,
    }  # fmt: skip
    assert part["loss"] == [None, 1.0]
    assert [(row["step"], row["loss"], row["sampled"]) for row in rows] == [(4, "NaN", True), (5, 2.0, False)]


def test_curves_of_steps_that_are_far_apart_are_exact_while_they_are_few(ended_run, a_record, database):
    steps = tuple(r.Step(step=1000 * n, sampled=True, loss=float(n)) for n in range(5))
    run = ended_run(msgspec.structs.replace(a_record, steps=steps))
    with database.read() as reading:
        every = queries.step_curves(reading, run, points=5)
        peaks = queries.step_curves(reading, run, points=3)
        none = queries.step_curves(reading, run, first_step=1, last_step=999, points=3)
    assert (every.steps, every.loss, every.count, every.exact) == (
        [0, 1000, 2000, 3000, 4000],
        [0, 1, 2, 3, 4],
        5,
        True,
    )
    assert (peaks.steps, peaks.loss, peaks.count, peaks.exact) == ([0, 2000, 3000], [1, 2, 4], 5, False)
    assert (none.steps, none.count, none.exact) == ([], 0, True)
