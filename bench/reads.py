"""How fast the API is in itself: a page of tensors beside pydantic, a submit, the answer after a run's end.

usage: python -m bench.reads [--times 300] [--waits 40]

In process, by Flask's test client, on SQLite (durable) and PostgreSQL. The page of 100 tensors is asked for in turn
with a peer: the same address behind the same checks, the same statements and rows, answered as a view with an output
schema does it: a pydantic model made of each row, with models for what it holds, each dumped, and Flask's json. Both
in wall time and in processor time of the process, which other work on the machine disturbs less; what PostgreSQL's own
process does is in the first only. "After the end" is from the return of the transaction that ends a run to the answer
of a GET that waits for it.
"""

import argparse
import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from flask import Response, json
from pydantic import BaseModel, ConfigDict, Field

from backprobe.rules import judge, why_none
from bench.service import stores
from bench.stored_runs import short_record
from bench.tables import pair_ratios, spread, table, write
from service.api.records.tensor_filters import TensorsQuery
from service.api.runs.run_json import require_record, run_of
from service.app import create_app
from service.context import Context
from service.settings import RateLimits, Settings
from service.web.body import query
from service.web.reply import cache_headers, not_modified, read_cursor
from store.admin import workers
from store.database import migrator
from store.queries.tensors.mentions import load_mentions
from store.queries.tensors.tensor_pages import found_tensors
from store.runs import lifecycle
from store.runs.completion import Ending, finish

PAGE = 100
MOMENTS = 15
SOURCE = "import torch\nx = torch.ones(3, requires_grad=True)\nprint(x.grad)\n"
WARM_UPS = 20
STATE = ("is_leaf", "requires_grad", "retains_grad", "grad_fn", "version", "grad", "held_bytes")


class Created(BaseModel):
    """Where a tensor came from."""

    by: str
    how: str
    proof: str


class State(BaseModel):
    """Its last state."""

    moment: int
    kind: str
    is_leaf: bool
    requires_grad: bool
    retains_grad: bool
    grad_fn: str | None
    version: int | None
    grad: Literal["none", "present", "not-read"]
    held_bytes: int


class WhyNone(BaseModel):
    """Why it has no gradient."""

    verdict: str
    line: int | None
    backward_call: int | None
    text: str


class Tensor(BaseModel):
    """A tensor as the peer's schema says it: the fields of the API."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    tensor: int
    name: str | None
    fqn: str | None
    role: str | None
    cls: str = Field(alias="class")
    shape: list[int] | None
    dtype: str
    device: str
    numel: int
    bytes: int = Field(validation_alias="size_bytes")
    line: int | None
    path: str | None
    storage: int | None
    view_of: int | None
    created: Created
    died: int | None
    state: State | None
    why_none: WhyNone | None
    grad_norm: float | None
    value_norm: float | None
    nonfinite: int
    grad_ever: bool
    bindings: list[str]
    findings: list[str]


def modelled(row: Any, names: Any, findings: Any) -> Tensor:
    """The model of one row, with models for what it holds."""
    why = None
    if row["why_none"] is not None:
        place = {"line": row["why_line"], "backward_call": row["why_call"]}
        why = WhyNone(verdict=row["why_none"], text=row["why_text"] or "", **place)
    state = None
    if row["last_moment"] is not None:
        state = State(moment=row["last_moment"], kind=row["last_kind"], **{name: row[name] for name in STATE})
    created = Created(by=row["created_by"], how=row["created_how"], proof=row["proof"])
    held = {"created": created, "state": state, "why_none": why}
    number = row["tensor"]
    return Tensor(**{**row, **held, "bindings": names[number], "findings": findings[number]})


@contextmanager
def application(kind: str) -> Iterator[tuple[Any, Context]]:
    """An application on an empty database, without limits of requests, and with the peer's address in it."""
    stack = "embedded" if kind == "SQLite" else "PostgreSQL + Redis"
    with tempfile.TemporaryDirectory(prefix="backprobe-bench-") as home, stores(stack) as environment:
        found = Settings.from_environment(environment, Path(home))
        found = dataclasses.replace(found, rates=RateLimits(reads=0, submits=0, tenant_reads=0, tenant_submits=0))
        migrator.upgrade(found.store.database_url)
        app = create_app(found)
        shared: Context = app.extensions["backprobe"]

        @app.get("/v1/peer/<run>")
        @query(TensorsQuery)
        def peer(run: str, query: TensorsQuery) -> Response:
            after = read_cursor(f"{run} peer", query)
            with shared.database.read() as transaction:
                row = require_record(run_of(transaction, run))
                if same := not_modified(row):
                    return same
                found, _ = found_tensors(transaction, row, sort=query.sort, after=after, limit=query.limit)
                names, findings = load_mentions(transaction, row, [each.tensor for each in found])
            models = [modelled(each._mapping, names, findings) for each in found]  # noqa: SLF001 - a column is named `class`
            body = {"items": [model.model_dump(mode="json", by_alias=True) for model in models], "next_cursor": None}
            return Response(json.dumps(body), headers=cache_headers(row), mimetype="application/json")

        yield app, shared
        shared.close()


def submitted(client: Any) -> str:
    """A queued run."""
    answer = client.post("/v1/runs", json={"source": SOURCE})
    if answer.status_code != 202:
        raise RuntimeError(answer.text)
    return str(answer.json["id"])


def end_queued_run(shared: Context, tensors: int) -> None:
    """Claim what is queued, and end it with a record."""
    with shared.database.begin() as transaction:
        node = workers.WorkerNode(id="bench:1:1", queues=("cpu",), levels=("none",), devices=("cpu",))
        workers.beat(transaction, node)
    claim = lifecycle.claim(shared.database, "bench:1:1")
    if claim is None:
        raise RuntimeError("nothing to claim")
    record = short_record(tensors, MOMENTS)
    finish(shared.database, claim, Ending(status="succeeded"), record, judge(record), why_none(record))


def milliseconds(asked: Callable[[], Any], status: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Time of one request, in ms."""
    started = clock()
    answer = asked()
    taken = (clock() - started) * 1e3
    if answer.status_code != status:
        raise RuntimeError(answer.text)
    return taken


def pages(app: Any, shared: Context, times: int, clock: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Milliseconds of the page, and of the peer's, in turn."""
    client = app.test_client()
    run = submitted(client)
    end_queued_run(shared, PAGE)
    ours, theirs = f"/v1/runs/{run}/tensors?limit={PAGE}", f"/v1/peer/{run}?limit={PAGE}"
    if client.get(ours).json != client.get(theirs).json:
        raise RuntimeError("the peer says something else")
    taken: list[tuple[float, float]] = []
    for _ in range(times + WARM_UPS):
        pair = [milliseconds(lambda at=at: client.get(at), 200, clock) for at in (ours, theirs)]
        taken.append((pair[0], pair[1]))
    return [seconds for seconds, _ in taken[WARM_UPS:]], [other for _, other in taken[WARM_UPS:]]


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
        end_queued_run(shared, 5)
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
            for what, clock, most in (("wall", time.perf_counter, "4"), ("processor", time.process_time, "")):
                ours, theirs = pages(app, shared, asked.times, clock)
                rows += [
                    [kind, f"page of {PAGE} tensors, {what}", spread(ours, "{:.2f}"), most],
                    [kind, f"the same, an object at a time by pydantic, {what}", spread(theirs, "{:.2f}"), ""],
                    [kind, f"how many times as long, {what}", f"**{spread(pair_ratios(theirs, ours))}**", "2"],
                ]
            rows += [
                [kind, "submit (202)", spread(submits(app, asked.times), "{:.2f}"), "8"],
                [kind, "answer of a wait after the end", spread(late, "{:.2f}"), "15"],
            ]
    head = ["database", "what", "ms: median (least to most)", "target"]
    before = f"{asked.times} requests of each kind, {asked.waits} waits; the machine was shared with other work."
    write("reads", "The API in itself", f"{before}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
