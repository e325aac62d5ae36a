"""The calls that led to each moment, chains in the record's head and a number; and what a step left unchanged.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: it does not know the columns,
and its records have NULL there.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

COLUMNS = (
    (
        "record",
        "stacks",
        JSONB(),
        "\tstacks JSON, \n",
        "Chains of calls in the user's files; NULL: stored by a version before it.",
    ),
    (
        "moment",
        "stack",
        sa.Integer(),
        "\tstack INTEGER, \n",
        "n of record.stacks: the calls that led to its function; NULL: none of the user's, or not recorded.",
    ),
    (
        "optimizer_event",
        "unchanged",
        JSONB(),
        "\tunchanged JSON, \n",
        "Of a step: tensors with a gradient whose values it left as they were; NULL: another kind, or not compared.",
    ),
)
"""Table, column, type, line of the model's CREATE statement in SQLite, comment."""


def upgrade() -> None:
    """Add the columns behind the others, in SQLite's text too: its ALTER TABLE writes them in the line of another."""
    for table, column, kind, line, comment in COLUMNS:
        if op.get_bind().dialect.name == "sqlite":
            _insert(table, line)
        else:
            op.add_column(table, sa.Column(column, kind, comment=comment))


def downgrade() -> None:
    """Drop them."""
    for table, column, *_ in reversed(COLUMNS):
        op.drop_column(table, column)


def _insert(table: str, line: str) -> None:
    """Put a line behind the last column of a CREATE statement; rows stay as they are, a shorter one has NULL."""
    bind = op.get_bind()
    named = {"name": table}
    which = "FROM sqlite_master WHERE type = 'table' AND name = :name"
    sql = bind.execute(sa.text(f"SELECT sql {which}"), named).scalar_one()
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    update = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = :name")
    bind.execute(update, named | {"sql": sql.replace("\tCONSTRAINT ", f"{line}\tCONSTRAINT ", 1)})
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
