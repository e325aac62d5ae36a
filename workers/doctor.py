"""`backprobe doctor`: what isolation this machine can give, why not more, and what would change it.

A level that lacks nothing is then attacked: a sandbox is booted at it, and small attacks of every family are made.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from workers.sandbox.boot import exec_zygote
from workers.sandbox.levels import Confinement, Level
from workers.sandbox.offer import CannotConfine, confinement, table
from workers.sandbox.probe import Proof, prove
from workers.sandbox.start import supervisor_for
from workers.sandbox.supervisor import Supervisor
from workers.settings import WorkerSettings

BOOT_SECONDS = 60.0
NOTHING_HOLDS = 3


def examine(settings: WorkerSettings, *, probe: bool) -> int:
    """Print what holds; the exit code is 0 if some level beyond `none` does."""
    holds = False
    for level, lacks in table(settings.sandbox_uid):
        if level == "none":
            _line(level, "always: limits and a process group of its own; for code that is trusted")
        elif lacks:
            _line(level, "not here")
            for one in lacks:
                print(f"             {one}")
        else:
            holds |= _prove(level, settings, probe=probe)
    _choice(settings)
    _gpu(settings, probe=probe)
    return 0 if holds else NOTHING_HOLDS


def _prove(level: Level, settings: WorkerSettings, *, probe: bool) -> bool:
    if not probe:
        _line(level, "lacks nothing; not proved")
        return True
    if sys.stdout.isatty():
        print(f"  {level:<10} being attacked ...", end="\r", flush=True)
    confined = confinement(level, settings.sandbox_uid)
    proof = _attacked(confined)
    if proof.holds:
        _line(level, f"holds: every canary was contained ({proof.seconds:.1f} s)")
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


def _attacked(confined: Confinement) -> Proof:
    with Supervisor(lambda: exec_zygote("", confined), confinement=confined) as supervisor:
        supervisor.wait_warm(BOOT_SECONDS)
        return prove(supervisor)


def _choice(settings: WorkerSettings) -> None:
    try:
        chosen = confinement(settings.isolation, settings.sandbox_uid, trust_code=settings.trust_code).level
    except CannotConfine as error:
        print(f"A worker would not start: {error}")
    else:
        print(f"A worker with these settings (BACKPROBE_ISOLATION={settings.isolation}) runs everything at {chosen}.")


def _gpu(settings: WorkerSettings, *, probe: bool) -> None:
    """What a worker of the gpu queue would find: a process is made ready as for a run, and asked."""
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
            else f"A worker of the gpu queue would wait, taking no run: {why}."
        )


def _line(level: str, words: str) -> None:
    print(f"  {level:<10} {words}")
