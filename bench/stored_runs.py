"""Runs to store and to read: a history like that of a training run, a short run's record; databases of one's own."""

import contextlib
import dataclasses
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from backprobe import record as r
from bench.service import stores
from store.database import migrator
from store.database.session import Database
from store.records.chunk_encoding import Columns
from store.records.chunk_format import GRAD_NONE, IS_LEAF, REQUIRES_GRAD, VALUE_MEASURED
from store.runs import lifecycle

DATABASES = ("SQLite", "PostgreSQL")


@contextlib.contextmanager
def database(kind: str, folder: Path | None = None) -> Iterator[Database]:
    """A migrated database, gone afterwards."""
    if kind == "SQLite":
        with tempfile.TemporaryDirectory(prefix="backprobe-bench-", dir=folder) as place:
            url = f"sqlite:///{place}/backprobe.db"
            migrator.upgrade(url)
            opened = Database(url)
            yield opened
            opened.close()
        return
    with stores("PostgreSQL + Redis") as environment:
        url = environment["BACKPROBE_DATABASE_URL"]
        migrator.upgrade(url)
        opened = Database(url)
        yield opened
        opened.close()


def claimed(db: Database) -> lifecycle.Claim:
    """A run of our own, running, with an hour's lease.

    Raises:
        RuntimeError: there is nothing to claim, though a run was just queued.
    """
    with db.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"main.py": "pass"}, entry="main.py"))
    claim = lifecycle.claim(db, "bench", lease_seconds=3600)
    if claim is None:
        raise RuntimeError("nothing to claim")
    return claim


def history(tensors: int, moments: int, *, first: int = 0, gaps: bool = False, seed: int = 1) -> Columns:
    """Snapshots of `tensors` at `moments` moments from `first` on, by (tensor, moment).

    Of 25 tensors 14 are trainable with all eight statistics, 6 frozen, 5 results whose gradient is not kept; a few
    trainable ones have no gradient for a while. The statistics wander like a random walk with noise.

    Args:
        gaps: Every tensor is seen at three of four moments, at random.
    """
    random = np.random.default_rng(seed)
    shape = (tensors, moments)
    kind = np.arange(tensors) % 25
    trainable, frozen = kind < 14, (kind >= 14) & (kind < 20)
    walk = np.cumsum(random.normal(0, 0.01, shape), axis=1) + random.normal(0, 0.35, shape)
    columns = {"tensor": np.repeat(np.arange(tensors, dtype="<i4"), moments)}
    columns["moment"] = np.tile(np.arange(first, first + moments, dtype="<i4"), tensors)
    flags = np.where(trainable, IS_LEAF | REQUIRES_GRAD, np.where(frozen, IS_LEAF, REQUIRES_GRAD | GRAD_NONE))
    spread_flags = np.repeat(flags[:, None], moments, axis=1).astype("<i2") | VALUE_MEASURED
    spread_flags[3:10, moments // 3 : moments // 3 + moments // 50 + 1] |= GRAD_NONE
    columns["flags"] = spread_flags.ravel()
    columns["version"] = np.where(trainable[:, None], np.arange(first, first + moments), 0).astype("<i4").ravel()
    for name in ("grad_norm", "grad_sum", "grad_min", "grad_max"):
        of = np.exp(walk + random.normal(-2, 2, (tensors, 1))).astype("<f4")
        of.view("<u4")[~trainable] = 0x7FC00001  # not measured: no room
        columns[name] = of.ravel()
    for name in ("value_norm", "value_sum", "value_min", "value_max"):
        of = (1 + np.abs(walk) * 1e-3 + random.random((tensors, 1))).astype("<f4")
        of[frozen] = of[frozen, :1]
        columns[name] = of.ravel()
    counted = np.repeat(np.int64(1) << (4 + kind % 12), moments)
    columns |= {"value_counted": counted, "grad_counted": np.where(np.repeat(trainable, moments), counted, 0)}
    if gaps:
        kept = random.random(tensors * moments) < 0.75
        columns = {name: values[kept] for name, values in columns.items()}
    return columns


def cut_moments(whole: Columns, first: int, last: int) -> Columns:
    """The snapshots of the moments from `first` to before `last`."""
    chosen = (whole["moment"] >= first) & (whole["moment"] < last)
    return {name: values[chosen] for name, values in whole.items()}


def short_record(tensors: int = 20, moments: int = 15) -> r.Record:
    """A snippet's record: each tensor seen at each moment."""
    random = np.random.default_rng(0)
    sites = tuple(
        r.Site(site=n, source=0, line=n + 1, col=1, end_line=n + 1, end_col=9, kind="assign") for n in range(9)
    )
    made = tuple(r.Moment(moment=n, kind="after-statement", time_ns=n, site=n % len(sites)) for n in range(moments))
    kept = {"dtype": "torch.float32", "device": "cpu", "layout": "torch.strided", "cls": "Tensor", "shape": (3, 4)}
    those = tuple(
        r.Tensor(
            tensor=n, moment=0, site=0, numel=12, size_bytes=48, created_by="user", created_how="torch.ones", **kept
        )
        for n in range(tensors)
    )
    snapshots = tuple(
        r.Snapshot(
            tensor=n, moment=k, is_leaf=n % 2 == 0, requires_grad=True, retains_grad=False, version=k,
            grad="present" if n % 2 == 0 else "none", value=_statistics(random),
            grad_stats=_statistics(random) if n % 2 == 0 else None,
        )
        for n in range(tensors) for k in range(moments)
    )  # fmt: skip
    header = r.Header(
        schema_version=r.SCHEMA_VERSION, backprobe_version="0", tier="full", entry="run",
        started_at="2026-11-21T00:00:00.000Z",
        environment=r.Environment(python="3.11", platform="Linux", torch="2.13.0"),
    )  # fmt: skip
    source = r.Source(source=0, path="main.py", sha256="0" * 64, text="pass\n" * 9)
    return r.Record(
        header=header, end=r.End(ending="ended", exit_code=0, duration_ns=1), sources=(source,), sites=sites,
        threads=(r.Thread(thread=0, name="MainThread", main=True),), moments=made, tensors=those, snapshots=snapshots,
    )  # fmt: skip


def _statistics(random: Any) -> r.Statistics:
    norm, low, high = (float(x) for x in random.lognormal(size=3))
    return r.Statistics(norm=norm, sum=low + high, min=low, max=high, counted=12)


def chunk_bytes(db: Database) -> int:
    """Bytes of the chunks with their indices: on SQLite of the whole file, which holds little else."""
    if db.sqlite:
        connection = sqlite3.connect(db.url.database or "")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return Path(db.url.database or "").stat().st_size
    tree = "select coalesce(sum(pg_total_relation_size(relid)), 0) from pg_partition_tree('snapshot_chunk')"
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("vacuum analyze snapshot_chunk"))
        whole = connection.execute(sa.text(tree)).scalar_one()
        return int(whole or connection.execute(sa.text("select pg_total_relation_size('snapshot_chunk')")).scalar_one())


class Clock:
    """Wall time, and processor time of this process and of PostgreSQL's for its connections, since it was made.

    On a machine with other work to do only the second says what the store costs.
    """

    def __init__(self, db: Database) -> None:
        self._database = db
        self._began, self._used = time.perf_counter(), self._processor_seconds()

    def seconds(self) -> tuple[float, float]:
        """Wall and processor seconds."""
        return time.perf_counter() - self._began, self._processor_seconds() - self._used

    def rate(self, number: float, unit: float = 1.0) -> str:
        """So many per second of wall time, and per second of processor time, in units."""
        wall, used = self.seconds()
        return f"{number / wall / unit:,.0f}; {number / max(used, 1e-9) / unit:,.0f} per CPU second"

    def _processor_seconds(self) -> float:
        used = time.process_time()
        if self._database.sqlite:
            return used
        with self._database.read() as reading:
            query = sa.text("select pid from pg_stat_activity where datname = current_database()")
            pids = reading.execute(query).scalars().all()
        ticks = os.sysconf("SC_CLK_TCK")
        for pid in pids:
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                used += (int(fields[11]) + int(fields[12])) / ticks
        return used


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A database with a history: the run that is read, some that are not, and how many snapshots there are."""

    run: lifecycle.RunRow
    others: tuple[lifecycle.RunRow, ...]
    snapshots: int
    moments: int
