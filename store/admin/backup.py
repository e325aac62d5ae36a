"""A whole database into one file, and back: SQLite's online backup, PostgreSQL's pg_dump and pg_restore.

1. The service may go on: what is copied is the state of one instant.
2. A file appears under its name only when it is whole; a database is restored whole or not at all.
3. Nothing is ever overwritten: a file that exists, and a database with tables in it, are refused.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from store.database import migrator
from store.database.durable_files import sync_to_disk
from store.database.session import Database
from store.records.expiry.partitions import tables_and_partitions

PAGES: Final = 2000
"""Pages of SQLite copied between two words of progress: 8 MB."""

SQLITE_MAGIC: Final = b"SQLite format 3\0"
POSTGRESQL_MAGIC: Final = b"PGDMP"

Told = Callable[[float], None]
"""Hears how much is done, 0 to 1."""


class CannotBackUp(Exception):
    """Nothing was written. The message is one line for the operator, with a way out."""


def backup(url: str, target: Path, told: Told = lambda _: None) -> int:
    """Copy the database at `url` into a new file, readable by its owner only; its bytes.

    Raises:
        CannotBackUp: the file exists, there is no such database, or pg_dump is missing or failed.
    """
    if target.exists():
        raise CannotBackUp(f"{target} exists; name a file that does not")
    database = Database(url)
    draft = target.with_name(f".{target.name}.part")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        if database.sqlite:
            _copy_sqlite(_existing(database), draft, told)
        else:
            _dump(database, draft, told)
        sync_to_disk(draft)
        draft.rename(target)
        sync_to_disk(target.parent)
    finally:
        draft.unlink(missing_ok=True)
        database.close()
    return target.stat().st_size


def restore(url: str, source: Path, told: Told = lambda _: None) -> str:
    """Fill the empty database at `url` from a file that `backup` wrote; the revision of its schema.

    Raises:
        CannotBackUp: the database is not empty, the file is no backup of this kind of database or is damaged, or
            pg_restore is missing or failed. The database is as it was.
        UnknownRevision: a Backprobe of another release wrote it.
    """
    database = Database(url)
    try:
        _refuse_other(database, source)
        if not database.sqlite:
            _refuse_full(database)
            revision = _dumped_revision(source)
            migrator.refuse_unknown(revision)
            _undump(database, source, told)
            return revision
        target = Path(database.url.database or "")
        if target.exists() and target.stat().st_size:
            _refuse_full(database)
        with tempfile.TemporaryDirectory(prefix=".restore-", dir=target.parent) as folder:
            draft = Path(folder) / "backprobe.db"
            _copy_sqlite(source, draft, told)
            revision = _check_backup(draft)
            draft.chmod(0o600)
            sync_to_disk(draft)
            draft.rename(target)
            sync_to_disk(target.parent)
        return revision
    finally:
        database.close()


def _existing(database: Database) -> Path:
    path = Path(database.url.database or "")
    if not path.exists():
        raise CannotBackUp(f"there is no database at {path}; BACKPROBE_HOME or --home says where it is")
    return path


def _refuse_other(database: Database, source: Path) -> None:
    try:
        with source.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise CannotBackUp(f"{source} cannot be read: {error.strerror}") from None
    kind = "SQLite" if head == SQLITE_MAGIC else "PostgreSQL" if head.startswith(POSTGRESQL_MAGIC) else None
    wanted = "SQLite" if database.sqlite else "PostgreSQL"
    if kind is None:
        raise CannotBackUp(f"{source} is no backup: it is neither a SQLite file nor an archive of pg_dump")
    if kind != wanted:
        raise CannotBackUp(
            f"{source} is a backup of {kind}, and this database is {wanted}; BACKPROBE_DATABASE_URL says which"
        )


def _refuse_full(database: Database) -> None:
    with database.read() as reading:
        tables = sa.inspect(reading).get_table_names()
    if tables:
        where = database.url.render_as_string()
        raise CannotBackUp(f"{where} has {len(tables)} tables already; restore into an empty database")


# --- SQLite -------------------------------------------------------------------------------------------------------


def _copy_sqlite(source: Path, target: Path, told: Told) -> None:
    """Copy with the online backup API in one read transaction; otherwise a write by another process restarts it."""

    def progress(_: int, left: int, pages: int) -> None:
        told(1.0 - left / pages if pages else 1.0)

    def open_file(path: Path) -> sqlite3.Connection:
        return Database(f"sqlite:///{path}").watch()

    try:
        with closing(open_file(source)) as reading, closing(open_file(target)) as writing:
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
            reading.backup(writing, pages=PAGES, progress=progress, sleep=0.001)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: SQLite's message quotes a damaged schema
        why = error if isinstance(error, sqlite3.Error) else "malformed database schema"
        raise CannotBackUp(f"{source} cannot be copied to {target.parent}: {why}") from None


def _check_backup(path: Path) -> str:
    """Check that a SQLite backup is whole; return its revision."""
    with closing(Database(f"sqlite:///{path}").watch()) as connection:
        try:
            (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        except sqlite3.Error as error:
            raise CannotBackUp(f"the backup is damaged, or not ours: {error}") from None
    if said != "ok" or found is None:
        raise CannotBackUp(f"the backup is damaged: {said}")
    migrator.refuse_unknown(found[0])
    return found[0]


# --- PostgreSQL ---------------------------------------------------------------------------------------------------


def _dump(database: Database, target: Path, told: Told) -> None:
    with database.read() as reading:
        _, filled = tables_and_partitions(reading)
    with _make_connection_url(database) as connection:
        command = [_program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", "--verbose"]
        _run([*command, f"--file={target}", f"--dbname={connection}"], "dumping contents of table", len(filled), told)


def _undump(database: Database, source: Path, told: Told) -> None:
    listed = _output([_program("pg_restore"), "--list", str(source)])
    tables = sum(" TABLE DATA " in line for line in listed.splitlines())
    with _make_connection_url(database) as connection:
        options = ("--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", "--verbose")
        command = [_program("pg_restore"), *options, f"--dbname={connection}", str(source)]
        _run(command, "processing data for table", tables, told)


def _dumped_revision(source: Path) -> str:
    """Read the revision of `alembic_version` in an archive.

    Raises:
        CannotBackUp: it holds none.
    """
    told = _output([_program("pg_restore"), "--data-only", "--table=alembic_version", "--file=-", str(source)])
    lines = iter(told.splitlines())
    for line in lines:
        if line.startswith("COPY ") and "alembic_version" in line:
            return next(lines, "").strip()
    raise CannotBackUp(f"{source} is an archive of another program: it has no alembic_version")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise CannotBackUp(
            f"{name} is not installed here; install PostgreSQL's client programs, of the server's version"
        )
    return found


@contextmanager
def _make_connection_url(database: Database) -> Generator[str]:
    """Yield a connection URL without the password, which lies in a private file: all users can read a command line."""
    url = database.url
    with tempfile.NamedTemporaryFile("w", prefix="backprobe-", suffix=".pgpass") as file:  # made with mode 0600
        if url.password is not None:
            password = str(url.password).replace("\\", "\\\\").replace(":", "\\:")
            file.write(f"*:*:*:*:{password}\n")
            file.flush()
        bare = url.set(drivername="postgresql", password=None).render_as_string()
        yield f"{bare}{'&' if url.query else '?'}passfile={file.name}"


def _run(command: Sequence[str], word: str, tables: int, told: Told) -> None:
    """Run a program that names each table on stderr."""
    seen, last = 0, ""
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        assert process.stderr is not None  # noqa: S101 - for the type checker: stderr is a pipe
        for line in process.stderr:
            if word in line:
                seen += 1
                told(min(1.0, seen / tables) if tables else 1.0)
            if "error" in line.lower():
                last = last or line.strip()
    if process.returncode:
        raise CannotBackUp(f"{Path(command[0]).name} failed: {last or f'exit code {process.returncode}'}")


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotBackUp(f"{Path(command[0]).name} failed: {said[0]}")
    return done.stdout
