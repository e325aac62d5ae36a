"""Rows of every table of a record can be read from the database, page by page."""

import json

import pytest

from backprobe import record as r
from store import queries
from store.queries import LISTABLE
from store.records.mapping import plain
from tests.backprobe.record.rows import full_record


def text(rows):
    """As text: NaN is not equal to itself, and a database may turn the names in an object round."""
    return json.dumps(rows, sort_keys=True)


def without_bytes(row):
    return {name: value for name, value in plain(row).items() if not isinstance(value, bytes)}


def test_every_table_but_those_with_lists_of_their_own_is_listed():
    assert set(r.TABLES) - set(LISTABLE) == {"snapshots", "tensor_nodes", "streams"}


def test_rows_are_those_of_the_record(database, ended_run):
    record = full_record()
    run = ended_run(record)
    with database.read() as reading:
        for table in LISTABLE:
            page = queries.rows(reading, run, table)
            told = [{k: v for k, v in row.items() if k != "elements"} for row in page.items]
            assert text(told) == text([without_bytes(row) for row in getattr(record, table)]), table
            assert page.next is None


@pytest.mark.parametrize("table", ["optimizer_events", "grad_inputs", "sites"])
def test_pages_hold_every_row_once(database, ended_run, table):
    run, after, seen = ended_run(full_record()), 0, []
    with database.read() as reading:
        while after is not None:
            page = queries.rows(reading, run, table, after=after, limit=1)
            seen += page.items
            after = page.next
    assert text(seen) == text([plain(row) for row in getattr(full_record(), table)])


def test_a_table_that_is_not_there_is_no_table(database, ended_run):
    run = ended_run()
    with database.read() as reading, pytest.raises(KeyError):
        queries.rows(reading, run, "gradients")
