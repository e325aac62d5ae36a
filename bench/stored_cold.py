"""Questions asked of files that the operating system has forgotten, each of a run that nobody has read yet."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bench.tables import spread
from store.database.session import Database
from store.runs.lifecycle import RunRow

_FILES = """select current_setting('data_directory') || '/' || pg_relation_filepath(c.oid) from pg_class c
where c.oid in (select 'snapshot_chunk'::regclass
  union select reltoastrelid from pg_class where relname = 'snapshot_chunk'
  union select indexrelid from pg_index where indrelid = 'snapshot_chunk'::regclass
  union select indexrelid from pg_index
    where indrelid = (select reltoastrelid from pg_class where relname = 'snapshot_chunk'))"""


def cold(database: Database, some: Sequence[RunRow], ask: Callable[[Any, RunRow], object]) -> str:
    """Median, least and most milliseconds of one question, asked of each run once on a new connection, cold.

    On PostgreSQL the bulk writer's pages never stay in its own buffers, and a run that was never read is not in them;
    the files are forgotten by the operating system. That needs the server's files at hand, or it is said not to be.
    """
    took: list[float] = []
    for run in some:
        paths = _paths(database)
        if not paths:
            return "the server's files are elsewhere"
        database.close()
        for path in paths:
            _forget(path)
        with database.read() as reading:
            reading.execute(sa.text("select 1 from tenant")).all()  # connects, and reads the catalogue
            began = time.perf_counter()
            ask(reading, run)
            took.append((time.perf_counter() - began) * 1e3)
    return spread(took)


def _paths(database: Database) -> list[Path]:
    if database.sqlite:
        return [Path(database.url.database or "")]
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("checkpoint"))
        first = [Path(name) for name in connection.execute(sa.text(_FILES)).scalars()]
    try:
        return [path for name in first for path in (name, *name.parent.glob(f"{name.name}.*")) if path.exists()]
    except PermissionError:
        return []


def _forget(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
