"""How often judging a stored record began and did not end: a record that ends its judge is left alone after a few.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: its runs have 0, and it judges
records without counting.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

COMMENT = (
    "Judgings of its stored record that began and did not end: the process ended first. From 3 on it is not judged any "
    "more. 0: the last one ended, or none began."
)
ADDED = "\tjudge_attempts SMALLINT DEFAULT '0' NOT NULL, \n"
"""As the model's CREATE statement has it; a row that is shorter has the default."""


def upgrade() -> None:
    """Add the column behind the others, in SQLite's text too, as 0006 does; its rows stay as they are."""
    if op.get_bind().dialect.name == "sqlite":
        _rewrite("\tCONSTRAINT ", f"{ADDED}\tCONSTRAINT ")
    else:
        column = sa.Column("judge_attempts", sa.SmallInteger(), nullable=False, server_default="0", comment=COMMENT)
        op.add_column("run", column)
    op.create_index(
        "run_judge_attempts",
        "run",
        ["judge_attempts"],
        postgresql_where=sa.text("judge_attempts > 0"),
        sqlite_where=sa.text("judge_attempts > 0"),
    )


def downgrade() -> None:
    """Drop it; every record is judged again when its turn comes."""
    op.drop_index("run_judge_attempts", table_name="run")
    if op.get_bind().dialect.name == "sqlite":
        op.execute(sa.text("UPDATE run SET judge_attempts = 0 WHERE judge_attempts <> 0"))
        _rewrite(ADDED, "")
    else:
        op.drop_column("run", "judge_attempts")


def _rewrite(old: str, new: str) -> None:
    """Change the CREATE statement in place: triggers, views and foreign keys hang on the table."""
    bind = op.get_bind()
    sql = bind.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'run'").scalar_one()
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    update = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = 'run'")
    bind.execute(update, {"sql": sql.replace(old, new, 1)})
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
