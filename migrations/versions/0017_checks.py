"""The state of each invariant, in the record's head.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: it does not know the column,
and its records have NULL there.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COMMENT = (
    "The state of each invariant: name, code, state, checked, total, unit, why, findings;"
    " NULL: not judged, or judged by a version before it."
)
ADDED = "\tchecks JSON, \n"
"""As the model's CREATE statement has it; a row that is shorter has NULL."""


def upgrade() -> None:
    """Add the column behind the others, in SQLite's text too: its ALTER TABLE writes it in the line of another."""
    if op.get_bind().dialect.name == "sqlite":
        _rewrite("\tCONSTRAINT ", f"{ADDED}\tCONSTRAINT ")
    else:
        op.add_column("record", sa.Column("checks", JSONB(), comment=COMMENT))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("record", "checks")


def _rewrite(old: str, new: str) -> None:
    """Change the first such place of the CREATE statement; rows stay as they are."""
    bind = op.get_bind()
    which = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'record'"
    sql = bind.exec_driver_sql(which).scalar_one()
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    update = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = 'record'")
    bind.execute(update, {"sql": sql.replace(old, new, 1)})
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
