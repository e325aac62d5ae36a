"""What is saved is what is loaded, whatever the record holds."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from backprobe import record as r
from backprobe.record.record import without_missing_parameters
from store.database.ids import new_id, part
from store.records import storage
from store.records.bulk import ARRAY_ROWS
from store.records.expiry.sweep import delete_records
from store.records.mapping import IN_HEAD, SPECS, STATISTICS_OF
from store.runs.model import RunKey
from store.tables.base.types import float32

KEY = RunKey(part=part(new_id("run")), run_id=1, attempt=1)


def saved_and_loaded(database, record, key=KEY):
    with database.begin() as transaction:
        storage.save(transaction, key, record)
        back = storage.load(transaction, key)
        delete_records(transaction, key.part, key.run_id)
    return back


def test_a_record_comes_back_as_it_went(database, a_record, same):
    assert same(a_record, saved_and_loaded(database, a_record)) == []


@settings(
    max_examples=20,
    deadline=None,
    phases=[
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ],  # shrinking a whole record takes minutes; `same` names the table
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_record_comes_back_as_it_went(database, any_record, same, data):
    record = data.draw(any_record)
    whole = record if record.end is not None else without_missing_parameters(record)
    assert same(whole, saved_and_loaded(database, record)) == []


def test_a_record_too_large_for_one_round_trip_comes_back_too(database, a_record, same):
    sites = tuple(msgspec.structs.replace(a_record.sites[0], site=n) for n in range(ARRAY_ROWS + 50))
    odd = r.Statistics(norm=float("nan"), min=float("-inf"), nan=3, inf=1, counted=9)
    passes = tuple(r.NodePass(call=0, node=0, output_nr=n, grad_output=odd) for n in range(ARRAY_ROWS))
    record = msgspec.structs.replace(a_record, sites=sites, node_passes=passes)
    assert same(record, saved_and_loaded(database, record)) == []


def test_a_record_that_stops_early_comes_back_without_its_end(database, a_record, same):
    record = msgspec.structs.replace(a_record, end=None, snapshots=())
    assert same(record, saved_and_loaded(database, record)) == []


def test_what_capture_did_not_round_to_float32_is_rounded(database, a_record):
    value = r.Statistics(norm=0.1, max=1e300)
    snapshot = msgspec.structs.replace(a_record.snapshots[0], value=value)
    back = saved_and_loaded(database, msgspec.structs.replace(a_record, snapshots=(snapshot,)))
    assert back is not None
    kept = back.snapshots[0].value
    assert kept is not None
    assert (kept.norm, kept.max) == (0.10000000149011612, float("inf"))


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("nodes", {"grad_order": 2**15}),
        ("sites", {"line": 2**31 - 1, "col": 2**31}),
        ("backward_calls", {"nodes_met": 2**40}),
        ("snapshots", {"version": 2**33}),
        ("inplace_events", {"version_after": 2**31}),
    ],
)
def test_a_number_too_large_for_its_column_is_refused_before_anything_is_written(database, a_record, table, change):
    rows = getattr(a_record, table)
    bad = msgspec.structs.replace(a_record, **{table: (msgspec.structs.replace(rows[0], **change), *rows[1:])})
    with pytest.raises(r.BadRecord) as refused, database.begin() as transaction:
        storage.save(transaction, KEY, bad)
    assert refused.value.code == "out-of-range"
    with database.read() as reading:
        assert storage.load(reading, KEY) is None


def test_every_field_of_every_row_has_a_place():
    for spec in SPECS:
        rebuilt = {STATISTICS_OF[spec.row]} if spec.row in STATISTICS_OF else set()
        rebuilt |= {"learning_rates"} if spec.row is r.Optimizer else set()
        assert set(spec.row.__struct_fields__) - set(spec.fields()) - rebuilt == set(), spec.of
    elsewhere = {of for of, _ in IN_HEAD.values()} | {"tensor_nodes", "snapshots", "streams"}
    assert {spec.of for spec in SPECS} | elsewhere == set(r.TABLES)


def test_another_attempts_rows_are_not_loaded(database, a_record):
    with database.begin() as transaction:
        storage.save(transaction, KEY, a_record)
        assert storage.load(transaction, replace(KEY, attempt=2)) is None
        assert storage.load(transaction, replace(KEY, run_id=2)) is None


def rounded(record):
    """Statistics as float32, which they are by definition; capture should have seen to it."""

    def each(row, *names):
        found = {name: getattr(row, name) for name in names if getattr(row, name) is not None}
        numbers = ("norm", "sum", "min", "max")
        return msgspec.structs.replace(
            row,
            **{
                name: msgspec.structs.replace(
                    item, **{n: float32(getattr(item, n)) for n in numbers if getattr(item, n) is not None}
                )
                for name, item in found.items()
            },
        )

    return msgspec.structs.replace(
        record,
        snapshots=tuple(each(row, "value", "grad_stats") for row in record.snapshots),
        node_passes=tuple(each(row, "grad_output") for row in record.node_passes),
        grad_inputs=tuple(each(row, "statistics") for row in record.grad_inputs),
    )


def test_records_of_real_programs_come_back_as_they_went(database, same):
    from backprobe import capture

    source = (
        "import torch\nx = torch.tensor([1.0, 2.0])\nW = torch.randn(2, 2, requires_grad=True)\nb = torch.zeros(2)\n"
        "z = x @ W + b\nloss = z.pow(2).sum()\nloss.backward()\nwith torch.no_grad():\n    W -= 0.1 * W.grad\nW.grad = None\n"
    )
    record = rounded(capture.run_source(source))
    assert record.tensors
    assert record.snapshots
    assert same(record, saved_and_loaded(database, record)) == []
