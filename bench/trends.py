"""What the page of a project's trends costs where the project has a million runs.

usage: python -m bench.trends [--runs 1000000] [--days 365] [--groups 400] [--times 100]

In process, by Flask's test client, on SQLite and PostgreSQL. The runs are spread evenly over the days before today, six
of ten succeeded; each group was shown on every day. The database makes the rows itself, and is analyzed (PostgreSQL:
vacuumed) as a server's is by itself.
"""

import argparse
import dataclasses
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bench.service import stores
from bench.stored_runs import Clock
from bench.tables import table, write
from service.app import create_app
from service.context import Context
from service.settings import RateLimits, Settings
from store.database import migrator
from store.database.session import Database
from store.runs import lifecycle
from store.tables import finding_group, run

AT_ONCE = 50_000
WARM_UPS = 5
NOW = {"sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ({ago}) || ' seconds')"}
NOW["postgresql"] = "now() - ({ago}) * interval '1 second'"
SERIES = {
    "sqlite": "(with recursive i(n) as (select :start union all select n + 1 from i where n + 1 < :stop) "
    "select n from i)",
    "postgresql": "(select n from generate_series(cast(:start as int), cast(:stop as int) - 1) n)",
}
STATUS = (
    "case when n % 10 < 6 then 'succeeded' when n % 10 < 8 then 'failed' "
    "when n % 10 = 8 then 'exceeded' else 'lost' end"
)


@contextmanager
def application(kind: str) -> Iterator[tuple[Any, Context]]:
    """An application on an empty database, without limits of requests."""
    stack = "embedded" if kind == "SQLite" else "PostgreSQL + Redis"
    with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home, stores(stack) as environment:
        found = Settings.from_environment(environment, Path(home))
        found = dataclasses.replace(found, rates=RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0))
        migrator.upgrade(found.store.database_url)
        app = create_app(found)
        shared: Context = app.extensions["backprobe"]
        yield app, shared
        shared.close()


def fill(database: Database, runs: int, days: int, groups: int) -> None:
    """Runs, groups and the days on which runs showed these."""
    with database.begin() as transaction:
        lifecycle.submit(transaction, lifecycle.Submission(files={"main.py": "pass"}, entry="main.py"))
    kind = "sqlite" if database.sqlite else "postgresql"
    at = NOW[kind].format(ago=f"n * {days * 86_400.0 / runs}")
    made = {"public_id": "'run_' || n", "status": STATUS, "created_at": at, "finished_at": at, "errors": "n % 3"}
    made |= {"warnings": "n % 2", "notes": "n % 5"}
    _insert(
        database, run.name, {column.name: f"t.{column.name}" for column in run.c if column.name != "id"} | made, runs
    )
    seen = NOW[kind].format(ago="n * 60")
    first = NOW[kind].format(ago=f"n * {days * 86_400.0 / groups}")
    group = {
        "public_id": "'fg_' || n", "tenant_id": "t.tenant_id", "project_id": "t.project_id", "fingerprint": "'p' || n",
        "rule": "'rule-' || (n % 40)", "level": "'error'", "state": "case when n % 4 = 0 then 'fixed' else 'open' end",
        "state_at": seen, "first_run_id": "t.id", "last_run_id": "t.id", "first_seen_at": first, "last_seen_at": seen,
        "runs": "1", "returned": "0", "path": "'main.py'", "line": "1", "message": "'seen'", "version": "1",
    }  # fmt: skip
    _insert(database, finding_group.name, group, groups)
    day = "substr(strftime('%Y-%m-%d', 'now', '-' || n || ' days'), 1, 10)"
    if not database.sqlite:
        day = "to_char((now() - n * interval '1 day') at time zone 'UTC', 'YYYY-MM-DD')"
    shown = "insert into finding_group_day (group_id, project_id, rule, day, runs) "
    shown += f"select g.id, g.project_id, g.rule, {day}, 7"
    series = SERIES[kind].replace(":start", "0").replace(":stop", str(days))
    with database.begin() as transaction:
        transaction.execute(sa.text(f"{shown} from finding_group g, {series} i where true on conflict do nothing"))
    if database.sqlite:
        with closing(database.watch()) as connection:
            connection.execute("ANALYZE")
    else:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("VACUUM (ANALYZE)"))


def _insert(database: Database, name: str, values: dict[str, str], count: int) -> None:
    series = SERIES["sqlite" if database.sqlite else "postgresql"]
    statement = f"insert into {name} ({', '.join(values)}) select {', '.join(values.values())}"
    source = f"from {series} i, (select * from run order by id limit 1) t"
    for start in range(0, count, AT_ONCE):
        with database.begin() as transaction:
            transaction.execute(sa.text(f"{statement} {source}"), {"start": start, "stop": min(count, start + AT_ONCE)})


def measure(database: Database, client: Any, address: str, times: int) -> list[str]:
    """Milliseconds of a request: the median and the 95th percentile of wall time, and the mean of processor time."""
    for _ in range(WARM_UPS):
        client.get(address)
    taken: list[float] = []
    clock = Clock(database)
    for _ in range(times):
        began = time.perf_counter()
        answer = client.get(address)
        taken.append((time.perf_counter() - began) * 1e3)
        if answer.status_code != 200:
            raise RuntimeError(answer.text)
    used = clock.seconds()[1] / times * 1e3
    taken.sort()
    return [f"{taken[len(taken) // 2]:.0f}", f"{taken[int(0.95 * (len(taken) - 1))]:.0f}", f"{used:.0f}"]


def main() -> None:
    """Measure both databases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--groups", type=int, default=400)
    parser.add_argument("--times", type=int, default=100)
    asked = parser.parse_args()
    rows: list[list[str]] = []
    for kind in ("SQLite", "PostgreSQL"):
        with application(kind) as (app, shared):
            fill(shared.database, asked.runs, asked.days, asked.groups)
            client = app.test_client()
            (project,) = client.get("/v1/projects").json["items"]
            pages = {f"trends, {days} days": f"/projects/{project['id']}?days={days}" for days in (7, 30, 90)}
            for name, address in (pages | {"the inbox, 50 groups": "/findings?state=all"}).items():
                found = re.search(r"([\d,]+) runs? in the last", client.get(address).text)
                counted = "" if found is None else found[1]
                rows.append([kind, name, counted, *measure(shared.database, client, address, asked.times)])
                print(" | ".join(rows[-1]), flush=True)
    head = ["database", "page", "runs counted", "ms: median", "p95", "processor, ms"]
    before = (
        f"{asked.runs:,} runs over {asked.days} days, {asked.groups:,} groups; {asked.times} requests of each page."
    )
    write("trends", "Trends of a project", f"{before}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
