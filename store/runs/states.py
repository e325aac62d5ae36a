"""The life of a run: the one table of its statuses, and the triggers by which the database itself keeps it.

    -       -> queued       submitted                                                    attempt 0
    -       -> running      watched by a recorder                                        attempt 1
    queued  -> running      claimed by a worker                                          attempt + 1
    queued  -> canceled     asked for before any claim
    queued  -> lost         its queue deadline passed and no worker had come
    running -> succeeded | failed | exceeded | canceled     finished by its worker (canceled: by the reaper too)
    running -> queued       lease expired and attempts left, or given back by its worker
    running -> lost         ours to blame, attempts used up

1. `failed`, `exceeded` and `canceled` are never tried again: the program was judged. Only our failures are.
2. A status of the last line of the table never changes: a re-run is a new run.
3. Only `store/runs/transitions.py` writes `run.status`, and only along `NEXT`; the trigger refuses everybody else.
"""

from __future__ import annotations

from typing import Final

NEXT: Final[dict[str, tuple[str, ...]]] = {
    "queued": ("running", "canceled", "lost"),
    "running": ("succeeded", "failed", "exceeded", "canceled", "queued", "lost"),
    "succeeded": (),
    "failed": (),
    "exceeded": (),
    "canceled": (),
    "lost": (),
}
"""From each status, where it may go."""

STATUSES: Final = tuple(NEXT)
WAITING: Final = ("queued", "running")
"""The statuses that are not the end."""

_ARROWS: Final = ", ".join(f"'{a}>{b}'" for a, nexts in NEXT.items() for b in nexts)

SQLITE_TRIGGERS: Final = (
    f"""CREATE TRIGGER run_status_moves BEFORE UPDATE OF status ON run
WHEN old.status <> new.status AND old.status || '>' || new.status NOT IN ({_ARROWS})
BEGIN SELECT RAISE(ABORT, 'run.status: no such move'); END""",
    """CREATE TRIGGER run_attempt_rises BEFORE UPDATE OF attempt ON run
WHEN new.attempt < old.attempt
BEGIN SELECT RAISE(ABORT, 'run.attempt never falls'); END""",
)
"""DDL for SQLite, in order."""

POSTGRESQL_TRIGGERS: Final = (
    f"""CREATE FUNCTION run_keeps_its_life() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF old.status <> new.status AND old.status || '>' || new.status NOT IN ({_ARROWS}) THEN
    RAISE EXCEPTION 'run.status: no such move, % to %', old.status, new.status USING ERRCODE = 'check_violation';
  END IF;
  IF new.attempt < old.attempt THEN
    RAISE EXCEPTION 'run.attempt never falls' USING ERRCODE = 'check_violation';
  END IF;
  RETURN new;
END $body$""",
    """CREATE TRIGGER run_keeps_its_life BEFORE UPDATE OF status, attempt ON run
FOR EACH ROW WHEN (old.status <> new.status OR new.attempt < old.attempt)
EXECUTE FUNCTION run_keeps_its_life()""",
)
"""DDL for PostgreSQL, in order."""
