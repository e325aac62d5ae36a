"""A database full of snapshots of four months, migrated down and up again: nothing of them changes. `make migration` takes 1e6.

    python -m tests.migration.many_snapshots [SNAPSHOTS] [URL ...]

Without a URL: a SQLite file in a temporary folder, and an empty PostgreSQL database of its own where there is a server.
"""

import hashlib
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import sqlalchemy as sa

from store.database.ids import new_id, part
from store.database.migrator import downgrade, upgrade
from store.database.session import Database
from store.records.bulk import Batch, write
from store.records.chunk_encoding import NAMES, chunk_rows, floats
from store.records.chunk_format import CHUNK
from store.records.expiry.partitions import ensure
from store.runs.model import RunKey
from store.tables import snapshot_chunk

FIRST = "0001"
TENSORS_AT_ONCE = 10
MONTHS = 4


def fill(database: Database, snapshots: int) -> int:
    """Write whole chunks with every statistic; how many snapshots."""
    random, written, newest = np.random.default_rng(0), 0, part(new_id("run"))
    keys = [RunKey(part=newest - n, run_id=1 + n, attempt=1) for n in range(MONTHS)]
    for key in keys:
        with database.begin() as transaction:
            ensure(transaction, key.part)
    for n, first in enumerate(range(0, max(1, snapshots // CHUNK), TENSORS_AT_ONCE)):
        tensors = min(TENSORS_AT_ONCE, max(1, snapshots // CHUNK) - first)
        rows = tensors * CHUNK
        columns = {
            "tensor": np.repeat(np.arange(first, first + tensors, dtype="<i4"), CHUNK),
            "moment": np.tile(np.arange(CHUNK, dtype="<i4"), tensors),
            "flags": np.full(rows, 2, "<i2"),
            "version": np.tile(np.arange(CHUNK, dtype="<i4"), tensors),
        }
        for of in ("value", "grad"):
            columns |= {f"{of}_{name}": floats(random.normal(size=rows)) for name in ("norm", "sum", "min", "max")}
        with database.begin() as transaction:
            write(transaction, keys[n % MONTHS], [Batch(table=snapshot_chunk, rows=chunk_rows(columns))])
        written += rows
    return written


def digest(database: Database) -> str:
    """Over every column of every chunk, in order; by names, because a migration may have moved a column."""
    names = ", ".join(NAMES)
    order = "part, run_id, attempt, tensor, first_moment"
    found = hashlib.sha256()
    with database.read() as reading:
        for row in reading.execute(sa.text(f"select {names} from snapshot_chunk order by {order}")).yield_per(500):
            found.update(repr(tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)).encode())
    return found.hexdigest()


def down_and_up(url: str, snapshots: int) -> tuple[int, float, float]:
    """Snapshots, seconds down to the first revision, seconds up again.

    Raises:
        AssertionError: a chunk was not the same afterwards.
    """
    upgrade(url)
    database = Database(url)
    try:
        written = fill(database, snapshots)
        before, began = digest(database), time.perf_counter()
        downgrade(url, FIRST)
        turned = time.perf_counter()
        assert digest(database) == before, "the way down changed snapshots"
        again = time.perf_counter()
        upgrade(url)
        ended = time.perf_counter()
        assert digest(database) == before, "the way up changed snapshots"
    finally:
        database.close()
    return written, turned - began, ended - again


def told(kind: str, url: str, snapshots: int) -> None:
    written, down, up = down_and_up(url, snapshots)
    load = os.getloadavg()[0]
    print(
        f"{kind}: {written:,} snapshots, down {down:.2f} s, up {up:.2f} s, all the same (load {load:.1f})", flush=True
    )


def main(snapshots: int, urls: list[str]) -> None:
    for url in urls:
        told(url.split(":")[0], url, snapshots)
    if urls:
        return
    with tempfile.TemporaryDirectory() as folder:
        told("SQLite", f"sqlite:///{Path(folder) / 'backprobe.db'}", snapshots)
    import psycopg

    server = os.environ.get("BACKPROBE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")
    name = f"backprobe_test_{uuid.uuid4().hex[:12]}"
    try:
        admin: Any = psycopg.connect(server, autocommit=True)
    except psycopg.OperationalError:
        print("PostgreSQL: not measured, no server answers (BACKPROBE_TEST_POSTGRES)")
        return
    with admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        try:
            told("PostgreSQL", urlunsplit(urlsplit(server)._replace(path=f"/{name}")), snapshots)
        finally:
            admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000, sys.argv[2:])
