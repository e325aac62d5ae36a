"""The state and the version of a group at the time of a statement: the end of a mute is read, never written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from store.tables import Now, finding_group

_IS_OVER: Final = sa.and_(finding_group.c.state == "suppressed", finding_group.c.muted_until <= Now())

STATE_NOW: Final = sa.case((_IS_OVER, "open"), else_=finding_group.c.state)
"""The state: a group that was suppressed until a time is open from then on."""

VERSION_NOW: Final = finding_group.c.version + sa.case((_IS_OVER, 1), else_=0)
"""The version: the end of a mute raises it, as a write does."""

HAS_RETURNED: Final = sa.and_(finding_group.c.state == "open", finding_group.c.state_by.startswith("run_"))
"""A run opened the group, which was fixed, and nobody has set its state since."""


def is_in_state(states: Collection[str]) -> sa.ColumnElement[bool]:
    """Return the condition that `STATE_NOW` is one of these, written so that PostgreSQL knows how many rows fulfil it.

    Of a comparison with the CASE it expects that one row in 200 does, and then sorts all groups for a page of 50.
    """
    g = finding_group.c
    plain = g.state.in_([state for state in states if state != "suppressed"])
    if "open" in states and "suppressed" in states:
        return sa.or_(plain, g.state == "suppressed")
    if "open" in states:
        return sa.or_(plain, _IS_OVER)
    if "suppressed" in states:
        lasts = sa.or_(g.muted_until.is_(None), g.muted_until > Now())
        return sa.or_(plain, sa.and_(g.state == "suppressed", lasts))
    return plain
