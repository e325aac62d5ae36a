"""Runs of a group by day, counted by triggers, and an index that counts runs by day.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: the triggers count what it
writes. Days before the migration are counted from the findings that are stored.
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

TABLE = "finding_group_day"
TABLE_COMMENT = "How many runs showed a group on each day: what finding_group.runs grew by, counted by triggers."
RUN_COLUMNS = ["project_id", "status", "created_at", "errors", "warnings", "notes"]
ADD = "ON CONFLICT (group_id, day) DO UPDATE SET runs = finding_group_day.runs + excluded.runs"
SQLITE_DAY = "substr({time}, 1, 10)"
POSTGRESQL_DAY = "to_char({time} AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
SQLITE_ADD = """BEGIN INSERT INTO finding_group_day (group_id, project_id, rule, day, runs)
VALUES (new.id, new.project_id, new.rule, substr(new.last_seen_at, 1, 10), {runs})
{add}; END"""
SQLITE = (
    "CREATE TRIGGER finding_group_made AFTER INSERT ON finding_group\n" + SQLITE_ADD.format(runs="new.runs", add=ADD),
    "CREATE TRIGGER finding_group_shown AFTER UPDATE OF runs ON finding_group WHEN new.runs > old.runs\n"
    + SQLITE_ADD.format(runs="new.runs - old.runs", add=ADD),
)
POSTGRESQL = (
    f"""CREATE FUNCTION count_group_day() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
  added integer := new.runs;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    added := new.runs - old.runs;
  END IF;
  IF added > 0 THEN
    INSERT INTO finding_group_day (group_id, project_id, rule, day, runs)
    VALUES (new.id, new.project_id, new.rule, to_char(new.last_seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), added)
    {ADD};
  END IF;
  RETURN NULL;
END $body$""",  # noqa: S608 - built from constants only
    """CREATE TRIGGER finding_group_shown AFTER INSERT OR UPDATE OF runs ON finding_group
FOR EACH ROW EXECUTE FUNCTION count_group_day()""",
)
BACKFILL = """INSERT INTO finding_group_day (group_id, project_id, rule, day, runs)
SELECT g.id, g.project_id, g.rule, {day}, count(DISTINCT f.run_id)
FROM finding f
JOIN run r ON r.id = f.run_id AND r.origin <> 'trial'
LEFT JOIN finding_group_alias a ON a.project_id = f.project_id AND a.fingerprint = f.fingerprint
JOIN finding_group g ON g.project_id = f.project_id AND g.fingerprint = coalesce(a.known_as, f.fingerprint)
GROUP BY g.id, g.project_id, g.rule, {day}"""


def upgrade() -> None:
    """Make the table, count what is stored, then let the triggers count; the writers wait meanwhile."""
    op.create_table(
        TABLE,
        sa.Column("group_id", sa.BigInteger(), nullable=False, comment="Which group."),
        sa.Column("project_id", sa.BigInteger(), nullable=False, comment="Of the group."),
        sa.Column("rule", sa.Text(), nullable=False, comment="Of the group: name of the rule, kebab case."),
        sa.Column("day", sa.Text(), nullable=False, comment="The day in UTC, 2026-11-20."),
        sa.Column("runs", sa.Integer(), nullable=False, comment="Runs that showed the group on that day."),
        sa.PrimaryKeyConstraint("group_id", "day", name="pk_finding_group_day"),
        sa.ForeignKeyConstraint(["group_id"], ["finding_group.id"], name="fk_finding_group_day_group_id"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_finding_group_day_project_id"),
        comment=TABLE_COMMENT,
    )
    op.create_index("finding_group_day_of_project", TABLE, ["project_id", "day", "rule", "runs"])
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    if not is_sqlite:
        op.execute("LOCK TABLE finding_group IN SHARE ROW EXCLUSIVE MODE")
    op.execute(BACKFILL.format(day=(SQLITE_DAY if is_sqlite else POSTGRESQL_DAY).format(time="f.created_at")))
    for statement in SQLITE if is_sqlite else POSTGRESQL:
        op.execute(statement)
    where = sa.text("origin <> 'trial'")
    op.create_index("run_of_day", "run", RUN_COLUMNS, postgresql_where=where, sqlite_where=where)


def downgrade() -> None:
    """Drop them."""
    op.drop_index("run_of_day", "run")
    if op.get_bind().dialect.name == "sqlite":
        for name in ("finding_group_made", "finding_group_shown"):
            op.execute(f"DROP TRIGGER {name}")
    else:
        op.execute("DROP TRIGGER finding_group_shown ON finding_group")
        op.execute("DROP FUNCTION count_group_day()")
    op.drop_table(TABLE)
