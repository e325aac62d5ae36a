"""`backprobe doctor`: what isolation this machine can give, why not more, and what would change it.

A level that lacks nothing is then attacked: a sandbox is booted at it, and small attacks of every family are made.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from backprobe.isolation import ISOLATION_LEVELS, IsolationLevel
from store.admin import workers
from store.database.session import Database, refusal
from store.database.settings import StoreSettings
from store.telemetry import broker_probe
from workers.sandbox.levels.capabilities import CannotConfine, confinement, table
from workers.sandbox.levels.names import Confinement
from workers.sandbox.levels.probe import Proof, prove
from workers.sandbox.remote.boot import exec_zygote
from workers.sandbox.supervisor.start import supervisor_for
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

BOOT_SECONDS = 60.0
LITTLE_BYTES = 1 << 30
"""The doctor warns if the disk of the home has less free space than this."""
NO_LEVEL = 3


def examine(settings: WorkerSettings, *, probe: bool, store: StoreSettings | None = None) -> int:
    """Print what holds; the exit code is 0 if some level beyond `none` does.

    Args:
        settings: Of a worker.
        probe: Attack what lacks nothing.
        store: Where running workers are listed and the broker is; None: they are not looked at.
    """
    holds: dict[IsolationLevel, bool] = {}
    for level, lacks in table(settings.sandbox_uid):
        if lacks:
            _line(level, "not here")
            for lack in lacks:
                print(f"             {lack}")
        elif level == "none":
            _line(level, "always: limits and a separate process group; for code that is trusted")
        else:
            holds[level] = _prove(level, settings, probe=probe)
    _choice(settings, holds)
    _gpu(settings, probe=probe)
    if store is not None:
        _home(store)
        _broker(store)
        _running(store)
    return 0 if any(holds.values()) else NO_LEVEL


def _home(store: StoreSettings) -> None:
    """Report a full or read-only disk at the home folder, which holds records, uploads and the embedded database."""
    if not store.home.is_dir():
        return  # made at the first start
    try:
        with tempfile.TemporaryFile(dir=store.home) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        print(f"Nothing can be written to {store.home} ({error.strerror}): no run is taken.")
        return
    free = shutil.disk_usage(store.home).free
    if free < LITTLE_BYTES:
        print(f"The disk of {store.home} has {free >> 20:,} MiB left.")


def _broker(store: StoreSettings) -> None:
    if (failure := broker_probe.find_failure(store)) is not None:
        print(f"No worker is woken: {failure.text}; runs wait until the broker can be used.")


def _running(store: StoreSettings) -> None:
    """Report what the running workers say they give. A look at this machine says only what a worker could give."""
    file = store.database_url.removeprefix("sqlite:///")
    if file != store.database_url and not Path(file).exists():
        print(f"No worker is running: there is no database at {file} yet.")
        return
    try:
        with contextlib.closing(Database(store.database_url)) as database, database.read() as transaction:
            nodes = workers.live(transaction)
    except Exception as error:  # noqa: BLE001 - whichever way a database is away, the operator wants one line
        why = refusal(error) or f"the database does not answer ({type(error).__name__})"
        print(f"Running workers cannot be looked at: {why}.")
        return
    if not nodes:
        print("No worker is running.")
    for node in nodes:
        print(f"The worker {node.id} (queue {', '.join(node.queues)}) {_describe_isolation(node)}.")


def _describe_isolation(node: workers.WorkerNode) -> str:
    why, missed = node.probe.get("why"), "; ".join(node.probe.get("missed", ()))
    if node.levels:
        best = max(node.levels, key=ISOLATION_LEVELS.index)
        return f"runs everything at {best}{f' now, and looks again for more: {missed}' if missed else ''}"
    return f"runs nothing now, and tries again: {why}" if why else "is starting"


def _prove(level: IsolationLevel, settings: WorkerSettings, *, probe: bool) -> bool:
    if not probe:
        _line(level, "lacks nothing; not proved")
        return True
    if sys.stdout.isatty():
        print(f"  {level:<10} being attacked ...", end="\r", flush=True)
    confined = confinement(level, settings.sandbox_uid)
    proof = _attack_sandbox(confined)
    if proof.holds:
        _line(level, f"isolates: every test attack was contained ({proof.seconds:.1f} s)")
        if level == "namespace":
            _cgroups(confined)
    else:
        _line(level, "does not hold")
        for breach in proof.breaches:
            print(f"             {breach}")
    return proof.holds


def _cgroups(confined: Confinement) -> None:
    if confined.cgroups:
        print(
            "             with a cgroup for each run: memory, tasks and CPU of all its processes; several are allowed"
        )
    else:
        print(f"             without cgroups: memory is limited per process, and a run has one: {confined.no_cgroups}")


def _attack_sandbox(confined: Confinement) -> Proof:
    with Supervisor(lambda: exec_zygote("", confined, further=False), confinement=confined) as supervisor:
        supervisor.wait_warm(BOOT_SECONDS)
        return prove(supervisor)


def _choice(settings: WorkerSettings, holds: Mapping[IsolationLevel, bool]) -> None:
    try:
        chosen = confinement(settings.isolation, settings.sandbox_uid, trust_code=settings.trust_code).level
    except CannotConfine as error:
        print(f"A worker would not start: {error}")
        return
    if holds.get(chosen, True):
        print(f"A worker with these settings (BACKPROBE_ISOLATION={settings.isolation}) runs everything at {chosen}.")
    else:
        print(f"A worker with these settings would run nothing: {chosen}, which it would choose, does not hold.")


def _gpu(settings: WorkerSettings, *, probe: bool) -> None:
    """Report what a worker of the gpu queue would find: start a process as for a run, and ask it."""
    try:
        supervisor = supervisor_for(replace(settings, executor=None), "gpu") if probe else None
    except CannotConfine as error:
        print(f"A worker of the gpu queue would not start: {error}")
        return
    if supervisor is None:
        return
    with supervisor:
        deadline = time.monotonic() + BOOT_SECONDS
        while not supervisor.wait_warm(0.1) and supervisor.failure is None and time.monotonic() < deadline:
            pass
        why = supervisor.failure or f"no process was ready within {BOOT_SECONDS:.0f} s"
        print(
            f"A worker of the gpu queue would have {', '.join(supervisor.devices)}."
            if supervisor.devices
            else f"A worker of the gpu queue would start but take no runs: {why}."
        )


def _line(level: str, words: str) -> None:
    print(f"  {level:<10} {words}")
