"""Make everything: the tables, indices, triggers and views of the first release, its default tenant and project.

Frozen. It imports nothing of ours. The SQL of each database stands in its file beside this one. Revisions 0001 to 0015
came before the first release; this one replaced them and makes the same schema.
"""

import re
from pathlib import Path

from alembic import op

revision = "0016"
down_revision = None
branch_labels = None
depends_on = None

DEFAULT_TENANT = (
    "INSERT INTO tenant (public_id, name, max_queued, max_running, weight, max_record_bytes, keep_days, created_at)"
    " VALUES ('tnt_default', 'default', 10000, 1000, 1, 107374182400, 30, {now})"
)
DEFAULT_PROJECT = (
    "INSERT INTO project (public_id, tenant_id, name, settings, created_at)"
    " SELECT 'prj_default', id, 'default', '{{}}', {now} FROM tenant"
)
CREATED = re.compile(r'CREATE (TABLE|VIEW|FUNCTION) "?(\w+)')
NOW = {"sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')", "postgresql": "clock_timestamp()"}


def upgrade() -> None:
    """Run each statement of the database's file, and add the default tenant and project."""
    database = op.get_bind().dialect.name
    for statement in _statements(database):
        _execute(statement)
        if (made := CREATED.match(statement)) and "PARTITION BY LIST (part)" in statement:
            _make_partitions(made[2])
    for insert in (DEFAULT_TENANT, DEFAULT_PROJECT):
        _execute(insert.format(now=NOW[database]))


def downgrade() -> None:
    """Drop all tables, views and functions with everything in them."""
    statements = reversed(_statements(op.get_bind().dialect.name))
    made = [found.groups() for found in map(CREATED.match, statements) if found]
    for kind, name in sorted(made, key=lambda created: created[0] == "FUNCTION"):  # triggers go with their tables
        _execute(f'DROP {kind} "{name}"')


def _make_partitions(table: str) -> None:
    """Make the partitions of this month and the next two; the reaper makes the others when their time comes."""
    months = "SELECT (extract(year FROM n) - 2020) * 12 + extract(month FROM n) - 1"
    now = f"{months} FROM (SELECT now() AT TIME ZONE 'utc' AS n) s"
    this = int(op.get_bind().exec_driver_sql(now).scalar_one())
    for month in range(this, this + 3):
        name = f"{table}_{2020 + month // 12}_{month % 12 + 1:02}"
        _execute(f'CREATE TABLE "{name}" PARTITION OF "{table}" FOR VALUES IN ({month})')


def _statements(database: str) -> list[str]:
    """Statements end with a semicolon before an empty line; those inside a trigger's body do not."""
    text = Path(__file__).with_name(f"0016_{database}.sql").read_text(encoding="utf-8")
    return text.removesuffix(";\n").split(";\n\n")


def _execute(statement: str) -> None:
    op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
