"""Bring a database to the schema of this code, or say clearly why not.

Alembic is loaded where a migration is due and nowhere else: 0.4 s of processor time at each start of a process.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from store.database.durable_files import sync_to_disk
from store.database.session import Database, Transaction

_LOCK: Final = 0x6261_636B
"""Key of the PostgreSQL advisory lock under which one process migrates and the others wait."""


class UnknownRevision(Exception):
    """The database is at a revision that this code does not have, so this code must not touch it."""

    def __init__(self, revision: str) -> None:
        if revision < list_revisions()[0]:
            advice = "written before the first release, and cannot be migrated. Start with an empty database."
        else:
            advice = f"newer than this Backprobe, which knows up to {head()}. Upgrade Backprobe."
        super().__init__(f"The database is at revision {revision}, {advice}")


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at `url` up; one process does, others wait and then find nothing to do.

    A SQLite file is copied first, beside itself, if a migration is due.

    Raises:
        UnknownRevision: it is at a revision that this code does not have.
    """
    _run(url, revision, up=True)


def downgrade(url: str, revision: str) -> None:
    """Migrate the database at `url` down to a revision, or to "base". Data of what goes is lost.

    Raises:
        UnknownRevision: it is at a revision that this code does not have.
    """
    _run(url, revision, up=False)


def at_head(url: str) -> bool:
    """Return whether the database has this code's schema. One that does not answer raises what the driver raises."""
    database = Database(url)
    try:
        with database.read() as reading:
            return _load_revision(reading) == head()
    finally:
        database.close()


def head() -> str:
    """Return the newest revision that this code has."""
    return list_revisions()[-1]


def list_revisions() -> tuple[str, ...]:
    """Every revision that this code has, oldest first: they are one line, and their files are named for them."""
    names = [path.name for path in files("migrations").joinpath("versions").iterdir()]
    revisions = sorted(name.partition("_")[0] for name in names if name[0].isdigit() and name.endswith(".py"))
    assert revisions, "the wheel has no revisions"  # noqa: S101 - a packaging error, which a test looks for
    return tuple(revisions)


def _run(url: str, revision: str, *, up: bool) -> None:
    database = Database(url)
    try:
        with database.begin() as transaction:
            if not database.sqlite:
                transaction.execute(sa.text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            current = _load_revision(transaction)
            newest = head()
            refuse_unknown(current)
            if up and current == newest and revision == "head":
                return
            if database.sqlite and current is not None:
                _copy(Path(database.url.database or ""), current)
            _migrate(transaction, revision, up=up)
    finally:
        database.close()


def _migrate(transaction: Transaction, revision: str, *, up: bool) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = transaction
    (command.upgrade if up else command.downgrade)(config, revision)


def _load_revision(transaction: Transaction) -> str | None:
    """Return the revision in `alembic_version`; None if that table is missing or empty."""
    if not sa.inspect(transaction).has_table("alembic_version"):
        return None
    return transaction.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def refuse_unknown(current: str | None) -> None:
    """Return if this code has that revision, or if there is none.

    Raises:
        UnknownRevision: this code does not have it.
    """
    if current is not None and current not in list_revisions():
        raise UnknownRevision(current)


def _copy(path: Path, revision: str) -> None:
    """Copy a SQLite database, with what lies in its WAL, to `NAME.before-REVISION`. We hold its write lock."""
    target = path.with_name(f"{path.name}.before-{revision}")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    target.chmod(path.stat().st_mode & 0o777)
    sync_to_disk(target)
    sync_to_disk(target.parent)
