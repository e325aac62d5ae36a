"""What comes in pieces: watched runs have a recorder, items of an audit may have no name.

Frames keep their bytes until their run ends. And `max_gpu_seconds` of a tenant, and who still uses what will go.
Frozen. It imports nothing of ours. Code of the release before can write to this schema: what is new may be NULL, and
nothing has written to `frame` so far.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TIME = sa.String().with_variant(TIMESTAMP(timezone=True, precision=3), "postgresql")
GPU = "Seconds of the queue gpu that runs accepted in one month (UTC) may use; NULL: as many as they like."
ITEM = {
    False: "The caller's own name for it; unique in the audit.",
    True: "The caller's own name for it, unique in the audit; NULL: its line gives none, or one that is taken.",
}
FRAME = {
    False: "A frame that a recorder sent; its rows lie in the record's tables.",
    True: "A frame that a recorder sent.",
}


def upgrade() -> None:
    """Add them; `frame`, which is empty, is made anew."""
    _frame(new=True)
    _recorder()
    _deprecated_use()
    if op.get_bind().dialect.name == "sqlite":
        _rewrite("audit_item", "\tcustom_id TEXT NOT NULL, \n", "\tcustom_id TEXT, \n")
        _rewrite("tenant", "\tCONSTRAINT ", "\tmax_gpu_seconds BIGINT, \n\tCONSTRAINT ")
    else:
        op.alter_column("audit_item", "custom_id", nullable=True, comment=ITEM[True])
        op.add_column("tenant", sa.Column("max_gpu_seconds", sa.BigInteger(), comment=GPU))


def downgrade() -> None:
    """Drop them; items without a name get one, recorders that are at work lose what they sent."""
    op.drop_table("recorder")
    op.execute(sa.text("UPDATE audit_item SET custom_id = '(item ' || n || ')' WHERE custom_id IS NULL"))
    if op.get_bind().dialect.name == "sqlite":
        op.execute(sa.text("UPDATE tenant SET max_gpu_seconds = NULL"))
        _rewrite("tenant", "\tmax_gpu_seconds BIGINT, \n", "")
        _rewrite("audit_item", "\tcustom_id TEXT, \n", "\tcustom_id TEXT NOT NULL, \n")
    else:
        op.drop_column("tenant", "max_gpu_seconds")
        op.alter_column("audit_item", "custom_id", nullable=False, comment=ITEM[False])
    op.drop_table("deprecated_use")
    _frame(new=False)


def _deprecated_use() -> None:
    op.create_table(
        "deprecated_use",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False, comment="Whose caller."),
        sa.Column("actor", sa.Text(), nullable=False, comment="Who asked: key:..., user:... or local."),
        sa.Column("operation", sa.Text(), nullable=False, comment="What for: GET /v1/things/<thing>."),
        sa.Column("times", sa.BigInteger(), nullable=False, comment="How often."),
        sa.Column("first_at", TIME, nullable=False, comment="When it was first asked for."),
        sa.Column("last_at", TIME, nullable=False, comment="When it was last asked for."),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenant.id"], name="fk_deprecated_use_tenant_id"),
        sa.PrimaryKeyConstraint("tenant_id", "actor", "operation", name="pk_deprecated_use"),
        comment="Who still uses an operation of the API that will go.",
    )


def _frame(*, new: bool) -> None:
    op.drop_table("frame")
    more = [
        sa.Column("body", sa.LargeBinary(), comment="Its bytes; NULL: its run has ended, and the record has its rows."),
    ]
    op.create_table(
        "frame",
        sa.Column("run_id", sa.BigInteger(), nullable=False, comment="Of which watched run."),
        sa.Column("n", sa.Integer(), nullable=False, comment="Its number, from 0."),
        sa.Column(
            "sha256",
            sa.LargeBinary(),
            nullable=False,
            comment="Of its bytes: the same number with other bytes is refused.",
        ),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, comment="How many bytes."),
        sa.Column("at", TIME, nullable=False, comment="When it came."),
        *(more if new else []),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_frame_run_id"),
        sa.PrimaryKeyConstraint("run_id", "n", name="pk_frame"),
        comment=FRAME[new],
    )
    if new:
        kept = sa.text("body is not null")
        op.create_index("frame_kept", "frame", ["run_id"], postgresql_where=kept, sqlite_where=kept)
        op.create_index("frame_at", "frame", ["at"])


def _recorder() -> None:
    asked = "SHA-256 of the request that made it: the same once more is no error, another is."
    last = "What the last frame was: header, end or a table; NULL: none has come."
    told = "How the job ended, as its recorder told; NULL: it has not told."
    where = "Where the job runs, in the recorder's words: text by name."
    number = "Number of the frame that is wanted next: so many have come."
    json = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "recorder",
        sa.Column("run_id", sa.BigInteger(), nullable=False, comment="Which watched run."),
        sa.Column("asked", sa.LargeBinary(), nullable=False, comment=asked),
        sa.Column("environment", json, nullable=False, comment=where),
        sa.Column("next_frame", sa.Integer(), nullable=False, comment=number),
        sa.Column("rows", sa.BigInteger(), nullable=False, comment="Rows in them."),
        sa.Column("last", sa.Text(), comment=last),
        sa.Column("told", json, comment=told),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_recorder_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_recorder"),
        comment="The recorder of a watched run.",
    )


def _rewrite(table: str, old: str, new: str) -> None:
    """Change the first such place of a CREATE statement, as 0006 does: rows stay as they are."""
    bind = op.get_bind()
    which = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table")
    sql = bind.execute(which, {"table": table}).scalar_one()
    if old not in sql:
        raise ValueError(f"{table}: {old!r} is not in its statement")
    version = bind.exec_driver_sql("PRAGMA schema_version").scalar_one()
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    changed = {"sql": sql.replace(old, new, 1), "table": table}
    bind.execute(sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = :table"), changed)
    bind.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    bind.exec_driver_sql("PRAGMA writable_schema = OFF")
