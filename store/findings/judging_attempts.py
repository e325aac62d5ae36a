"""Attempts at judging a stored record, counted before each one: a record that ends its judge is not judged for ever.

    begin_attempt -> attempts + 1, committed -> the record is judged -> end_attempt, or the judgement, -> 0
                                             -> the process ends: the count stays

1. The count is committed before judging begins. Only a process that ends meanwhile leaves it above 0.
2. From `MOST_ATTEMPTS` on a run is in quarantine: nothing judges it, also not on request, until the operator runs
   `backprobe rejudge --quarantined`.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.database.session import Database, Transaction
from store.tables import run

MOST_ATTEMPTS: Final = 3
"""A restart of the service may end one judging of an honest record, or two."""

NOT_QUARANTINED: Final = run.c.judge_attempts < sa.literal_column(str(MOST_ATTEMPTS))
_COUNTED: Final = run.c.judge_attempts > sa.literal_column("0")
"""As the index `run_judge_attempts` has it."""

_IS_LAST: Final = run.c.judge_attempts == sa.literal_column(str(MOST_ATTEMPTS - 1))
"""The next attempt is the last: readers see a change, whatever its result."""

_BEGIN: Final = (
    sa.update(run)
    .where(run.c.id == sa.bindparam("number"), NOT_QUARANTINED)
    .values(judge_attempts=run.c.judge_attempts + 1, version=run.c.version + sa.case((_IS_LAST, 1), else_=0))
)
_END: Final = sa.update(run).where(run.c.id == sa.bindparam("number"), _COUNTED).values(judge_attempts=0)
_QUARANTINED: Final = (_COUNTED, sa.not_(NOT_QUARANTINED))
_UNFINISHED: Final = (
    sa.select(sa.func.count().label("begun"), sa.func.count().filter(sa.not_(NOT_QUARANTINED)).label("quarantined"))
    .select_from(run)
    .where(_COUNTED)
)


def begin_attempt(database: Database, number: int) -> bool:
    """Count an attempt at judging run `number`; False: it is in quarantine and must not be judged."""
    with database.begin() as transaction:
        return transaction.execute(_BEGIN, {"number": number}).rowcount == 1


def end_attempt(database: Database, number: int) -> None:
    """Judging run `number` ended, with a judgement or an error, and this process goes on."""
    with database.begin() as transaction:
        transaction.execute(_END, {"number": number})


def count_unfinished(reading: Transaction) -> tuple[int, int]:
    """Count the runs whose judging began and has not ended, those in quarantine included; and those in quarantine."""
    row = reading.execute(_UNFINISHED).one()
    return row.begun, row.quarantined


def release_all(transaction: Transaction) -> int:
    """Take all runs out of quarantine, and return how many there were; each is judged when its turn comes."""
    freed = sa.update(run).where(*_QUARANTINED).values(judge_attempts=0, version=run.c.version + 1)
    return transaction.execute(freed).rowcount
