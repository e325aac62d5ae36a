"""Ids of runs that clients make: the time in them must be near the server's, for it says where the record lies."""

from __future__ import annotations

import datetime
from typing import Final

import sqlalchemy as sa

from store.database.ids import milliseconds
from store.database.session import Transaction
from store.recorders.recorder_requests import Recording, TimeRefused
from store.tables import project, tenant

AHEAD_SECONDS: Final = 24 * 3600.0
"""How far the time of an id may lie ahead: clocks of training machines are wrong."""

MOST_BACK_DAYS: Final = 366
"""How far the time of an id may lie back, however long records are kept."""

_FIRST_YEAR: Final = 2020
_SECONDS: Final = {
    "postgresql": sa.text("select extract(epoch from clock_timestamp())"),
    "sqlite": sa.text("select (julianday('now') - 2440587.5) * 86400.0"),
}
_KEEP_DAYS: Final = (
    sa.select(sa.func.coalesce(project.c.keep_days, tenant.c.keep_days))
    .join_from(project, tenant, tenant.c.id == project.c.tenant_id)
    .where(project.c.id == sa.bindparam("its_project"))
)


def check_time(transaction: Transaction, asked: Recording) -> None:
    """From a day ahead back to the first of the oldest month whose records the project still keeps.

    Raises:
        TimeRefused: with the server's time.
    """
    now = float(transaction.execute(_SECONDS[transaction.dialect.name]).scalar_one())
    days = transaction.execute(_KEEP_DAYS, {"its_project": asked.project_id}).scalar_one()
    at = milliseconds(asked.public_id) / 1000
    latest, earliest = now + AHEAD_SECONDS, _month_begins(now - min(days, MOST_BACK_DAYS) * 86400.0)
    if not earliest <= at <= latest:
        told = tuple(_iso(moment) for moment in (at, now, earliest, latest))
        said = "the time in the id is {}; the server's is {}, and ids from {} to {} are taken".format(*told)
        raise TimeRefused(said)


def _iso(seconds: float) -> str:
    try:
        at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    except (OverflowError, ValueError):  # 48 bits of milliseconds reach the year 10889
        return f"{seconds:.0f} s after 1970"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _month_begins(seconds: float) -> float:
    """Return the beginning of the month (UTC) of a time: records lie by month."""
    at = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    begins = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return max(begins, datetime.datetime(_FIRST_YEAR, 1, 1, tzinfo=datetime.UTC)).timestamp()
