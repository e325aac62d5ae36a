"""The column `rules` of a run: which rules judge it, and how, as its request said.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: what is new may be NULL.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
COMMENT = "Which rules judge it, and how, as the request said; NULL: all, as they stand."
ADDED = "\trules JSON, \n"
"""As the model's CREATE statement has it."""


def upgrade() -> None:
    """Add the column behind the others, in SQLite's text too: its ALTER TABLE writes it behind the constraints."""
    if op.get_bind().dialect.name == "sqlite":
        _rewrite(added=True)
    else:
        op.add_column("run", sa.Column("rules", JSON, comment=COMMENT))


def downgrade() -> None:
    """Drop it; what a request said about rules is lost, and its run is judged by all of them."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(sa.text("UPDATE run SET rules = NULL"))
        _rewrite(added=False)
    else:
        op.drop_column("run", "rules")


def _rewrite(*, added: bool) -> None:
    """Change the CREATE statement in place.

    A last column that is NULL in every row takes no place in the rows, so they stay as they are; the table is not made
    anew, for triggers, views and foreign keys hang on it.
    """
    bind = op.get_bind()
    sql = bind.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'run'").scalar_one()
    at = sql.index("\tCONSTRAINT ")
    changed = sql[:at] + ADDED + sql[at:] if added else sql.replace(ADDED, "")
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    bind.execute(sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = 'run'"), {"sql": changed})
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
