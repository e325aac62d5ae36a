"""The repository of a project, where issues about it are filed.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: it does not know the column,
and its projects have NULL there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

COMMENT = "Where issues about it are filed: https://github.com/OWNER/NAME; NULL: not known."
LINE = "\trepository TEXT, \n"
"""Of the model's CREATE statement in SQLite."""


def upgrade() -> None:
    """Add the column behind the others, in SQLite's text too: its ALTER TABLE writes it in the line of another."""
    if op.get_bind().dialect.name == "sqlite":
        _insert("project", LINE)
    else:
        op.add_column("project", sa.Column("repository", sa.Text(), comment=COMMENT))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("project", "repository")


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
