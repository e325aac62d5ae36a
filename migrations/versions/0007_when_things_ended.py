"""Indices by the time of an end: of runs, attempts and tries at deliveries; and one of dead deliveries.

Frozen. It imports nothing of ours. Code of the release before works with this schema: only indices are new.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

DEAD = sa.text("state = 'dead'")


def upgrade() -> None:
    """Make them; on a large database this takes seconds, during which writers wait."""
    finished, ended = sa.text("finished_at is not null"), sa.text("ended_at is not null")
    op.create_index("run_finished", "run", ["finished_at"], postgresql_where=finished, sqlite_where=finished)
    op.create_index("run_attempt_ended", "run_attempt", ["ended_at"], postgresql_where=ended, sqlite_where=ended)
    op.create_index("delivery_try_at", "delivery_try", ["at"])
    op.create_index("delivery_dead", "delivery", ["id"], postgresql_where=DEAD, sqlite_where=DEAD)


def downgrade() -> None:
    """Drop them."""
    op.drop_index("delivery_dead", "delivery")
    op.drop_index("delivery_try_at", "delivery_try")
    op.drop_index("run_attempt_ended", "run_attempt")
    op.drop_index("run_finished", "run")
