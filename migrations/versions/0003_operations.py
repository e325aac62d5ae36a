# ruff: noqa: E501 - comments of columns are sentences on one line
"""The table for version 3 of the record: operations.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: it does not know the table.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

I2, I4, I8 = sa.SmallInteger(), sa.Integer(), sa.BigInteger()
TEXT, BOOL = sa.Text(), sa.Boolean()
JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "operation",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column("attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."),
        sa.Column("operation", I4, nullable=False, comment="Its number, in the order in which they ended."),
        sa.Column("statement", I4, nullable=False, comment="Site of the statement in which it stands."),
        sa.Column("line", I4, nullable=False, comment="First line of the expression."),
        sa.Column("col", I4, nullable=False, comment="First column, 1-based, in code points."),
        sa.Column("end_line", I4, nullable=False, comment="Last line."),
        sa.Column("end_col", I4, nullable=False, comment="Column after the last."),
        sa.Column("function", TEXT, nullable=False, comment="As written: torch.cat, .detach, *, [], self.net."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("moment", I4, comment="The last moment before its end; NULL: none yet."),
        sa.Column("operands", JSON, nullable=False, comment="Tensors that went in."),
        sa.Column("inner", JSON, nullable=False, comment="Operations whose results went in."),
        sa.Column("complete", BOOL, nullable=False, comment="Everything that went in is in operands and inner."),
        sa.Column("result", TEXT, nullable=False, comment="tensor, tensors, number, array or other."),
        sa.Column("tensor", I4, comment="The tensor that came out; NULL: none, or one without a row."),
        sa.Column("is_value", BOOL, nullable=False, comment="It is the value of its statement."),
        sa.Column("requires_grad", BOOL, comment="Of the tensor that came out; NULL: no tensor."),
        sa.Column("shape", JSON, comment="Of the tensor that came out; NULL: no tensor, or none is defined."),
        sa.Column("dtype", TEXT, nullable=False, comment="Of the tensor that came out; empty: no tensor."),
        sa.CheckConstraint("result in ('tensor', 'tensors', 'number', 'array', 'other')", name=op.f("ck_operation_result")),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "operation", name="pk_operation"),
        comment="An expression of the program: what went in, and what came out.",
        sqlite_with_rowid=True,
    )  # fmt: skip
    op.create_index("operation_statement", "operation", ["part", "run_id", "attempt", "statement"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("operation")
