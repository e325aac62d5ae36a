"""What Prometheus reads: the database's figures and tallies, and what this process has answered.

1. No label comes from outside: queues, levels, statuses and routes as the code spells them; no tenant, no path.
2. Figures are of the database, so every API process tells the same: take one (`max without (instance)`). Requests and
   wake-ups are counted by each process for itself: add them up.
3. Counters begin with the process, as Prometheus has it; what is counted from the database with its first scrape.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from flask import g, request
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from backprobe.isolation import ISOLATION_LEVELS
from store.admin import workers
from store.admin.figures import MEANINGS, Figure, current
from store.admin.tally import RUN_SECONDS, Happened, Tally
from store.admin.worker_tally import WorkerTally
from store.database.session import is_unavailable
from store.runs.model import QUEUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from flask import Flask, Response
    from prometheus_client.metrics_core import Metric

    from service.limits.turns import Turns
    from service.wake_up import Wakeups
    from store.admin.worker_tally import WorkersSoFar
    from store.admin.workers import WorkerNode
    from store.database.session import Database

REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds; a request that waits for a run's end takes 30 s at most."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
CHILDREN: Final = ("worker", "reaper")
"""What `serve` starts."""

NO_ROUTE: Final = "none"
"""The route of a request to an address that there is not."""


class _DatabaseCollector(Collector):
    """What the database holds, asked at each scrape; a database that is away is one metric that says so."""

    def __init__(self, database: Database, tally: Tally) -> None:
        self._database, self._tally = database, tally
        self._of_workers = WorkerTally()

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "backprobe_database_up", "1: the database answers; 0: only this process's metrics are exported"
        )
        try:
            with self._database.read() as reading:
                found = tuple(current(reading, self._database))
                live = workers.live(reading)
                happened = self._tally.look(reading)
        except Exception as error:
            if not is_unavailable(error):
                raise
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from _gauges(found)
        yield _workers(live)
        yield from _worker_counters(self._of_workers.look(live))
        yield from _counters(happened)


def _gauges(found: Sequence[Figure]) -> Iterator[Metric]:
    families: dict[str, GaugeMetricFamily] = {}
    for figure in found:
        if figure.name == "workers":  # told by queue and level
            continue
        labels = ["queue"] if figure.label else []
        made = families.setdefault(
            figure.name, GaugeMetricFamily(f"backprobe_{figure.name}", MEANINGS[figure.name], labels=labels)
        )
        made.add_metric([figure.label] if figure.label else [], figure.value)
    yield from families.values()


def _workers(live: Sequence[WorkerNode]) -> Metric:
    family = GaugeMetricFamily(
        "backprobe_workers", "workers that beat and offer this level to this queue", labels=["queue", "level"]
    )
    for queue in QUEUES:
        for level in ISOLATION_LEVELS:
            count = sum(queue in node.queues and level in node.levels and not node.draining for node in live)
            family.add_metric([queue, level], count)
    return family


def _worker_counters(so_far: WorkersSoFar) -> Iterator[Metric]:
    yield _counter("backprobe_worker_starts", "worker processes that have started", "queue", so_far.starts)
    yield _counter(
        "backprobe_oom_kills", "processes that the kernel killed for want of memory", "queue", so_far.oom_kills
    )
    yield _counter(
        "backprobe_warm_process_losses",
        "warm processes that ended without being asked to, or did not start",
        "queue",
        so_far.warm_losses,
    )


def _counters(so_far: Happened) -> Iterator[Metric]:
    yield _counter("backprobe_runs", "runs that ended", "status", so_far.runs)
    yield _counter("backprobe_claims", "attempts at runs that ended, by how", "result", so_far.attempts)
    yield _counter(
        "backprobe_lease_expiries",
        "attempts whose worker sent no more heartbeats",
        "",
        {"": so_far.attempts["worker-lost"]},
    )
    yield _counter("backprobe_snapshots_written", "snapshots in records of runs that ended", "", {"": so_far.snapshots})
    yield _counter("backprobe_deliveries", "tries at deliveries, by answer", "result", so_far.tries)
    buckets = [(str(most), float(count)) for most, count in zip(RUN_SECONDS, so_far.run_seconds, strict=True)]
    yield HistogramMetricFamily(
        "backprobe_run_seconds",
        "from the start of a program to its end",
        buckets=[*buckets, ("+Inf", float(so_far.timed))],
        sum_value=so_far.seconds,
    )


def _counter(name: str, meaning: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label] if label else [])
    for value, count in values.items():
        family.add_metric([value] if label else [], count)
    return family


class _Woken(Collector):
    """Wake-ups of this process."""

    def __init__(self, wakeups: Wakeups) -> None:
        self._wakeups = wakeups

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        counts = {"published": self._wakeups.published, "failed": self._wakeups.failed}
        yield _counter("backprobe_wakeups", "wake-ups after a submit, of this process", "kind", counts)


_NONE_HELD_BACK: Final[dict[str, int]] = {"waited": 0, "refused": 0}


class _Turns(Collector):
    """Requests that wait for a thread of this process."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        turns = self._metrics.turns
        waiting = GaugeMetricFamily("backprobe_http_waiting", "requests that wait for a thread of this process")
        waiting.add_metric([], 0 if turns is None else turns.waiting)
        yield waiting
        counts = {"waited": turns.held_back, "refused": turns.refused} if turns is not None else _NONE_HELD_BACK
        yield _counter("backprobe_http_held_back", "requests whose tenant had all at work that it may", "kind", counts)


class _Restarts(Collector):
    """Child processes of this process that were started again."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        counts = dict.fromkeys(CHILDREN, 0) | dict(self._metrics.restarts())
        yield _counter("backprobe_restarts", "children of this `serve` that were started again", "process", counts)


class Metrics:
    """Of one application.

    Attributes:
        turns: Of the server that answers for it; None: nothing serves it.
        tally: What has ended since the first scrape.
        restarts: By kind of child, how many this process has started again; empty: it starts none.
    """

    def __init__(self, database: Database, wakeups: Wakeups) -> None:
        self.tally = Tally()
        self._registry = CollectorRegistry()
        self._registry.register(_DatabaseCollector(database, self.tally))
        self._registry.register(_Woken(wakeups))
        self.turns: Turns | None = None
        self._registry.register(_Turns(self))
        self.restarts: Callable[[], Mapping[str, int]] = dict
        self._registry.register(_Restarts(self))
        self._requests = Counter(
            "backprobe_http_requests",
            "requests that this process has answered",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "backprobe_http_request_seconds",
            "from a request's arrival to the first byte of its answer, in this process",
            ("route",),
            buckets=REQUEST_SECONDS,
            registry=self._registry,
        )

    def render(self) -> bytes:
        """Return all metrics in Prometheus's text format 0.0.4."""
        return generate_latest(self._registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request and its duration."""
        self._requests.labels(method if method in _METHODS else "other", route, f"{status // 100}xx").inc()
        self._seconds.labels(route).observe(seconds)


def route() -> str:
    """Return the route of this request as the code spells it: `/v1/runs/<run>`."""
    return NO_ROUTE if request.url_rule is None else request.url_rule.rule


def register(app: Flask, metrics: Metrics) -> None:
    """Count every request; before the checks, so that a refused one counts too."""

    @app.before_request
    def _begin() -> None:
        g.began = time.perf_counter()

    @app.after_request
    def _end(response: Response) -> Response:
        metrics.count_request(request.method, route(), response.status_code, time.perf_counter() - g.began)
        return response
