"""Whether a program came with the name of a file: what came without one is told as unnamed, and groups by itself.

Frozen. It imports nothing of ours. Code of the release before works with this schema: what it stores counts as named,
and so does what was stored before, whose findings stay in the groups that they are in.
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0010"
branch_labels = None
depends_on = None

ENTRY = "Path of the file that is run, or the module that `python -m` would run."
ENTRY_BEFORE = "Path of the file that is run."
DIGEST = "Over entry, paths and contents, and whether it is named; the same program is stored once per tenant."
DIGEST_BEFORE = "Over entry, paths and contents; the same program is stored once per tenant."
COMMENT = "Whoever sent it named its file; else it came as `source` alone, and its path is ours."


def upgrade() -> None:
    """Add the column."""
    named = sa.Column("named", sa.Boolean(), nullable=False, server_default=sa.true(), comment=COMMENT)
    op.add_column("snippet", named)
    _told(ENTRY, DIGEST)


def downgrade() -> None:
    """Drop it; programs without a name are told under the path that they were given."""
    op.drop_column("snippet", "named")
    _told(ENTRY_BEFORE, DIGEST_BEFORE)


def _told(entry: str, digest: str) -> None:
    if op.get_bind().dialect.name == "postgresql":  # SQLite keeps no comments
        op.alter_column("snippet", "entry", comment=entry)
        op.alter_column("snippet", "sha256", comment=digest)
