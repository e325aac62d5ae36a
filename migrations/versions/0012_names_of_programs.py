"""Whether a program came with the name of a file: what came without one is told as unnamed, and groups by itself.

Frozen. It imports nothing of ours. Code of the release before works with this schema: what it stores counts as named,
and so does what was stored before, whose findings stay in the groups that they are in.
The comment of `step.anomaly` names all of its values.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

ENTRY = "Path of the file that is run, or the module that `python -m` would run."
ENTRY_BEFORE = "Path of the file that is run."
DIGEST = "Over entry, paths and contents, and whether it is named; the same program is stored once per tenant."
DIGEST_BEFORE = "Over entry, paths and contents; the same program is stored once per tenant."
ANOMALY = "non-finite, exception, gradient-stopped, warning or none-read; NULL: nothing was seen."
ANOMALY_BEFORE = "non-finite, exception or gradient-stopped; NULL: nothing was seen."
ADDED = "\tnamed BOOLEAN DEFAULT 1 NOT NULL, \n"
"""As the model's CREATE statement has it; a row that is shorter has the default."""

COMMENT = "Whoever sent it named its file; else it came as `source` alone, and its path is ours."


def upgrade() -> None:
    """Add the column behind the others, in SQLite's text too: its ALTER TABLE writes it in the line of another."""
    if op.get_bind().dialect.name == "sqlite":
        _rewrite("\tCONSTRAINT ", f"{ADDED}\tCONSTRAINT ")
    else:
        named = sa.Column("named", sa.Boolean(), nullable=False, server_default=sa.true(), comment=COMMENT)
        op.add_column("snippet", named)
    _told(ENTRY, DIGEST, ANOMALY)


def downgrade() -> None:
    """Drop it; programs without a name are told under the path that they were given."""
    op.drop_column("snippet", "named")
    _told(ENTRY_BEFORE, DIGEST_BEFORE, ANOMALY_BEFORE)


def _rewrite(old: str, new: str) -> None:
    """Change the first such place of the CREATE statement, as 0006 does: rows stay as they are."""
    bind = op.get_bind()
    which = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'snippet'"
    sql = bind.exec_driver_sql(which).scalar_one()
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    update = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = 'snippet'")
    bind.execute(update, {"sql": sql.replace(old, new, 1)})
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")


def _told(entry: str, digest: str, anomaly: str) -> None:
    if op.get_bind().dialect.name == "postgresql":  # SQLite keeps no comments
        op.alter_column("snippet", "entry", comment=entry)
        op.alter_column("snippet", "sha256", comment=digest)
        op.alter_column("step", "anomaly", comment=anomaly)
