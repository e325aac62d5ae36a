"""Runs that try a finding's fix: which fix of which finding, and the verdict; `trial` is an origin of runs.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: what is new may be NULL, and it
shows trials as runs of an origin that it does not know.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMNS = {
    "trial_of": ("TEXT", sa.Text(), "finding.public_id of the finding whose fix it tries; NULL: it is no trial."),
    "trial_fix": (
        "SMALLINT",
        sa.SmallInteger(),
        "Which of that finding's fixes, from 0; NULL: it is no trial.",
    ),
    "trial_verdict": (
        "TEXT",
        sa.Text(),
        "Of confirmed, changes-values, insufficient, breaks, not-tried; NULL: no trial, or not ended, or not judged.",
    ),
    "trial_why": ("TEXT", sa.Text(), "What stands against the fix, or why no run tells; NULL as trial_verdict."),
}
ADDED = "".join(f"\t{name} {kind}, \n" for name, (kind, _type, _comment) in COLUMNS.items())
"""As the model's CREATE statement has them; a row that is shorter has NULL."""

BEFORE = "('submitted', 'watched', 'uploaded')"
AFTER = "('submitted', 'watched', 'uploaded', 'trial')"
ORIGIN = (
    "submitted: a snippet we ran. watched: a recorder sent it. uploaded: a finished record. trial: a snippet with "
    "a finding's fix in it."
)
ORIGIN_BEFORE = "submitted: a snippet we ran. watched: a recorder sent it. uploaded: a finished record."


def upgrade() -> None:
    """Add the columns behind the others, in SQLite's text too, as 0006 does; its rows stay as they are."""
    if op.get_bind().dialect.name == "sqlite":
        _rewrite(("\tCONSTRAINT ", f"{ADDED}\tCONSTRAINT "), (BEFORE, AFTER))
    else:
        for name, (_kind, type_, comment) in COLUMNS.items():
            op.add_column("run", sa.Column(name, type_, comment=comment))
        op.drop_constraint(op.f("ck_run_origin"), "run", type_="check")
        op.create_check_constraint(op.f("ck_run_origin"), "run", f"origin in {AFTER}")
        op.alter_column("run", "origin", comment=ORIGIN)
    op.create_index(
        "run_of_trial",
        "run",
        ["trial_of"],
        postgresql_where=sa.text("trial_of is not null"),
        sqlite_where=sa.text("trial_of is not null"),
    )


def downgrade() -> None:
    """Drop them; trials are runs that somebody submitted."""
    op.drop_index("run_of_trial", table_name="run")
    op.execute(sa.text("UPDATE run SET origin = 'submitted' WHERE origin = 'trial'"))
    if op.get_bind().dialect.name == "sqlite":
        op.execute(sa.text("UPDATE run SET trial_of = NULL, trial_fix = NULL, trial_verdict = NULL, trial_why = NULL"))
        _rewrite((ADDED, ""), (AFTER, BEFORE))
    else:
        op.drop_constraint(op.f("ck_run_origin"), "run", type_="check")
        op.create_check_constraint(op.f("ck_run_origin"), "run", f"origin in {BEFORE}")
        op.alter_column("run", "origin", comment=ORIGIN_BEFORE)
        for name in reversed(COLUMNS):
            op.drop_column("run", name)


def _rewrite(*changes: tuple[str, str]) -> None:
    """Change the CREATE statement in place: triggers, views and foreign keys hang on the table."""
    bind = op.get_bind()
    sql = bind.exec_driver_sql("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'run'").scalar_one()
    for old, new in changes:
        sql = sql.replace(old, new, 1)
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    bind.execute(sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = 'run'"), {"sql": sql})
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
