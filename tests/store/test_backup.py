"""A database into a file and back, row by row, on both databases; what is not empty or not ours is refused."""

import argparse
import stat
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from store.admin import commands
from store.admin.backup import CannotBackUp, backup, restore
from store.database import ids
from store.database import migrator as migrations
from store.database.session import Database
from store.records.expiry import partitions
from store.tables import METADATA

JANUARY_2026 = 1_767_300_000


@pytest.fixture
def empty_url(request, database, tmp_path):
    """Another, empty database of the same kind."""
    if database.sqlite:
        yield f"sqlite:///{tmp_path / 'other' / 'backprobe.db'}"
        return
    name = f"{database.url.database}_other"
    server = database.url.set(drivername="postgresql").render_as_string(False)
    admin: Any = psycopg.connect(server, autocommit=True)
    with admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            yield database.url.set(database=name).render_as_string(False)
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def url(database):
    return database.url.render_as_string(False)


@pytest.fixture
def other_folder(empty_url, tmp_path):
    (tmp_path / "other").mkdir(exist_ok=True)
    return empty_url


def everything(url):
    """Every row of every table, as the driver gives it."""
    database = Database(url)
    with database.read() as reading:
        found: dict[str, Any] = {
            table.name: sorted(map(repr, reading.exec_driver_sql(f'select * from "{table.name}"').all()))
            for table in METADATA.sorted_tables
        }
        found["revision"] = reading.exec_driver_sql("select * from alembic_version").all()
        if not database.sqlite:
            found["partitions"] = partitions.list_attached_months(reading)
            found["places"] = reading.exec_driver_sql("select part, tableoid::regclass::text from tensor").all()
        found["view"] = sorted(map(repr, reading.exec_driver_sql("select * from snapshot").all()))
    database.close()
    return found


def test_what_is_restored_is_what_was_there_row_by_row(
    database, url, other_folder, tmp_path, ended_run, submit, a_judgement, some_whys
):
    ended_run(judgement=a_judgement, whys=some_whys)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ids.time, "time_ns", lambda: JANUARY_2026 * 10**9)
        ended_run()
    submit(files={"train.py": "x = '\0\u20ac'\n"})
    before, file, said = everything(url), tmp_path / "all.backup", []
    size = backup(url, file, said.append)
    assert (size, stat.S_IMODE(file.stat().st_mode)) == (file.stat().st_size, 0o600)
    assert said[-1] == 1.0
    assert restore(other_folder, file) == migrations.head()
    assert everything(other_folder) == before == everything(url)
    assert sum(map(len, before.values())) > 50
    assert database.sqlite or {name for _, name in before["places"]} >= {"tensor_2026_01"}
    restored = Database(other_folder)
    with restored.begin() as transaction, pytest.raises(DBAPIError):
        transaction.execute(sa.text("update run set status = 'lost' where status = 'succeeded'"))
    restored.close()
    with pytest.raises(CannotBackUp, match=r"has .* tables already; restore into an empty database"):
        restore(other_folder, file)
    with pytest.raises(CannotBackUp, match="exists; name a file that does not"):
        backup(url, file)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_is_no_backup_or_a_newer_one_is_refused(database, url, other_folder, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    with pytest.raises(CannotBackUp, match="neither a SQLite file nor an archive of pg_dump"):
        restore(other_folder, file)
    file.write_bytes(b"PGDMP" if database.sqlite else b"SQLite format 3\0")
    with pytest.raises(CannotBackUp, match="BACKPROBE_DATABASE_URL says which"):
        restore(other_folder, file)
    file.write_bytes(b"SQLite format 3\0" + b"x" * 8000 if database.sqlite else b"PGDMP" + b"x" * 8000)
    with pytest.raises(CannotBackUp, match=r"damaged|cannot be copied|pg_restore failed"):
        restore(other_folder, file)
    with database.begin() as transaction:
        transaction.execute(sa.text("update alembic_version set version_num = '9999'"))
    try:
        newer = tmp_path / "newer"
        backup(url, newer)
        with pytest.raises(migrations.UnknownRevision, match="Upgrade Backprobe"):
            restore(other_folder, newer)
    finally:
        with database.begin() as transaction:
            transaction.execute(sa.text(f"update alembic_version set version_num = '{migrations.head()}'"))
    restored = Database(other_folder)
    with restored.read() as reading:
        assert sa.inspect(reading).get_table_names() == []
    restored.close()


def test_without_the_programs_of_postgresql_it_is_said_what_to_install(url, database, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    if database.sqlite:
        assert backup(url, tmp_path / "b") > 0
        return
    with pytest.raises(CannotBackUp, match="pg_dump is not installed here"):
        backup(url, tmp_path / "b")
    assert not (tmp_path / "b").exists()


@pytest.fixture
def command(database, url, tmp_path, monkeypatch, capsys):
    """`command("stats", "--json")`: exit code and what was printed."""
    if not database.sqlite:
        monkeypatch.setenv("BACKPROBE_DATABASE_URL", url)

    def run(name, *words):
        parser = argparse.ArgumentParser()
        getattr(commands, name)(parser.add_subparsers())
        arguments = parser.parse_args([name, "--home", str(tmp_path), *words])
        code = arguments.run(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_the_commands_say_what_they_did_and_refuse_in_one_line(command, tmp_path):
    file = str(tmp_path / "b.backup")
    code, out, err = command("backup", file)
    assert (code, out.startswith(file), "copied 100%" in err) == (0, True, True)
    code, out, err = command("restore", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "empty database" in err
    code, out, _ = command("vacuum")
    assert (code, "bytes before" in out) == (0, True)


def test_backup_and_restore_say_that_the_secret_is_not_in_the_file(command, other_folder, tmp_path, monkeypatch):
    file = str(tmp_path / "b.backup")
    assert f"keep a copy of {tmp_path / 'secret'} too" in command("backup", file)[2]
    monkeypatch.setenv("BACKPROBE_DATABASE_URL", other_folder)
    code, _, err = command("restore", file)
    assert code == 0, err
    assert f"The server's secret is not in a backup: before the service starts, {tmp_path / 'secret'} must be" in err
    monkeypatch.setenv("BACKPROBE_SECRET", "0123456789abcdef" * 2)
    assert "keep a copy of BACKPROBE_SECRET too" in command("backup", f"{file}.2")[2]


def test_stats_prints_every_figure_and_check(command, submit):
    submit()
    code, out, _ = command("stats")
    assert code == 0
    assert any(line.split()[:2] == ["queue_depth[cpu]", "1"] for line in out.splitlines())
    assert "BAD  workers" in out
    code, out, _ = command("stats", "--json", "--check")
    assert (code, '"name": "queue_claimable", "label": "cpu", "value": 1' in out) == (1, True)
