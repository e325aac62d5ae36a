"""A worker process from start to end: database, sandbox, Celery's consumer; and the reaper's, which has less of it."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from typing import Final, cast

from celery import Celery, signals
from celery.exceptions import SecurityWarning

from store.access.secret import SecretRefused, server_secret
from store.database import migrator
from store.database.session import Database, refusal
from store.database.settings import QUEUES, StoreSettings
from store.runs import lifecycle
from store.telemetry import logs
from store.telemetry.broker_probe import describe_failure
from store.telemetry.spans import Spans
from workers.admission import Admission
from workers.app import make_app, publisher
from workers.node import Node
from workers.sandbox.supervisor.start import better_supervisor
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings
from workers.signals import set_on_signals, telling
from workers.tasks import execute_next
from workers.upkeep.reaper import Reaper
from workers.upkeep.sender import Sender

BROKER_TRIES: Final = 10
LEAVE_SECONDS: Final = 5.0
HAND_BACK_SECONDS: Final = 30.0
"""A worker whose parent is gone leaves within the first, and within the second while it hands runs back."""

_log: Final = logging.getLogger(__name__)


class CannotStart(Exception):
    """The operator must act; the message is one line that says how."""


def serve_worker(store: StoreSettings, settings: WorkerSettings, queue: str, slots: int, supervisor: Supervisor) -> int:
    """Work on a queue until SIGTERM or SIGINT; the exit code comes back.

    The supervisor is the caller's: its zygote boots while this module's libraries are still being imported.

    Raises:
        CannotStart: the database is not migrated, the broker cannot be reached, or a Python module is not installed.
    """
    database = open_database(store, told=True)

    def work(asked: str) -> None:
        try:
            execute_next(node, cast("lifecycle.Queue", asked))
        except Exception as error:
            if not database.away(error):
                raise

    app = make_app(store, work)
    node = Node(
        database,
        supervisor,
        queue=cast("lifecycle.Queue", queue),
        slots=slots,
        lease_seconds=settings.lease_seconds,
        publish=publisher(app),
        better=lambda than: better_supervisor(settings, than),
        spans=_open_spans(store.spans_url),
    )
    if settings.memory_bytes is not None:
        node.admission = Admission(settings.memory_bytes)
    reach_broker(app)
    node.start()
    watch_parent(settings.parent, lambda: node.drain(0.0), lambda: node.keeper.held_runs)
    gc.collect()
    gc.freeze()  # modules and rules stay to the end: to go through them now and then makes a run 100 ms late
    try:
        exit_code = _consume(app, queue, slots, lambda: node.drain(settings.drain_seconds))
    finally:
        node.close()
    database.close()
    return exit_code


def _open_spans(url: str | None) -> Spans:
    try:
        return Spans(url, "backprobe-worker")
    except ValueError as error:  # the SDK is not installed
        raise CannotStart(str(error)) from None


def serve_reaper(store: StoreSettings, settings: WorkerSettings) -> int:
    """Reap, and send what is due, until SIGTERM or SIGINT; the exit code comes back.

    Raises:
        CannotStart: the database is not migrated, or the secret cannot be used. A broker that is away is waited for:
            leases come first.
    """
    database = open_database(store, told=True)
    sender = Sender(database, _load_secret(store), store.outward, public_url=store.public_url)
    stop = threading.Event()
    set_on_signals(stop)
    watch_parent(settings.parent, stop.set)
    sending = threading.Thread(target=sender.serve, args=(stop,), name="sender")
    sending.start()
    Reaper(database, store.make_home(), publisher(make_app(store)), store.max_database_bytes).serve(stop)
    sending.join()
    database.close()
    return 0


def _load_secret(store: StoreSettings) -> bytes:
    try:
        return server_secret(store)
    except SecretRefused as error:
        raise CannotStart(str(error)) from None
    except OSError as error:
        raise CannotStart(f"the secret cannot be read ({error.strerror}: {error.filename})") from None


def open_database(store: StoreSettings, *, told: bool = False) -> Database:
    """Open the database at this code's schema; `told` as of `Database`.

    Raises:
        CannotStart: it is not, or it does not answer.
    """
    if store.database_url.startswith("sqlite"):
        store.make_home()
    try:
        current = migrator.at_head(store.database_url)
    except Exception as error:
        why = f"the database does not answer ({type(error).__name__}): look at BACKPROBE_DATABASE_URL"
        raise CannotStart(refusal(error) or why) from error
    if not current:
        raise CannotStart("the database does not have this version's schema: run `backprobe migrate` first")
    return Database(store.database_url, told=told)


def reach_broker(app: Celery) -> None:
    """Wait some seconds for the broker.

    Raises:
        CannotStart: it does not answer, or its transport needs a Python module that is not installed.
    """
    try:
        with app.connection_for_read() as connection:
            connection.ensure_connection(
                max_retries=BROKER_TRIES, interval_start=0.2, interval_step=0.2, interval_max=1
            )
    except Exception as error:
        failure = describe_failure(app.conf.broker_url, error)
        hint = "" if failure.missing_module is not None else "; check BACKPROBE_BROKER_URL"
        raise CannotStart(f"{failure.text}{hint}") from error


def watch_parent(parent: int | None, leave: Callable[[], None], held: Callable[[], int] = lambda: 0) -> None:
    """When the process that started this one is gone, leave: within seconds, and by force if need be.

    Args:
        parent: Its pid; None: nobody is watched.
        leave: Begins to leave.
        held: Runs still in hand. On a busy machine to hand one back takes longer than `LEAVE_SECONDS`, and a run that
            was not handed back waits for the end of its lease.
    """
    if parent is None:
        return

    def watch() -> None:
        forever = threading.Event()
        while os.getppid() == parent:
            forever.wait(0.5)
        threading.Thread(target=politely, name="leave", daemon=True).start()  # it may wait for a lock
        forever.wait(LEAVE_SECONDS)
        last = time.monotonic() + HAND_BACK_SECONDS - LEAVE_SECONDS
        while held() and time.monotonic() < last:
            forever.wait(0.1)
        os._exit(1)

    def politely() -> None:
        leave()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def log_to_stderr() -> None:
    """Our own lines and Celery's warnings; no line of either holds a stranger's text."""
    logs.to_stderr()
    logging.getLogger("kombu.connection").setLevel(logging.ERROR)  # warns that the embedded broker has no host
    warnings.filterwarnings("ignore", category=SecurityWarning)  # of root: user code runs in the sandbox, not here


def _consume(app: Celery, queue: str, slots: int, drain: Callable[[], None]) -> int:
    """Celery's consumer, in this thread, until a signal ends it; its pool is `slots` threads."""
    shutting_down = telling(drain)  # Celery sends it from within its signal handler
    signals.worker_shutting_down.connect(shutting_down, weak=False)
    worker = app.Worker(
        pool="threads",
        concurrency=slots,
        queues=[QUEUES[queue]],
        hostname=f"{queue}-{os.getpid()}@backprobe",
        loglevel=logging.WARNING,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
        quiet=True,
    )
    try:
        with contextlib.suppress(SystemExit):
            worker.start()
    finally:
        signals.worker_shutting_down.disconnect(shutting_down)
    return worker.exitcode or 0
