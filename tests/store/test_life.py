"""The database itself keeps the life of a run."""

import ast
import re
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from backprobe import record as r
from store import tables
from store.runs.states import NEXT, STATUSES
from store.runs.transitions import build_transition

PAIRS = [(before, after) for before in STATUSES for after in STATUSES]
LEASE = "2026-11-21T00:00:00.000Z"


def facts(status):
    """The columns that the CHECKs tie to a status."""
    return {
        "status": status,
        "lease_until": LEASE if status == "running" else None,
        "finished_at": None if status in ("queued", "running") else LEASE,
    }


@pytest.mark.parametrize("before", STATUSES)
def test_a_status_moves_along_the_table_and_no_other_way(submit, change, look, before):
    for after in STATUSES:
        run = submit()
        if before not in ("queued", "running"):
            change(run, **facts("running"))
        if before != "queued":
            change(run, **facts(before))
        assert look(run).status == before
        if after == before or after in NEXT[before]:
            change(run, **facts(after))
            assert look(run).status == after
        else:
            with pytest.raises(DatabaseError, match="no such move"):
                change(run, **facts(after))
            assert look(run).status == before


def test_an_attempt_never_falls(submit, change):
    run = submit()
    change(run, attempt=2)
    with pytest.raises(DatabaseError, match="never falls"):
        change(run, attempt=1)


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "asleep"},
        {"lease_until": LEASE},
        {"finished_at": LEASE},
        {"attempt": 9},
        {"result_attempt": 1},
        {"priority": 10},
        {"queue": "tpu"},
        {"origin": "dreamt"},
        {"min_isolation": "wishful"},
        {"record_state": "most"},
    ],
)
def test_columns_that_contradict_each_other_are_refused(submit, change, look, columns):
    run = submit()
    with pytest.raises(DatabaseError):
        change(run, **columns)
    assert look(run).status == "queued"


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if pair[1] not in NEXT[pair[0]]])
def test_no_statement_is_made_for_a_move_that_the_table_lacks(before, after):
    with pytest.raises(ValueError, match="cannot go"):
        build_transition(before, after)


def tables_of(expression, known):
    """Tables that an expression updates or inserts into; `known`: those of names that stand for such an expression."""
    found = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("update", "insert") and node.args:
            found.add(ast.unparse(node.args[0]).removeprefix("tables."))
        elif isinstance(node, ast.Name):
            found |= known.get(node.id, set())
    return found


def writes_status(path):
    """The module sets the column `status` of runs, or of what it does not say, by `.values(status=...)` or by a dict."""
    module, known = ast.parse(path.read_text()), {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (of := tables_of(node.value, {})):
            known[node.targets[0].id] = of
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "values":
            named = any(keyword.arg == "status" for keyword in node.keywords)
            if named and (tables_of(node.func.value, known) or {"run"}) & {"run"}:
                return True
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if getattr(key, "value", "") == "status" and isinstance(value, ast.Call):
                    return True
    return False


def test_only_one_module_moves_the_status_and_two_set_the_first():
    """A run that was submitted is queued first; a record that was uploaded is running until it is stored."""
    store = Path(tables.__file__).parents[1]
    assert sorted(path.name for path in store.rglob("*.py") if writes_status(path)) == [
        "record_uploads.py",
        "submission.py",
        "transitions.py",
    ]


def test_every_table_and_column_says_what_it_is():
    for table in tables.METADATA.tables.values():
        assert table.comment, table.name
        assert [column.name for column in table.columns if not (column.comment or "").endswith(".")] == [], table.name


def test_a_nullable_column_says_what_null_means():
    silent = [
        f"{table.name}.{column.name}"
        for table in tables.METADATA.tables.values()
        for column in table.columns
        if column.nullable and "NULL" not in column.comment and "Absent" not in column.comment
    ]
    assert silent == []


def test_checks_on_a_records_columns_are_those_of_the_record():
    for table, row, field in (
        (tables.moment, r.Moment, "kind"),
        (tables.small_value, r.SmallValue, "of"),
        (tables.inplace_event, r.InplaceEvent, "done_by"),
        (tables.optimizer_event, r.OptimizerEvent, "kind"),
        (tables.backward_call, r.BackwardCall, "outcome"),
        (tables.retention, r.Retention, "state"),
        (tables.tensor, r.Snapshot, "grad"),
    ):
        check = next(
            str(constraint.sqltext)
            for constraint in table.constraints
            if isinstance(constraint, sa.CheckConstraint) and f"{field} in" in str(constraint.sqltext)
        )
        kind = next(
            msgspec.inspect.type_info(entry.type) for entry in msgspec.structs.fields(row) if entry.name == field
        )
        assert set(re.findall("'([^']*)'", check)) == set(kind.values)
