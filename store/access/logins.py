"""Logins that have ended before their cookie does. Who is logged in is in the cookie; only an end is stored."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.database.session import Transaction
from store.tables import Now, ended_login

_ENDED: Final = sa.select(sa.literal(1)).where(ended_login.c.login == sa.bindparam("its_login"))

_ENDED_AMONG: Final = sa.select(ended_login.c.login).where(
    ended_login.c.login.in_(sa.bindparam("its_logins", expanding=True))
)


def end(transaction: Transaction, login: str, actor: str, *, kept_seconds: float) -> None:
    """From now on this login opens nothing; ends that are older than any cookie are forgotten.

    Args:
        transaction: To write by.
        login: The random name in its cookie.
        actor: Whose it was.
        kept_seconds: How long a cookie is good by itself.
    """
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    added = insert(ended_login).values(login=login, actor=actor, ended_at=Now())
    transaction.execute(added.on_conflict_do_nothing())
    transaction.execute(sa.delete(ended_login).where(ended_login.c.ended_at < Now(-kept_seconds)))


def has_ended(transaction: Transaction, login: str) -> bool:
    """Whether that person has logged out of this login."""
    return transaction.execute(_ENDED, {"its_login": login}).first() is not None


def ended_among(transaction: Transaction, known: Collection[str]) -> frozenset[str]:
    """Those of these logins that their person has logged out of."""
    return frozenset(transaction.execute(_ENDED_AMONG, {"its_logins": list(known)}).scalars())
