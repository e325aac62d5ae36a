"""`backprobe worker`, `reaper`, `rejudge`, `executor`, with health checks, and `doctor`: argparse plug-ins.

Celery and the database are imported when a command runs, not when `backprobe --help` lists it.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backprobe.cli.exit_codes import UsageError
from workers.settings import WorkerSettings, slots

REAPER_SILENT_SECONDS = 15.0
FAILED = 3
"""Exit code of what cannot start, or of a check that found nothing alive."""


def worker(subparsers: Any) -> None:
    """Add `backprobe worker`."""
    parser = subparsers.add_parser("worker", help="execute runs of a queue")
    parser.add_argument("--queue", choices=("cpu", "gpu"), default="cpu", help="which runs to take (default: cpu)")
    parser.add_argument(
        "--concurrency",
        type=_positive,
        metavar="N",
        help="runs at once (default: 2 per core that programs may use; 1 on the gpu queue)",
    )
    parser.add_argument("--check", action="store_true", help="exit with 0 if a worker of this host is alive")
    parser.set_defaults(run=_worker)


def reaper(subparsers: Any) -> None:
    """Add `backprobe reaper`."""
    parser = subparsers.add_parser("reaper", help="take back the runs of dead workers, wake up idle ones")
    parser.add_argument("--check", action="store_true", help="exit with 0 if the reaper of this home is alive")
    parser.set_defaults(run=_reaper)


def rejudge(subparsers: Any) -> None:
    """Add `backprobe rejudge`."""
    parser = subparsers.add_parser("rejudge", help="judge stored runs again with today's rules, newest first")
    parser.add_argument("--most", type=_positive, metavar="N", help="stop after so many runs (default: all)")
    parser.add_argument(
        "--quarantined", action="store_true", help="judge also records whose judging ended its process three times"
    )
    parser.set_defaults(run=_rejudge)


def executor(subparsers: Any) -> None:
    """Add `backprobe executor`."""
    parser = subparsers.add_parser("executor", help="run the sandbox for a worker in another container")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="unix socket (default: BACKPROBE_EXECUTOR)")
    parser.add_argument("--queue", choices=("cpu", "gpu"), default="cpu", help="gpu: programs may see the GPUs")
    parser.add_argument("--check", action="store_true", help="exit with 0 if an executor listens there")
    parser.set_defaults(run=_executor)


def _worker(arguments: argparse.Namespace) -> int:
    from workers.sandbox.levels.capabilities import CannotConfine
    from workers.sandbox.supervisor.start import supervisor_for

    settings = _settings()
    if arguments.check:
        return _with_database("worker", _worker_is_alive)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))  # until Celery's consumer takes them over
    if settings.executor is None and (missing := _missing_torch()) is not None:
        return _print_failure(f"backprobe worker: {missing}")
    try:
        supervisor = supervisor_for(settings, arguments.queue)
    except CannotConfine as error:
        return _print_failure(
            f"backprobe worker: {error}; `backprobe doctor` says more, BACKPROBE_ISOLATION asks for less"
        )
    with supervisor:  # its torch loads while the rest is imported
        from workers import process

        process.log_to_stderr()
        count = slots(arguments.concurrency, arguments.queue, settings.isolation, cpus=_cpus(settings))
        try:
            return process.serve_worker(_stores(), settings, arguments.queue, count, supervisor)
        except process.CannotStart as error:
            return _print_failure(f"backprobe worker: {error}")


def _with_database(command: str, ask: Callable[[Any], int]) -> int:
    from store.database.session import refusal
    from workers import process

    process.log_to_stderr()
    try:
        return ask(process.open_database(_stores()))
    except process.CannotStart as error:
        return _print_failure(f"backprobe {command}: {error}")
    except Exception as error:
        if (why := refusal(error)) is None:
            raise
        return _print_failure(f"backprobe {command}: {why}")


def _worker_is_alive(database: Any) -> int:
    from store.admin import workers

    with database.read() as transaction:
        alive = workers.live(transaction)
    host = socket.gethostname() + ":"
    mine = [node for node in alive if node.id.startswith(host)]
    return (
        0 if mine else _print_failure(f"no worker of {host[:-1]} has beaten in the last {workers.SILENT_SECONDS:.0f} s")
    )


def _reaper(arguments: argparse.Namespace) -> int:
    from workers import process
    from workers.upkeep.reaper import BEAT_FILE

    store, settings = _stores(), _settings()
    process.log_to_stderr()
    if arguments.check:
        beat = store.home / BEAT_FILE
        silent = time.time() - beat.stat().st_mtime if beat.exists() else float("inf")
        return 0 if silent < REAPER_SILENT_SECONDS else _print_failure(f"no reaper of {store.home} is alive")
    try:
        return process.serve_reaper(store, settings)
    except process.CannotStart as error:
        return _print_failure(f"backprobe reaper: {error}")


def _rejudge(arguments: argparse.Namespace) -> int:
    def ask(database: Any) -> int:
        from workers.upkeep.rejudging import Rejudging

        rejudging = Rejudging(database)
        if arguments.quarantined:
            print(f"{rejudging.release_quarantined()} runs leave quarantine", file=sys.stderr)
        totals = rejudging.all(arguments.most, _print_rejudged)
        print(
            f"{totals.runs} runs judged again: {totals.new} findings new, {totals.back} back, {totals.gone} gone, "
            f"{totals.same} as before; {totals.failed} could not be judged"
        )
        return FAILED if totals.failed else 0

    return _with_database("rejudge", ask)


def _print_rejudged(public_id: str, done: int, change: Any) -> None:
    said = "could not be judged" if change is None else f"{change.new} new, {change.gone} gone"
    print(f"{done}  {public_id}  {said}", file=sys.stderr, flush=True)


def _executor(arguments: argparse.Namespace) -> int:
    from store.telemetry import logs
    from workers.sandbox.levels.capabilities import CannotConfine
    from workers.sandbox.remote import executor as service
    from workers.sandbox.remote.executor_client import executor_answers
    from workers.sandbox.supervisor.start import executor_confinement

    settings = _settings()
    path = arguments.socket or (Path(settings.executor) if settings.executor else None)
    if path is None:
        return _print_failure("backprobe executor: say where with --socket PATH or BACKPROBE_EXECUTOR", 2)
    if arguments.check:
        return 0 if executor_answers(str(path)) else _print_failure(f"no executor answers at {path}")
    logs.to_stderr()
    if (missing := _missing_torch()) is not None:
        return _print_failure(f"backprobe executor: {missing}")
    try:
        confined = executor_confinement(settings, arguments.queue)
    except CannotConfine as error:
        return _print_failure(f"backprobe executor: {error}")
    gpu = arguments.queue == "gpu"
    devices, fraction = (settings.visible_devices, settings.gpu_memory_fraction) if gpu else ("", None)
    service.run(path, devices, confined, fraction, further=settings.warm_further)
    return 0


def _cpus(settings: WorkerSettings) -> float:
    """Return the processors that programs of this worker may use: the executor's, if they run in another container."""
    from workers.sandbox.levels.usable_cpus import usable_cpus
    from workers.sandbox.remote.executor_client import executor_cpus

    found = None if settings.executor is None else executor_cpus(settings.executor)
    return usable_cpus() if found is None else found


def _missing_torch() -> str | None:
    """Say that torch is not installed; None: it is. Without it no warm process starts."""
    from importlib.util import find_spec

    from store.database.missing_module import describe_missing

    return describe_missing("torch") if find_spec("torch") is None else None


def doctor(subparsers: Any) -> None:
    """Add `backprobe doctor`."""
    parser = subparsers.add_parser("doctor", help="say what isolation this machine can give, and why not more")
    parser.add_argument("--no-probe", action="store_true", help="only look; attack no sandbox to prove it")
    parser.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from workers import doctor as ward

    return ward.examine(_settings(), probe=not arguments.no_probe, store=_stores())


def _settings() -> WorkerSettings:
    """Read the settings from the environment; report an error in them in one line.

    Raises:
        UsageError: a variable cannot be read.
    """
    try:
        return WorkerSettings.from_environment()
    except ValueError as error:
        raise UsageError(str(error)) from None


def _stores() -> Any:
    """Find where everything lies; report an error in the environment in one line.

    Raises:
        UsageError: a variable cannot be read.
    """
    from store.database.settings import StoreSettings

    try:
        return StoreSettings.from_environment()
    except ValueError as error:
        raise UsageError(str(error)) from None


def _print_failure(line: str, code: int = FAILED) -> int:
    print(line, file=sys.stderr)
    return code


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
