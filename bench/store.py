"""What the store writes, keeps and reads: the table of the store's promises, on SQLite and PostgreSQL.

usage: python -m bench.store [--snapshots 10000000] [--databases SQLite,PostgreSQL] [--keep]
       [--parts writes,claims,reads,more]

`writes` and `claims` are rates; `reads` fills a database with runs of 500 tensors and 10,000 moments until it holds
so many snapshots, and asks the dashboard's questions of one of them; `more` has what is odd: 5,000 tensors, four
writers at once, moments with gaps, a cold cache.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from bench.stored_cold import cold
from bench.stored_findings import add_findings
from bench.stored_runs import (
    DATABASES,
    Clock,
    Filled,
    chunk_bytes,
    claimed,
    cut_moments,
    database,
    history,
    short_record,
)
from bench.tables import load_table, table, write
from store import queries, tables
from store.database.session import Database
from store.records import storage
from store.records.bulk import Batch
from store.records.bulk import write as write_rows
from store.records.chunk_encoding import chunk_rows
from store.records.live_snapshots import FLUSH_MOMENTS, Live
from store.runs import completion, lifecycle
from store.runs.claims import renew

TENSORS, MOMENTS = 500, 10_000
LONG_MOMENTS = 960
SHORT_RUNS = 300
COLD = ("one tensor over 10,000 moments", "page of 100 tensors", "state of 500 tensors at a moment")
GOOD = completion.Ending(status="succeeded", exit_code=0)
WORKER = """
import sys, time
from store.runs import completion as finish, lifecycle as runs
from store.database.session import Database
database, done, began = Database(sys.argv[1]), 0, time.monotonic()
while (held := runs.claim(database, sys.argv[2])) is not None:
    finish.finish(database, held, finish.Ending(status="succeeded", exit_code=0), None, None)
    done += 1
print(done, time.monotonic() - began)
"""
WRITER = """
import sys, time
from bench.store import live
from store.runs import lifecycle as runs
from store.database.session import Database
database = Database(sys.argv[1])
held = runs.claim(database, sys.argv[2], lease_seconds=3600)
number, clock = live(database, held, 500, 480)
print(number, clock.seconds()[0])
"""


def live(db: Database, held: lifecycle.Claim, tensors: int, moments: int, *, gaps: bool = False) -> tuple[int, Clock]:
    """A run that is written as it goes, in flushes of 96 moments, merges included: snapshots, and a clock."""
    whole = history(tensors, moments, gaps=gaps)
    pieces = [cut_moments(whole, start, start + FLUSH_MOMENTS) for start in range(0, moments, FLUSH_MOMENTS)]
    writer, clock = Live(db, held), Clock(db)
    for piece in pieces:
        writer.append(piece)
    writer.close()
    return len(whole["tensor"]), clock


def full(db: Database, tensors: int, moments: int) -> tuple[int, Clock]:
    """Full chunks, encoded and written in transactions of 480 moments under the fence: snapshots, and a clock."""
    held, whole = claimed(db), history(tensors, moments)
    pieces = [cut_moments(whole, start, start + 480) for start in range(0, moments, 480)]
    clock = Clock(db)
    for piece in pieces:
        with db.begin() as transaction:
            renew(transaction, held)
            write_rows(transaction, held.key, [Batch(table=tables.snapshot_chunk, rows=chunk_rows(piece))])
    return len(whole["tensor"]), clock


def short_runs(db: Database) -> tuple[str, str]:
    """Records of 20 tensors and 15 moments per second: saved in a transaction each; and whole finishes per second."""
    kept = short_record()
    first, second = ([claimed(db) for _ in range(SHORT_RUNS)] for _ in range(2))
    clock = Clock(db)
    for held in first:
        with db.begin() as transaction:
            storage.save(transaction, held.key, kept)
    saved = clock.rate(SHORT_RUNS)
    clock = Clock(db)
    for held in second:
        completion.finish(db, held, GOOD, kept, None)
    return saved, clock.rate(SHORT_RUNS)


def claims(db: Database, workers: int = 4, queued: int = 1200) -> float:
    """Claims and finishes per second of four processes."""
    with db.begin() as transaction:
        for _ in range(queued):
            lifecycle.submit(transaction, lifecycle.Submission(files={"main.py": "pass"}, entry="main.py"))
    url = db.url.render_as_string(hide_password=False)
    some = [
        subprocess.Popen([sys.executable, "-c", WORKER, url, f"w{n}"], stdout=subprocess.PIPE, text=True)
        for n in range(workers)
    ]
    told = [process.communicate()[0].split() for process in some]
    return sum(int(done) for done, _ in told) / max(float(seconds) for _, seconds in told)


def filled(db: Database, snapshots: int) -> Filled:
    """Write runs until so many snapshots are there; the last one is that which is read."""
    held = claimed(db)
    whole = history(TENSORS, MOMENTS)
    rows = chunk_rows(whole)
    made, names = 0, []
    while True:
        names.append(held.public_id)
        completion.finish(db, held, GOOD, short_record(TENSORS, 0), None)
        for start in range(0, len(rows), 1000):
            with db.begin() as transaction:
                write_rows(transaction, held.key, [Batch(table=tables.snapshot_chunk, rows=rows[start : start + 1000])])
        made += len(whole["tensor"])
        if made >= snapshots:
            break
        held = claimed(db)
    with db.read() as reading:
        found = [run for name in names if (run := lifecycle.get(reading, name)) is not None]
    if not db.sqlite:
        chunk_bytes(db)  # vacuum: a run is read after autovacuum has seen it
    return Filled(run=found[-1], others=tuple(found[:10]), snapshots=made, moments=MOMENTS)


def questions(made: Filled, run: lifecycle.RunRow | None = None) -> dict[str, Callable[[Any, int], object]]:
    """What is asked of a filled database, each with a number that varies; of its last run, or of another."""
    run = run or made.run
    some = tuple(range(300))
    points = np.linspace(0, made.moments - 1, 500).astype(int).tolist()
    return {
        "page of 100 tensors": lambda t, n: queries.tensors(t, run, after=n * 7 % 400, limit=100),
        "top 20 by gradient norm": lambda t, _: queries.top(t, run, limit=20),
        "tensors ever without gradient": lambda t, _: queries.tensors_without_grad(t, run),
        "state of 500 tensors at a moment": lambda t, n: queries.state_at(t, run, n * 997 % made.moments),
        "one tensor over 10,000 moments": lambda t, n: queries.series(t, run, n * 13 % 500, ("flags", "grad_norm")),
        "runs with a rule's findings in 30 days": lambda t, n: queries.runs_with(t, f"rule-{n % 40}"),
        "heatmap 300 x 500, exact": lambda t, _: queries.heatmap(t, run, some, points),
        "heatmap 300 tensors, peaks of 16": lambda t, _: queries.peaks(t, run, some),
    }


def p95(db: Database, ask: Callable[[Any, int], object], times: int = 40) -> tuple[float, float, float]:
    """Median, 95th percentile and processor time of each (ms), after two that warm up."""
    took = []
    for n in range(times + 2):
        if n == 2:
            clock = Clock(db)
        began = time.perf_counter()
        with db.read() as reading:
            ask(reading, n)
        took.append((time.perf_counter() - began) * 1e3)
    used = clock.seconds()[1] / times * 1e3
    return float(np.median(took[2:])), float(np.percentile(took[2:], 95)), used


def writes(kind: str) -> dict[str, str]:
    """The rates of writing, and the bytes that stay."""
    told: dict[str, str] = {}
    with database(kind) as db:
        empty = chunk_bytes(db)
        number, clock = live(db, claimed(db), TENSORS, LONG_MOMENTS)
        told["live run, flushed every 96 moments, merged: thousand snapshots/s"] = clock.rate(number, 1e3)
        told["bytes per snapshot, live, the first run of a database"] = f"{(chunk_bytes(db) - empty) / number:.1f}"
        for _ in range(3):  # its merged tails leave room, which the next ones take once autovacuum has seen it
            live(db, claimed(db), TENSORS, LONG_MOMENTS)
            chunk_bytes(db)
        four = (chunk_bytes(db) - empty) / number / 4
        told["bytes per snapshot, live, four runs, a vacuum after each"] = f"{four:.1f}"
    with database(kind) as db:
        empty = chunk_bytes(db)
        number, clock = full(db, TENSORS, LONG_MOMENTS)
        told["full chunks: thousand snapshots/s"] = clock.rate(number, 1e3)
        told["bytes per snapshot, full chunks"] = f"{(chunk_bytes(db) - empty) / number:.1f}"
    with database(kind) as db:
        saved, whole = short_runs(db)
        told["short records (20 x 15) saved/s, a transaction each"] = saved
        told["the same with the whole end of the run/s"] = whole
    with database(kind) as db:
        empty = chunk_bytes(db)
        short, held = history(20, 15), [claimed(db) for _ in range(SHORT_RUNS)]
        before = chunk_bytes(db) if db.sqlite else empty
        for each in held:
            with db.begin() as transaction:
                write_rows(transaction, each.key, [Batch(table=tables.snapshot_chunk, rows=chunk_rows(short))])
        told["bytes per snapshot, short runs"] = f"{(chunk_bytes(db) - before) / (SHORT_RUNS * 300):.1f}"
    return told


def reads(kind: str, snapshots: int, findings: int = 500_000) -> dict[str, str]:
    """The questions at so many snapshots, warm; and after the operating system forgot the files."""
    told: dict[str, str] = {}
    with database(kind) as db:
        began = time.perf_counter()
        made = filled(db, snapshots)
        told["snapshots in the database"] = f"{made.snapshots:.0e}".replace("+0", "")
        told["to fill it, s"] = f"{time.perf_counter() - began:.0f}"
        told["bytes of the chunks, indices included"] = f"{chunk_bytes(db) / 1e6:,.0f} MB"
        with db.begin() as transaction:
            for _ in range(500):
                lifecycle.submit(transaction, lifecycle.Submission(files={"main.py": "pass"}, entry="main.py"))
        add_findings(db, made.run, findings)
        if db.sqlite:
            with db.begin() as transaction:
                transaction.execute(sa.text("analyze"))
        else:
            with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(sa.text("vacuum analyze finding"))
        for name, ask in questions(made).items():
            median, most, used = p95(db, ask)
            told[f"{name}, ms p50 / p95"] = f"{median:.1f} / {most:.1f}; {used:.1f} of CPU"
        for name in COLD:
            asked = cold(db, made.others, lambda t, run, name=name: questions(made, run)[name](t, 1))
            told[f"{name}, cold cache, ms"] = asked
    return told


def more(kind: str) -> dict[str, str]:
    """What is odd: many tensors, several writers, gaps."""
    told: dict[str, str] = {}
    with database(kind) as db:
        number, clock = live(db, claimed(db), 5000, 480)
        told["5,000 tensors, live: thousand snapshots/s"] = clock.rate(number, 1e3)
    with database(kind) as db:
        empty = chunk_bytes(db)
        number, clock = live(db, claimed(db), TENSORS, 960, gaps=True)
        told["moments with gaps, live: thousand snapshots/s"] = clock.rate(number, 1e3)
        told["bytes per snapshot, moments with gaps"] = f"{(chunk_bytes(db) - empty) / number:.1f}"
    with database(kind) as db:
        with db.begin() as transaction:
            for _ in range(4):
                lifecycle.submit(transaction, lifecycle.Submission(files={"main.py": "pass"}, entry="main.py"))
        url = db.url.render_as_string(hide_password=False)
        command = [sys.executable, "-c", WRITER, url]
        some = [subprocess.Popen([*command, f"w{n}"], stdout=subprocess.PIPE, text=True) for n in range(4)]
        said = [each.communicate()[0].split() for each in some]
        rate = sum(int(number) for number, _ in said) / max(float(seconds) for _, seconds in said)
        told["four writers at once, live, together: thousand snapshots/s"] = f"{rate / 1e3:,.0f}"
    return told


def claiming(kind: str) -> dict[str, str]:
    """Claim and finish."""
    with database(kind) as db:
        return {"claim and finish/s, 4 processes": f"{claims(db):.0f}"}


def main() -> None:
    """Measure what was asked for and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--snapshots", type=int, default=10_000_000)
    parser.add_argument("--databases", default=",".join(DATABASES))
    parser.add_argument("--parts", default="writes,claims,reads,more")
    parser.add_argument("--keep", action="store_true", help="rows of the last table that are not measured now stay")
    asked = parser.parse_args()
    parts: dict[str, Callable[[str], dict[str, str]]] = {
        "writes": writes,
        "claims": claiming,
        "reads": lambda kind: reads(kind, asked.snapshots),
        "more": more,
    }
    told: dict[str, dict[str, str]] = load_table("store") if asked.keep else {}
    kinds: Sequence[str] = asked.databases.split(",")
    for part in asked.parts.split(","):
        for kind in kinds:
            for name, value in parts[part](kind).items():
                told.setdefault(name, {})[kind] = value
                print(f"{kind}: {name}: {value}; load {os.getloadavg()[0]:.0f}", flush=True)
    rows = [[name, *[of.get(kind, "-") for kind in DATABASES]] for name, of in told.items()]
    write("store", "What the store writes, keeps and reads", table(["", *DATABASES], rows))


if __name__ == "__main__":
    main()
