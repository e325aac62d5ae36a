"""`backprobe serve`: everything in one command. Lock, migrate, children, web server, until a signal.

1. What can fail fails first, with one line and a way out: lock, port, home, database.
2. SIGTERM or Ctrl-C: no new request, children drain, nothing is left behind. A second signal kills.
3. If this process is killed, its children end by themselves (child_processes.py).
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from service.process.address import is_loopback, listen
from service.process.home import CannotServe, ServeLock, make_writable, private_files, refuse_networked
from service.process.required_modules import check_modules
from service.server.managed_processes import DRAIN_SECONDS, Children, Silence
from service.server.start_checks import check_migrated, migrate_database, read_settings
from service.settings import Settings, children_environment
from store.database.settings import StoreSettings, describe_weakness

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from service.context import Context
    from service.server.http_server import Server

REAPER_DELAY_SECONDS: Final = 3.0
"""At the start the cores belong to the worker and the web server; leases are looked at every second after that."""

SUPERVISION_FAILED: Final = 1
"""Exit code when worker and reaper are no longer kept alive: a service manager then restarts everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of the command line.

    Attributes:
        workers: Processes for the queue cpu; 0 with `--no-worker`.
        demo: Submit the tutorial snippet, print its result, keep serving.
        trust_code: Where nothing can be isolated, snippets may run unconfined; on loopback they may.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    home: Path | None = None
    demo: bool = False
    trust_code: bool = False


def say(line: str) -> None:
    """Print a line for the person at the terminal."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is a command; stdout belongs to the demo's result


def listen_checked(host: str, port: int, api_key: str | None) -> socket.socket:
    """Bind the port.

    Raises:
        CannotServe: beyond loopback without a key that is hard to guess; or the port is taken.
    """
    if not is_loopback(host):
        _check_api_key(host, api_key or "")
    try:
        return listen(host, port)
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise CannotServe(f"Cannot listen on {host}:{port} ({said}); name another by --port.") from None


def _check_api_key(host: str, api_key: str) -> None:
    fault = describe_weakness(api_key)
    if not api_key:
        raise CannotServe(
            f"{host} can be reached from other machines: set BACKPROBE_API_KEY, or serve on 127.0.0.1 only."
        )
    if fault is not None:
        raise CannotServe(
            f"{host} can be reached from other machines, and BACKPROBE_API_KEY {fault}: set it to what "
            "`openssl rand -hex 32` prints, or serve on 127.0.0.1 only."
        )


def _children(wanted: ServeOptions, store: StoreSettings, fallen: Callable[[], None]) -> Children:
    from store.admin import workers
    from store.database.session import Database

    database, silence = Database(store.database_url), Silence()

    def silent(pids: Mapping[str, int]) -> set[str]:
        try:
            with database.read() as transaction:
                nodes = workers.live(transaction, silent_seconds=3600)
        except Exception:  # noqa: BLE001 - a database that is away tells nothing about a worker
            silence.forget()
            return set()
        deaf = {
            node_id.split(":")[1]
            for node_id in silence.find_silent({node.id: node.heartbeat_at for node in nodes})
            if ":" in node_id
        }
        return {name for name, pid in pids.items() if str(pid) in deaf}

    commands = {f"worker-{n}": ("worker", "--queue", "cpu") for n in range(1, wanted.workers + 1)}
    return Children(
        {**commands, "reaper": ("reaper",)},
        {"BACKPROBE_LOG_LEVEL": QUIET} | children_environment(store) | _trust(wanted),
        store.home / "logs",
        silent=silent,
        delays={"reaper": REAPER_DELAY_SECONDS},
        fallen=fallen,
    )


def _signals(stop: threading.Event, again: threading.Event) -> None:
    """Set `stop` at the first SIGTERM or SIGINT, and `again` at each further one.

    A thread does it: `Event.set` takes a lock that the interrupted thread may hold, and then it waits for ever.
    """
    heard: SimpleQueue[None] = SimpleQueue()  # its put is made for signal handlers

    def listen() -> None:
        while True:
            heard.get()
            (again if stop.is_set() else stop).set()

    threading.Thread(target=listen, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: heard.put(None))


QUIET: Final = "warning"
"""Level of `serve` and its children, unless BACKPROBE_LOG_LEVEL says another: a person's own service."""


def _log_to_stderr(level: str = "info") -> None:
    from store.telemetry import logs

    logs.to_stderr(level=level)
    for talkative in ("waitress", "kombu"):
        logging.getLogger(talkative).setLevel(logging.ERROR)


def run(wanted: ServeOptions) -> int:
    """Serve until a signal; the exit code."""
    private_files()
    _log_to_stderr(QUIET)
    try:
        return _serve(wanted, read_settings(lambda: StoreSettings.from_environment(home=wanted.home)))
    except CannotServe as error:
        say(f"backprobe: {error}")
        return 2


def _serve(wanted: ServeOptions, store: StoreSettings) -> int:
    make_writable(store.home)
    if store.database_url.startswith("sqlite"):
        refuse_networked(store.home)
    lock = ServeLock(store.home)
    settings = read_settings(lambda: Settings.from_environment(home=wanted.home))
    check_modules(settings)
    listening = listen_checked(wanted.host, wanted.port, settings.api_key)
    url = _url(wanted.host, listening.getsockname()[1])
    lock.tell(url)
    migrate_database(store)
    stop, again = threading.Event(), threading.Event()
    _signals(stop, again)
    children = _children(wanted, store, stop.set)
    children.start()  # before Flask is imported: the worker's torch takes the longest
    from service.process.readiness import announce

    server, shared = start_web(settings, listening, lambda: children.list_start_failures("worker"))
    shared.metrics.restarts = children.restarts
    waits = "runs wait until the worker has proved its isolation" if wanted.workers else "runs wait for a worker"
    say(f"Backprobe serves {url} (home {store.home}); Ctrl-C stops it. Now {waits}.")
    announcing = threading.Thread(target=announce, args=(shared, say, stop), name="announcing", daemon=True)
    announcing.start()
    if wanted.demo:
        from service.server import demo

        threading.Thread(target=demo.show, args=(url, settings, stop), name="demo", daemon=True).start()
    stop.wait()
    say("Stopping: runs in hand may end, Ctrl-C again to kill them.")
    shared.hub.close()  # whoever waits for a run's end is answered now
    _end(server, children, again)
    shared.close()
    return SUPERVISION_FAILED if children.failed else 0


def start_web(
    settings: Settings, listening: socket.socket, unstarted: Callable[[], Sequence[str]] = tuple
) -> tuple[Server, Context]:
    """Start the web server; with it comes what its application opened, to be closed after it."""
    from service.app import create_app
    from service.context import EXTENSION
    from service.server.http_server import Server, settle

    app = create_app(settings, unstarted)
    settle()
    server = Server(app, listening, settings.threads)
    server.start()
    shared: Context = app.extensions[EXTENSION]
    shared.broker.start()
    return server, shared


def _trust(wanted: ServeOptions) -> dict[str, str]:
    """Return the environment that tells a worker whether it may run code without isolation."""
    return {"BACKPROBE_TRUST_CODE": "1"} if wanted.trust_code or is_loopback(wanted.host) else {}


def _url(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - it is compared, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _end(server: Server, children: Children, again: threading.Event) -> None:
    children.stop()
    server.stop()
    deadline = time.monotonic() + DRAIN_SECONDS + 5
    while not children.wait(0.05) and time.monotonic() < deadline:
        if again.is_set():
            children.kill()
    children.kill()
    children.wait(5)


def run_api(host: str, port: int, home: Path | None) -> int:
    """Serve the API and the pages only; workers and reaper run elsewhere. The exit code."""
    private_files()
    _log_to_stderr()
    try:
        store = read_settings(lambda: StoreSettings.from_environment(home=home))
        make_writable(store.home)
        check_migrated(store)
        settings = read_settings(lambda: Settings.from_environment(home=home))
        check_modules(settings)
        listening = listen_checked(host, port, settings.api_key)
    except CannotServe as error:
        say(f"backprobe: {error}")
        return 2
    stop, again = threading.Event(), threading.Event()
    _signals(stop, again)
    server, shared = start_web(settings, listening)
    say(f"Backprobe's API is at {_url(host, listening.getsockname()[1])}; Ctrl-C stops it.")
    stop.wait()
    shared.hub.close()
    server.stop(30.0)
    shared.close()
    return 0


def run_migrate(home: Path | None) -> int:
    """Migrate the database and end; the exit code."""
    private_files()
    try:
        store = read_settings(lambda: StoreSettings.from_environment(home=home))
        make_writable(store.home)
        migrate_database(store)
    except CannotServe as error:
        say(f"backprobe: {error}")
        return 2
    say("The database is at this version's schema.")
    return 0
