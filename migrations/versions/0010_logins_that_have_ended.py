"""Logins that have ended: a cookie that was copied before opens nothing after the logout.

Frozen. It imports nothing of ours. Code of the release before works with this schema: only a table is new.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TIME = sa.String().with_variant(TIMESTAMP(timezone=True, precision=3), "postgresql")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "ended_login",
        sa.Column("login", sa.Text(), nullable=False, comment="The random name in its cookie."),
        sa.Column("actor", sa.Text(), nullable=False, comment="Whose it was: user:..."),
        sa.Column("ended_at", TIME, nullable=False, comment="When that person logged out."),
        sa.PrimaryKeyConstraint("login", name="pk_ended_login"),
        comment="A login whose cookie is valid by its signature, and opens nothing any more.",
    )
    op.create_index("ended_login_at", "ended_login", ["ended_at"])


def downgrade() -> None:
    """Drop it; who has logged out is out by the cookie in the browser alone, as before."""
    op.drop_table("ended_login")
