"""Half a million findings, made by the database itself: for questions over all runs of a tenant."""

import sqlalchemy as sa

from store.database.session import Database
from store.runs import lifecycle as runs


def add_findings(database: Database, run: runs.RunRow, number: int) -> None:
    """Findings of many rules over sixty days."""
    text = sa.text(_FINDINGS["sqlite" if database.sqlite else "postgresql"])
    with database.begin() as transaction:
        for start in range(0, number, 50_000):
            few = min(50_000, number - start)
            transaction.execute(text, {"run": run.run_id, "runs": 500, "start": start, "few": few})


_COLUMNS = (
    "public_id, run_id, attempt, tenant_id, project_id, n, fingerprint, rule, code, ruleset, level, confidence,"
    " message, path, line, location, related, stacks, evidence, fixes, consequences, count, created_at"
)
_ALIKE = "1, 1, 1, n, 'p' || (n % 5000), 'rule-' || (n % 40), 'BP101', 'x', 'error', 'proven', 'seen', 'main.py', 1,"
_EMPTY = "'{}', '[]', '[]', '{}', '[]', '[]', 1,"
_INSERT = f"insert into finding ({_COLUMNS}) select 'f_' || n, :run + n % :runs, {_ALIKE} {_EMPTY}"
_FINDINGS = {
    "sqlite": f"""with recursive i(n) as (select :start union all select n + 1 from i where n + 1 < :start + :few)
{_INSERT} strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || (n % 86400) || ' minutes') from i""",
    "postgresql": f"""{_INSERT} now() - (n % 86400) * interval '1 minute'
from generate_series(cast(:start as int), :start + :few - 1) n""",
}
