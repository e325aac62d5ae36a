"""All tensors as they were at a moment, and one statistic of them over all moments, on both databases."""

import importlib

import msgspec
import pytest

from backprobe import record as r
from store import queries
from store.queries import CurveAsked, StateFilter


@pytest.fixture
def run(ended_run, a_record, some_whys):
    return ended_run(a_record, whys=some_whys)


@pytest.fixture
def ask_at(database, run):
    def then(moment, **asked):
        with database.read() as reading:
            return queries.tensors_at(reading, run, moment, **asked)

    return then


def test_a_tensor_is_told_by_its_last_snapshot_by_then(ask_at):
    x, w = ask_at(1).items
    assert (x.name, x.state.moment, x.state.grad) == ("x", 0, "none")
    assert (w.state.moment, w.state.kind, w.state.grad, w.grad_norm, w.value_norm) == (
        1, "after-statement", "none", None, 1.75,
    )  # fmt: skip
    _x, w, y = ask_at(4).items
    assert (w.state.moment, w.state.kind, w.state.grad, w.grad_norm, w.value_norm) == (
        4, "after-backward", "present", 1.75, None,
    )  # fmt: skip
    assert (y.state.grad_fn, y.state.is_leaf, y.why_none.verdict) == ("MulBackward0", False, "not-leaf")


def test_why_there_is_no_gradient_is_told_at_the_last_snapshot_only(ended_run, database, a_record, some_whys):
    later = [*a_record.snapshots, msgspec.structs.replace(a_record.snapshots[-1], moment=4)]
    run = ended_run(msgspec.structs.replace(a_record, snapshots=tuple(later)), whys=some_whys)
    with database.read() as reading:
        early, late = (queries.tensors_at(reading, run, moment).items[2] for moment in (3, 4))
    assert (early.why_none, late.why_none.verdict) == (None, "not-leaf")


def test_filters_look_at_the_state_then(ask_at):
    def names(moment, **state):
        return [row.name for row in ask_at(moment, state=StateFilter(**state)).items]

    assert names(3, grad=["present"]) == []
    assert names(4, grad=["present"]) == ["w"]
    assert names(4, grad_norm_gt=1.7) == ["w"]
    assert names(4, grad_norm_gt=1.8) == names(3, grad_norm_gt=1.7) == []
    assert names(5, is_leaf=True) == ["x", "w"]
    assert names(5, requires_grad=True, is_leaf=False) == ["y"]
    assert [row.name for row in ask_at(5, name="w").items] == ["w"]


def test_what_comes_page_by_page_is_the_whole(ask_at, monkeypatch):
    monkeypatch.setattr(importlib.import_module("store.queries.tensors.tensor_states"), "AT_ONCE", 2)
    whole = ask_at(5).items
    for state in (StateFilter(), StateFilter(requires_grad=True)):
        seen, after = [], None
        while True:
            page = ask_at(5, after=after, limit=1, state=state)
            seen += page.items
            if (after := page.next) is None:
                break
        assert seen == [row for row in whole if state.passes(row)]


def test_a_tensor_without_a_snapshot_by_then_is_there_without_a_state(ended_run, database, a_record):
    run = ended_run(msgspec.structs.replace(a_record, snapshots=a_record.snapshots[1:]))
    with database.read() as reading:
        x, _w = queries.tensors_at(reading, run, 1).items
        filtered = queries.tensors_at(reading, run, 1, state=StateFilter(is_leaf=True)).items
    assert (x.state, x.why_none, x.value_norm) == (None, None, None)
    assert [row.name for row in filtered] == ["w"]


def long_record(record, moments=7):
    """The small record with as many more backward moments, at which w has a gradient of 0, 1, ... and x none."""
    more = [r.Moment(moment=10 + n, kind="after-backward", k=n, step=n, time_ns=9, site=3) for n in range(moments)]
    stats = [r.Statistics(norm=float(n) if n != 2 else float("nan"), counted=3) for n in range(moments)]
    last = record.snapshots[2]
    snapshots = [msgspec.structs.replace(last, moment=10 + n, grad_stats=stats[n]) for n in range(moments)]
    rows = sorted([*record.snapshots, *snapshots], key=lambda row: (row.tensor, row.moment))
    return msgspec.structs.replace(record, moments=(*record.moments, *more), snapshots=tuple(rows))


@pytest.mark.parametrize("limit", [1, 2, 3, 1000])
def test_a_curve_comes_whole_whatever_the_page(ended_run, database, a_record, limit):
    run = ended_run(long_record(a_record))
    rows, after = [], None
    with database.read() as reading:
        while True:
            page, after = queries.curve_rows(reading, run, CurveAsked(stat="grad_norm"), after=after, limit=limit)
            assert len(page) <= limit
            rows += page
            if after is None:
                break
    told = [(row.tensor, row.name, row.moment, row.step, str(row.value)) for row in rows]
    steps = [(1, "w", 10 + n, n, "nan" if n == 2 else str(float(n))) for n in range(7)]
    assert told == [(1, "w", 4, 0, "1.75"), *steps]


def test_a_curve_has_the_moments_and_tensors_that_were_asked_for(ended_run, database, a_record):
    run = ended_run(long_record(a_record))
    asked = CurveAsked(stat="grad_norm", first_step=3, last_step=4, tensors=queries.TensorFilter(name="w"))
    nobody = CurveAsked(stat="grad_norm", tensors=queries.TensorFilter(name="x"))
    with database.read() as reading:
        rows, after = queries.curve_rows(reading, run, asked)
        assert ([row.value for row in rows], after) == ([3.0, 4.0], None)
        assert queries.curve_rows(reading, run, nobody) == ([], None)
        values = CurveAsked(stat="value_norm", kind="after-statement")
        assert [row.tensor for row in queries.curve_rows(reading, run, values)[0]] == [0, 1, 2]
