"""A page of tensors made straight from the rows says what the values of the same question say."""

import math

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from backprobe import record as r
from store import queries
from store.queries.tensors.mentions import THIN


@pytest.fixture
def both(database):
    """`both(run, **asked)`: the page as values made plain, and as JSON."""

    def ask_page(run, **asked):
        with database.read() as reading:
            values, told = queries.tensors(reading, run, **asked), queries.tensors_told(reading, run, **asked)
        assert values.next == told.next
        return queries.as_json(values.items), list(told.items)

    return ask_page


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_record_is_told_as_its_values_are(ended_run, both, any_record, data):
    run = ended_run(data.draw(any_record))
    values, told = both(run)
    assert msgspec.json.encode(told) == msgspec.json.encode(values)


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": 2},
        {"limit": 2, "after": 0},
        {"after": 2},
        {"sort": "-grad_norm"},
        {"sort": "name", "after": 0},
        {"grad": ["none", "not-read"]},
        {"why": ["not-leaf"], "line": 4},
        {"name": "nobody"},
    ],
)
def test_pages_and_filters_are_told_alike(ended_run, both, a_judgement, some_whys, asked):
    values, told = both(ended_run(judgement=a_judgement, whys=some_whys), **asked)
    assert told == values


def test_findings_names_and_odd_numbers_are_told(ended_run, both, a_record, a_judgement, some_whys):
    odd = r.Statistics(norm=math.inf, nan=1, inf=2, counted=3)
    snapshots = tuple(
        msgspec.structs.replace(snapshot, grad_stats=odd, grad="present") for snapshot in a_record.snapshots
    )
    names = [
        r.Binding(binding=n, tensor=2, name=name, site=0, moment=0) for n, name in enumerate(["b\0", "\x1a", "b\0"])
    ]
    record = msgspec.structs.replace(a_record, snapshots=snapshots, bindings=tuple(names))
    values, told = both(ended_run(record, judgement=a_judgement, whys=some_whys))
    assert told == values
    assert {row["grad_norm"] for row in told} == {"Infinity"}
    assert [row["bindings"] for row in told] == [[], [], ["b\0", "\x1a"]]
    assert [len(row["findings"]) for row in told] == [0, 0, 3]


def test_tensors_far_apart_have_their_own_names_only(ended_run, both, a_record):
    far = 3 * THIN
    tensors = tuple(
        msgspec.structs.replace(a_record.tensors[0], tensor=n, dtype="torch.int8" if n % far else "torch.float64")
        for n in range(2 * far + 1)
    )
    names = tuple(r.Binding(binding=n, tensor=n, name=f"t{n}", site=0, moment=0) for n in range(len(tensors)))
    record = msgspec.structs.replace(a_record, tensors=tensors, bindings=names, snapshots=(), retentions=())
    run = ended_run(record)
    values, told = both(run, limit=1000)
    assert told == values
    assert [row["bindings"] for row in told] == [[f"t{n}"] for n in range(len(tensors))]
    values, told = both(run, numbers=[0, far, 2 * far])
    assert told == values
    assert [row["bindings"] for row in told] == [["t0"], [f"t{far}"], [f"t{2 * far}"]]


def test_a_run_without_a_record_has_no_tensors(submit, look, both):
    assert both(look(submit())) == ([], [])


def test_a_page_is_two_statements_and_the_same_text_for_each_page(ended_run, database, both):
    run, said = ended_run(), []

    def note_statement(_connection, _cursor, statement, *_):
        said.extend([statement] if statement.startswith("SELECT") else [])

    with database.read() as reading:
        event.listen(reading, "before_cursor_execute", note_statement)
        first = queries.tensors_told(reading, run, limit=1)
        queries.tensors_told(reading, run, limit=1, after=first.next)
    assert len(said) == 4
    assert said[:2] == said[2:]
