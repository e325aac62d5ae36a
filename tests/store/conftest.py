"""What a run needs to begin and end; the databases, records and findings come from the modules beside this one."""

import pytest
import sqlalchemy as sa

from store.runs import completion, lifecycle
from tests.store.arbitrary import any_record, same
from tests.store.small_record import a_judgement, a_record, some_whys

__all__ = [
    "a_judgement",
    "a_record",
    "any_record",
    "same",
    "some_whys",
]


@pytest.fixture
def submit(database):
    """`submit(priority=0)`: a queued run; any field of `Submission`."""

    def queued(**fields):
        fields = {"files": {"train.py": "x = 1\n"}, "entry": "train.py"} | fields
        with database.begin() as transaction:
            return lifecycle.submit(transaction, lifecycle.Submission(**fields))

    return queued


@pytest.fixture
def look(database):
    """`look(run)`: the run as it is now."""

    def now(run):
        with database.read() as reading:
            return lifecycle.get(reading, getattr(run, "public_id", None) or run.id)

    return now


@pytest.fixture
def claim(database):
    """`claim()`: a claim by worker w1 with a lease of 30 s."""
    return lambda **asked: lifecycle.claim(database, asked.pop("worker", "w1"), **asked)


@pytest.fixture
def change(database):
    """`change(run, priority=3)`: write columns of a run past the store, as nobody but a test may."""

    def write_snippet(run, **columns):
        from store import tables

        with database.begin() as transaction:
            which = tables.run.c.public_id == (getattr(run, "public_id", None) or run.id)
            transaction.execute(sa.update(tables.run).where(which).values(**columns))

    return write_snippet


@pytest.fixture
def ended_run(database, submit, claim, a_record):
    """`ended_run(record)`: a run that succeeded with this record."""

    def end_run(record=None, judgement=None, whys=None, ending=None, **submission):
        submit(**submission)
        held = claim()
        good = completion.Ending(status="succeeded", exit_code=0)
        assert completion.finish(database, held, ending or good, record or a_record, judgement, whys)
        with database.read() as reading:
            return lifecycle.get(reading, held.public_id)

    return end_run
