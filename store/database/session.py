"""Connections and transactions. With `migrations`, the only place that connects to the database.

1. A write transaction on SQLite begins with BEGIN IMMEDIATE: two writers wait for each other, none fails half-way.
2. In one process SQLite writers queue for a lock first: SQLite's own waiting is unfair and starved one of four.
3. Nobody commits: leaving `begin()` does, once; an exception rolls back.
4. A process tells an outage of its database once, with its cause, and once when it is over; whoever meets it asks
   `Database.away` and adds nothing.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from sqlalchemy import event, exc

from store.database.damage import count_pages, is_damaged
from store.database.lower_case import replace_lower
from store.database.missing_module import describe_missing, missing_module
from store.database.settings import with_driver
from store.database.text import json_text, json_value
from store.database.writers import Writers

if TYPE_CHECKING:
    import psycopg

Transaction = sa.Connection
"""An open transaction, as the functions of `store` take it."""

BUSY_SECONDS: Final = 30
"""How long a SQLite connection waits for another process's write."""

POOL: Final = 20
"""Connections kept per process, and at most 20 more under load: every web thread may hold one."""

PATIENCE: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""libpq: a PostgreSQL server that vanished without a word is noticed within 25 s; by itself TCP takes two hours."""

BACK_SECONDS: Final = 5.0
"""Without a failure for so long, a transaction that succeeds ends an outage: failures here and there are one."""

_log: Final = logging.getLogger(__name__)

_SCHEMA_MISSING: Final = ("no such table", "no such column")
_SQLSTATES: Final = frozenset({"42P01", "42703", "25006"})
"""PostgreSQL: undefined table, undefined column, a standby that takes no writes."""


def is_unavailable(error: BaseException) -> bool:
    """Return whether the database is unavailable (connection lost, disk full, locked).

    Any other `OperationalError` is a bug in a statement.
    """
    if isinstance(error, exc.TimeoutError) or _is_of_psycopg(error) or is_damaged(error):
        return True
    if not isinstance(error, exc.DBAPIError):
        return False
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _SQLSTATES:
        return True
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_ERROR:  # of all that it means, only this is not a mistake in the statement
            return str(error.orig).startswith(_SCHEMA_MISSING)
        return isinstance(error, exc.OperationalError)
    return isinstance(error, exc.OperationalError | exc.InterfaceError)


def _is_of_psycopg(error: BaseException) -> bool:
    """Of a connection by `Database.listen`, which SQLAlchemy does not know."""
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def cause_of(error: BaseException) -> str:
    """One line for the log or the operator: what the driver said, without the statement and its values."""
    said = getattr(error, "orig", None) or error
    lines = str(said).strip().splitlines() or [""]
    first = lines[0] if not lines[0].endswith(":") else " ".join(lines[:2])  # psycopg's list of attempts
    return f"{type(said).__name__}: {first[:200]}"


def refusal(error: BaseException) -> str | None:
    """Describe in one line why a command cannot use the database; None: the error is a bug in a statement."""
    if is_damaged(error):
        return (
            f"the SQLite database file is damaged ({cause_of(error)}): stop the service, move the file and its -wal "
            "and -shm files away, and restore a backup with `backprobe restore`"
        )
    if is_unavailable(error):
        return f"the database does not answer ({cause_of(error)}): look at BACKPROBE_DATABASE_URL and --home"
    if isinstance(error, Unusable):
        return f"BACKPROBE_DATABASE_URL names no database: {error}"
    if (module := missing_module(error)) is not None:
        return f"BACKPROBE_DATABASE_URL cannot be used: {describe_missing(module)}"
    if isinstance(error, exc.ArgumentError):
        return f"BACKPROBE_DATABASE_URL names no database that can be used here ({type(error).__name__})"
    return None


class Unusable(ValueError):
    """A URL that names no database; the text says why."""


class Outage:
    """Whether a database answers, as one process sees it; told in the log when that changes.

    Args:
        told: Write it into the log.
        clock: Monotonic, in seconds.
    """

    def __init__(self, *, told: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._told, self._clock = told, clock
        self._changing = threading.Lock()
        self._lasts = False
        self._since = self._failed_at = 0.0

    def note_failure(self, error: BaseException) -> None:
        """Note that the database has just not answered."""
        with self._changing:
            self._failed_at = self._clock()
            began = not self._lasts
            if began:
                self._lasts, self._since = True, self._failed_at
        if began and self._told:
            _log.error("the database is away, full, damaged or not migrated: %s", cause_of(error))

    def note_success(self) -> None:
        """Note that a transaction has succeeded."""
        if not self._lasts:
            return
        with self._changing:
            now, since = self._clock(), self._since
            if not self._lasts or now - self._failed_at < BACK_SECONDS:
                return
            self._lasts = False
        if self._told:
            _log.warning("the database answers again, after %.0f s", now - since)


class WriterStuck(Exception):
    """A write transaction of this process has been open for too long: a bug, such as one transaction inside another."""

    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"another write transaction of this process has not ended for {seconds} s; was one opened inside it?"
        )


class Database:
    """One database, with its pool of connections. Cheap to make: it connects when first used.

    Args:
        url: SQLAlchemy URL; `postgresql://` means psycopg 3. SQLite wants a file.
        durable: On SQLite: a commit survives a power cut (`synchronous=FULL`). The web process wants it, because a 202
            is a promise; a worker does not, because what it loses is run again. PostgreSQL is durable always.
        told: Outages are written into the log: of a process that serves. A command says for itself why it ends.
    """

    def __init__(self, url: str, *, durable: bool = False, told: bool = False) -> None:
        self._outage = Outage(told=told)
        self.url: Final = _parse_url(url)
        self.sqlite: Final = self.url.get_backend_name() == "sqlite"
        self._writing = Writers()
        if self.sqlite:
            self._engine = _sqlite_engine(self.url, durable=durable)
            self._reader = self._engine.execution_options(reading=True)
        else:
            self._engine = sa.create_engine(
                self.url,
                connect_args=PATIENCE,
                pool_size=POOL,
                max_overflow=POOL,
                json_serializer=json_text,
                json_deserializer=json_value,
                hide_parameters=True,  # they are a stranger's text, and an error's message goes to the log
            )
            self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def engine(self) -> sa.Engine:
        """The engine, for migrations."""
        return self._engine

    @contextmanager
    def begin(self) -> Generator[Transaction]:
        """Yield a write transaction. Leaving it commits, an exception rolls it back. Never open one inside another.

        Raises:
            WriterStuck: on SQLite, another of this process has not ended for 30 s.
        """
        if not self.sqlite:
            with self._note_outcome(), self._engine.begin() as transaction:
                yield transaction
            return
        if not self._writing.acquire(BUSY_SECONDS):
            raise WriterStuck(BUSY_SECONDS)
        try:
            with self._note_outcome(), self._engine.begin() as transaction:
                yield transaction
        finally:
            self._writing.release()

    @contextmanager
    def read(self) -> Generator[Transaction]:
        """Yield a connection to read by. On SQLite all its statements see one state, on PostgreSQL each the newest."""
        with self._note_outcome(), self._reader.connect() as transaction:
            yield transaction

    def away(self, error: BaseException) -> bool:
        """Return whether the error says that the database is unavailable. The log gets one line for an outage."""
        if not is_unavailable(error):
            return False
        self._outage.note_failure(error)
        return True

    @contextmanager
    def _note_outcome(self) -> Generator[None]:
        try:
            yield
        except Exception as error:
            self.away(error)
            raise
        self._outage.note_success()

    def listen(self) -> psycopg.Connection[Any]:
        """Open a separate PostgreSQL connection in autocommit for LISTEN; it bypasses any statement pooler."""
        import psycopg

        url = self.url.set(drivername="postgresql").render_as_string(hide_password=False)
        return psycopg.connect(url, autocommit=True, **PATIENCE)

    def watch(self) -> sqlite3.Connection:
        """Open a separate SQLite connection for `PRAGMA data_version`, which changes when anybody else commits."""
        connection = sqlite3.connect(self.url.database or "", timeout=BUSY_SECONDS, check_same_thread=False)
        connection.isolation_level = None
        return connection

    def close(self) -> None:
        """Close the pool. The database may be used again afterwards; it then connects again."""
        self._engine.dispose()


def _parse_url(url: str) -> sa.URL:
    try:
        return sa.make_url(with_driver(url))
    except ValueError as error:  # of a port that is no number; it quotes that alone
        raise Unusable(str(error)) from None


def _sqlite_engine(url: sa.URL, *, durable: bool) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise Unusable("a SQLite database must be a file: several connections share it")
    engine = sa.create_engine(
        url,
        connect_args={"timeout": BUSY_SECONDS},
        pool_size=POOL,
        max_overflow=POOL,
        json_serializer=json_text,
        json_deserializer=json_value,
        hide_parameters=True,
    )

    def set_up_connection(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        replace_lower(connection)
        if count_pages(connection) == 0:
            connection.execute(
                "PRAGMA auto_vacuum=incremental"
            )  # later it waits for a VACUUM, and takes the write lock
        for pragma in (
            "journal_mode=wal",
            "foreign_keys=on",
            f"synchronous={'full' if durable else 'normal'}",
            "temp_store=memory",
        ):
            connection.execute(f"PRAGMA {pragma}")

    def begin_transaction(connection: sa.Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    event.listen(engine, "connect", set_up_connection)
    event.listen(engine, "begin", begin_transaction)
    return engine
