"""Is the service well? A fixed list of checks over `store.admin.figures`, each with what to do when it fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from store.admin.figures import Figure, figures
from store.database import migrator
from store.database.damage import is_damaged
from store.database.session import Database, is_unavailable, refusal

WAIT_SECONDS: Final = 600.0
"""A run that a worker could take has waited too long after this."""

DELIVERY_SECONDS: Final = 300.0
"""A delivery that is due is tried within seconds."""

FREE_SHARE: Final = 0.05
"""Of the disk under a SQLite database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One answer.

    Attributes:
        name: Kebab case, the same for ever. ok: nothing is to be done.
        said: A fact with its number; if not ok, what to do.
    """

    name: str
    ok: bool
    said: str


class _FigureValues:
    """The figures by name and label."""

    def __init__(self, found: Sequence[Figure]) -> None:
        self._values = {(figure.name, figure.label): figure.value for figure in found}

    def __call__(self, name: str, label: str = "") -> float:
        return self._values.get((name, label), 0.0)


def checks(database: Database) -> tuple[Check, ...]:
    """Every check, in a fixed order; if the database does not answer, that one alone."""
    try:
        known = _FigureValues(figures(database))
        at_head = migrator.at_head(database.url.render_as_string(hide_password=False))
    except Exception as error:
        if not is_unavailable(error):
            raise
        said = f"it does not answer ({type(error).__name__}); is it up, migrated, and BACKPROBE_DATABASE_URL right?"
        if is_damaged(error):
            said = refusal(error) or said
        return (Check(name="database", ok=False, said=said),)
    answers = [Check(name="database", ok=True, said="it answers")]
    answers.append(_schema(at_head=at_head))
    answers += [each(known) for each in _CHECKS]
    answers.append(_disk(database) if database.sqlite else _partitions(known))
    return tuple(answers)


def _schema(*, at_head: bool) -> Check:
    said = "it is this version's" if at_head else "it is not this version's: `backprobe migrate`"
    return Check(name="schema", ok=at_head, said=said)


def _reaper(known: _FigureValues) -> Check:
    overdue = int(known("leases_overdue"))
    said = "no lease has run out" if not overdue else f"{overdue} leases have run out: is a `backprobe reaper` alive?"
    return Check(name="reaper", ok=not overdue, said=said)


def _workers(known: _FigureValues) -> Check:
    alone = [queue for queue in ("cpu", "gpu") if known("queue_claimable", queue) and not known("workers", queue)]
    if alone:
        return Check(
            name="workers", ok=False, said=f"runs wait in {', '.join(alone)} and no worker serves it: start one"
        )
    count = int(known("workers", "cpu") + known("workers", "gpu"))
    return Check(name="workers", ok=True, said=f"{count} alive; every queue with runs is served")


def _queue(known: _FigureValues) -> Check:
    oldest = max(known("queue_oldest_seconds", queue) for queue in ("cpu", "gpu"))
    if oldest <= WAIT_SECONDS:
        return Check(name="queue", ok=True, said=f"the oldest run has waited {oldest:.0f} s")
    return Check(name="queue", ok=False, said=f"the oldest run has waited {oldest:.0f} s: start more workers")


def _sandbox(known: _FigureValues) -> Check:
    broke, ended = (
        int(known("sandbox_failures_hour")),
        sum(known("runs_hour", status) for status in ("succeeded", "failed")),
    )
    ok = broke <= max(3, ended / 100)
    said = f"{broke} attempts of the last hour ended with a broken sandbox"
    return Check(name="sandbox", ok=ok, said=said if ok else f"{said}: `backprobe doctor` on the workers")


def _deliveries(known: _FigureValues) -> Check:
    late = known("deliveries_oldest_seconds")
    ok = late <= DELIVERY_SECONDS
    said = f"the most overdue delivery was due {late:.0f} s ago"
    return Check(
        name="deliveries", ok=ok, said=said if ok else f"{said}: does a reaper run, and do the receivers answer?"
    )


def _retention(known: _FigureValues) -> Check:
    overdue = int(known("records_overdue"))
    said = f"{overdue} records are past their time"
    ok = overdue <= 1000
    return Check(name="retention", ok=ok, said=said if ok else f"{said}: the reaper cannot keep up; `backprobe expire`")


def _partitions(known: _FigureValues) -> Check:
    ahead = int(known("months_ahead"))
    said = f"records have a place for {ahead} months from this one on"
    ok = ahead > 1
    return Check(name="partitions", ok=ok, said=said if ok else f"{said}: is a `backprobe reaper` alive?")


def _disk(database: Database) -> Check:
    disk = shutil.disk_usage(Path(database.url.database or "").parent)
    share = disk.free / disk.total
    said = f"{share:.0%} of the database's disk is free"
    ok = share >= FREE_SHARE
    more = "make room, or lower BACKPROBE_MAX_DATABASE_BYTES"
    return Check(name="disk", ok=ok, said=said if ok else f"{said}: {more}")


_CHECKS: Final[tuple[Callable[[_FigureValues], Check], ...]] = (
    _reaper,
    _workers,
    _queue,
    _sandbox,
    _deliveries,
    _retention,
)
