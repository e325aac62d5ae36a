"""Connections: what an error of theirs may say, and how often an outage is logged."""

import logging

import pytest
import sqlalchemy as sa

from store import tables
from store.database import session
from store.database.session import Database, Outage, cause_of, is_unavailable


def test_an_error_of_the_database_does_not_show_what_was_to_be_stored(database) -> None:
    with pytest.raises(sa.exc.IntegrityError) as failed, database.begin() as transaction:
        transaction.execute(sa.insert(tables.project).values(tenant_id=-1, name="a stranger's text"))
    assert "a stranger's text" not in str(failed.value).split("DETAIL")[0]


AWAY = "postgresql://nobody@127.0.0.1:1/none"


def fails(database):
    for transaction in (database.begin, database.read):
        with pytest.raises(sa.exc.OperationalError), transaction():
            pass


def test_an_outage_is_told_once_with_its_cause_and_once_when_it_is_over(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(session, "BACK_SECONDS", 0.0)
    folder = tmp_path / "later"
    database = Database(f"sqlite:///{folder / 'one.db'}", told=True)
    for _ in range(2):
        for _ in range(3):
            fails(database)
        (line,) = caplog.messages
        assert (
            line
            == "the database is away, full, damaged or not migrated: OperationalError: unable to open database file"
        )
        folder.mkdir()
        for _ in range(3):
            with database.begin():
                pass
        assert caplog.messages[1:] == ["the database answers again, after 0 s"]
        assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.WARNING]
        caplog.clear()
        database.close()
        for left in folder.iterdir():
            left.unlink()
        folder.rmdir()


def test_a_database_that_fails_here_and_there_has_one_outage(caplog):
    now = 0.0
    outage = Outage(told=True, clock=lambda: now)
    for _ in range(20):
        outage.note_failure(OSError("gone"))
        now += 1.0
        outage.note_success()
    assert caplog.messages == ["the database is away, full, damaged or not migrated: OSError: gone"]
    now += 5.0
    outage.note_success()
    assert caplog.messages[1:] == ["the database answers again, after 25 s"]


def test_a_command_s_database_writes_no_line_and_an_error_of_ours_is_no_outage(caplog, tmp_path):
    fails(Database(AWAY))
    database = Database(f"sqlite:///{tmp_path / 'one.db'}", told=True)
    with pytest.raises(ZeroDivisionError), database.begin():
        raise ZeroDivisionError
    with pytest.raises(sa.exc.OperationalError, match="syntax"), database.read() as reading:
        reading.exec_driver_sql("nonsense")
    assert caplog.messages == []


def test_an_error_of_the_connection_that_listens_is_one_of_the_database():
    with pytest.raises(Exception, match="refused") as failed:
        Database(AWAY).listen()
    assert is_unavailable(failed.value)
    assert "Connection refused" in cause_of(failed.value)
