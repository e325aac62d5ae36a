"""Two column comments, in plain words.

Frozen. It imports nothing of ours. SQLite has no comments.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

COMMENTS = (
    (
        *("record", "own_errors"),
        "Errors of ours that capture swallowed; NULL: it did not reach its end.",
        "Internal errors that capture swallowed; NULL: it did not reach its end.",
    ),
    (
        *("run", "not_before"),
        "It is not claimed earlier: the pause after a failure of ours.",
        "No worker claims it earlier: the pause after a worker or its sandbox failed.",
    ),
)
"""Table, column, old comment, new comment."""


def upgrade() -> None:
    """Write the new comments."""
    for table, column, _, comment in COMMENTS:
        _comment(table, column, comment)


def downgrade() -> None:
    """Write the old ones."""
    for table, column, comment, _ in COMMENTS:
        _comment(table, column, comment)


def _comment(table: str, column: str, comment: str) -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sa.text(f"COMMENT ON COLUMN {table}.{column} IS '{comment}'"))
