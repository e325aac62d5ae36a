"""Groups of findings: the end of a mute, and further fingerprints of a group whose file was renamed.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: it does not know the columns
and the table. Its groups have NULL there, and the fingerprint of a renamed file begins a group of its own.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TABLE = "finding_group"
COLUMNS = (
    (
        "muted_until",
        TIMESTAMP(timezone=True, precision=3),
        "\tmuted_until VARCHAR, \n",
        "A suppressed group is open again from then on; NULL: no end, or not suppressed.",
    ),
    (
        "fingerprint_without_path",
        sa.Text(),
        "\tfingerprint_without_path TEXT, \n",
        (
            "The fingerprint of the finding seen last with an empty path: by it a group is found again when its file "
            "was renamed; NULL: of a program without a name, or last seen by a version before it."
        ),
    ),
)
"""Column, type, line of the model's CREATE statement in SQLite, comment."""

ALIAS = "Further fingerprints of a group: store/findings/moved_groups.py says when one is added."


def upgrade() -> None:
    """Add the columns behind the others, in SQLite's text too: its ALTER TABLE writes them in the line of another."""
    for column, kind, line, comment in COLUMNS:
        if op.get_bind().dialect.name == "sqlite":
            _insert(TABLE, line)
        else:
            op.add_column(TABLE, sa.Column(column, kind, comment=comment))
    op.create_index("finding_group_of_tenant", TABLE, ["tenant_id", sa.text("last_seen_at DESC"), "id"])
    op.create_index("finding_group_moved", TABLE, ["project_id", "fingerprint_without_path"])
    op.create_table(
        "finding_group_alias",
        sa.Column("project_id", sa.BigInteger(), nullable=False, comment="Where it belongs."),
        sa.Column(
            "fingerprint", sa.Text(), nullable=False, comment="finding.fingerprint of findings whose file was renamed."
        ),
        sa.Column(
            "known_as",
            sa.Text(),
            nullable=False,
            comment="finding_group.fingerprint of the group that they belong to.",
        ),
        sa.PrimaryKeyConstraint("project_id", "fingerprint", name="pk_finding_group_alias"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_finding_group_alias_project_id"),
        comment=ALIAS,
    )
    op.create_index("finding_group_alias_known_as", "finding_group_alias", ["project_id", "known_as"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("finding_group_alias")
    op.drop_index("finding_group_moved", TABLE)
    op.drop_index("finding_group_of_tenant", TABLE)
    for column, *_ in reversed(COLUMNS):
        op.drop_column(TABLE, column)


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
