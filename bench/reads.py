"""How fast the API is in itself: a page of tensors beside pydantic, a submit, the answer after a run's end.

usage: python -m bench.reads [--times 300] [--waits 40]

In process, by Flask's test client, on SQLite (durable) and PostgreSQL. The page of 100 tensors is asked for in turn
with a peer: the same question of the same record, each object dumped by pydantic and the whole by Flask's json, the
cheapest way that a view with an output schema has. "After the end" is from the return of the transaction that ends a
run to the answer of a GET that waits for it.
"""

import argparse
import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask import Response, json
from pydantic import TypeAdapter

from backprobe.rules import judge, why_none
from bench.service import stores
from bench.stored import short_record
from bench.tables import pair_ratios, spread, table, write
from service.api.run_json import recorded, run_of
from service.app import create_app
from service.context import Context
from service.settings import RateLimits, Settings
from store import migrate, queries, runs, workers
from store.finish import Ending, finish
from store.queries import TensorRow

PAGE = 100
MOMENTS = 15
SOURCE = "import torch\nx = torch.ones(3, requires_grad=True)\nprint(x.grad)\n"
WARM_UPS = 20


@contextmanager
def application(kind: str) -> Iterator[tuple[Any, Context]]:
    """An application on an empty database, without limits of requests, and with the peer's address in it."""
    stack = "embedded" if kind == "SQLite" else "PostgreSQL + Redis"
    with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home, stores(stack) as environment:
        found = Settings.from_environment(environment, Path(home))
        found = dataclasses.replace(found, rates=RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0))
        migrate.upgrade(found.store.database_url)
        app = create_app(found)
        shared: Context = app.extensions["backprobe"]
        each = TypeAdapter(TensorRow)

        @app.get("/v1/peer/<run>")
        def peer(run: str) -> Response:
            with shared.database.read() as transaction:
                page = queries.tensors(transaction, recorded(run_of(transaction, run)), after=None, limit=PAGE)
            body = {"items": [each.dump_python(item, mode="json") for item in page.items], "next_cursor": None}
            return Response(json.dumps(body), mimetype="application/json")

        yield app, shared
        shared.close()


def submitted(client: Any) -> str:
    """A queued run."""
    answer = client.post("/v1/runs", json={"source": SOURCE})
    if answer.status_code != 202:
        raise RuntimeError(answer.text)
    return str(answer.json["id"])


def ended(shared: Context, tensors: int) -> None:
    """Claim what is queued, and end it with a record."""
    with shared.database.begin() as transaction:
        node = workers.WorkerNode(id="bench:1:1", queues=("cpu",), levels=("none",), devices=("cpu",))
        workers.beat(transaction, node)
    claim = runs.claim(shared.database, "bench:1:1")
    if claim is None:
        raise RuntimeError("nothing to claim")
    record = short_record(tensors, MOMENTS)
    finish(shared.database, claim, Ending(status="succeeded"), record, judge(record), why_none(record))


def milliseconds(asked: Callable[[], Any], status: int) -> float:
    """Wall time of one request, in ms."""
    started = time.perf_counter()
    answer = asked()
    taken = (time.perf_counter() - started) * 1e3
    if answer.status_code != status:
        raise RuntimeError(answer.text)
    return taken


def pages(app: Any, shared: Context, times: int) -> tuple[list[float], list[float]]:
    """Milliseconds of the page, and of the peer's, in turn."""
    client = app.test_client()
    run = submitted(client)
    ended(shared, PAGE)
    ours, theirs = [], []
    for number in range(times + WARM_UPS):
        one = milliseconds(lambda: client.get(f"/v1/runs/{run}/tensors?limit={PAGE}"), 200)
        other = milliseconds(lambda: client.get(f"/v1/peer/{run}"), 200)
        if number >= WARM_UPS:
            ours.append(one)
            theirs.append(other)
    return ours, theirs


def submits(app: Any, times: int) -> list[float]:
    """Milliseconds of a submit that is answered 202."""
    client = app.test_client()
    taken = [milliseconds(lambda: client.post("/v1/runs", json={"source": SOURCE}), 202) for _ in range(times)]
    return taken[WARM_UPS:]


def waits(app: Any, shared: Context, times: int) -> list[float]:
    """Milliseconds from the end of a run to the answer of who waits for it."""
    found = []
    for _ in range(times):
        run, answered = submitted(app.test_client()), []

        def wait(run: str = run, answered: list[float] = answered) -> None:
            answer = app.test_client().get(f"/v1/runs/{run}", headers={"Prefer": "wait=30"})
            answered.append(time.perf_counter())
            if not answer.json["ended"]:
                raise RuntimeError(answer.text)

        waiting = threading.Thread(target=wait)
        waiting.start()
        while shared.waiters.waiting == 0:
            time.sleep(0.001)
        ended(shared, 5)
        done = time.perf_counter()
        waiting.join()
        found.append((answered[0] - done) * 1e3)
    return found


def main() -> None:
    """Measure both databases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--waits", type=int, default=40)
    asked = parser.parse_args()
    rows = []
    for kind in ("SQLite", "PostgreSQL"):
        with application(kind) as (app, shared):
            late = waits(app, shared, asked.waits)
            ours, theirs = pages(app, shared, asked.times)
            rows += [
                [kind, f"page of {PAGE} tensors", spread(ours, "{:.2f}"), "4"],
                [kind, "the same, an object at a time by pydantic", spread(theirs, "{:.2f}"), ""],
                [kind, "how many times as long", f"**{spread(pair_ratios(theirs, ours))}**", "2"],
                [kind, "submit (202)", spread(submits(app, asked.times), "{:.2f}"), "8"],
                [kind, "answer of a wait after the end", spread(late, "{:.2f}"), "15"],
            ]
    head = ["database", "what", "ms: median (least to most)", "target"]
    before = f"{asked.times} requests of each kind, {asked.waits} waits; the machine was shared with other work."
    write("reads", "The API in itself", f"{before}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
