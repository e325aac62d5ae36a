"""API keys: made, found, listed, taken back. The store keeps a hash; the key itself is nowhere."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store.database.ids import new_id
from store.database.session import Transaction
from store.tables import Now, api_key, project, tenant

_NUMBER_OF_PROJECT: Final = sa.select(project.c.id).where(
    project.c.public_id == sa.bindparam("project"), project.c.tenant_id == sa.bindparam("tenant_id")
)
_SELECT: Final = sa.select(api_key, project.c.public_id.label("project")).join_from(
    api_key, project, project.c.id == api_key.c.project_id, isouter=True
)
_LIVE: Final = (
    api_key.c.revoked_at.is_(None),
    sa.or_(api_key.c.expires_at.is_(None), api_key.c.expires_at > Now()),
    sa.exists().where(tenant.c.id == api_key.c.tenant_id, tenant.c.disabled_at.is_(None)),
)
_FIND: Final = _SELECT.where(api_key.c.prefix == sa.bindparam("prefix"), *_LIVE)
_BY_NUMBER: Final = _SELECT.where(api_key.c.id == sa.bindparam("number"), *_LIVE)
_LIVE_AMONG: Final = sa.select(api_key.c.id).where(api_key.c.id.in_(sa.bindparam("numbers", expanding=True)), *_LIVE)
_TOUCH: Final = (
    sa.update(api_key)
    .where(
        api_key.c.id.in_(sa.bindparam("numbers", expanding=True)),
        sa.or_(api_key.c.last_used_at.is_(None), api_key.c.last_used_at < Now(-60.0)),
    )
    .values(last_used_at=Now())
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key, without what would open anything.

    Attributes:
        id: `key_...`. prefix: the part that is shown. scopes: what it allows.
        project: Public id of the only project that it opens; None: all of the tenant's.
        expires_at, last_used_at, revoked_at: None: not, or never. last_used_at is exact to a minute or so.
        number, tenant_id, project_id: Not shown.
    """

    id: str
    prefix: str
    name: str
    scopes: tuple[str, ...]
    project: str | None
    created_by: str
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    number: int
    tenant_id: int
    project_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key to be kept.

    Attributes:
        prefix: The part that is shown, and by which it is found; one taken already is an error of the database.
        digest: HMAC-SHA-256 of the whole key under the server's secret. The key has 256 random bits, so that a slow
            hash would add nothing.
        project: Public id of the only project that it opens; None: all of the tenant's.
        expires_at: ISO 8601 in UTC; None: never.
    """

    name: str
    prefix: str
    digest: bytes
    scopes: tuple[str, ...]
    created_by: str
    project: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPage:
    """Some keys, newest first; `next` is the `after` of the next page or None."""

    items: tuple[Key, ...]
    next: int | None


def create(transaction: Transaction, new: NewKey, *, tenant_id: int = 1) -> Key:
    """Keep a new key.

    Raises:
        KeyError: the tenant has no such project.
    """
    number = None
    if new.project is not None:
        number = transaction.execute(_NUMBER_OF_PROJECT, {"project": new.project, "tenant_id": tenant_id}).scalar()
        if number is None:
            raise KeyError(new.project)
    values = {
        "public_id": new_id("key"),
        "tenant_id": tenant_id,
        "project_id": number,
        "name": new.name,
        "prefix": new.prefix,
        "hash": new.digest,
        "scopes": list(new.scopes),
        "created_by": new.created_by,
        "expires_at": new.expires_at,
    }
    insert = sa.insert(api_key).values(values | {"created_at": Now()}).returning(api_key.c.id)
    made = transaction.execute(insert).scalar_one()
    return _key(transaction.execute(_SELECT.where(api_key.c.id == made)).one())


def find(transaction: Transaction, prefix: str, digest: bytes) -> Key | None:
    """Find the key with this prefix and hash. None: it is unknown, expired or revoked, or its tenant is disabled."""
    row = transaction.execute(_FIND, {"prefix": prefix}).first()
    if row is None or not hmac.compare_digest(row.hash, digest):
        return None
    return _key(row)


def find_by_number(transaction: Transaction, number: int) -> Key | None:
    """Return the key with this number if it opens anything now; None as for `find`."""
    row = transaction.execute(_BY_NUMBER, {"number": number}).first()
    return None if row is None else _key(row)


def live_among(transaction: Transaction, numbers: Collection[int]) -> frozenset[int]:
    """Those of these keys that open anything now."""
    return frozenset(transaction.execute(_LIVE_AMONG, {"numbers": list(numbers)}).scalars())


def touch(transaction: Transaction, numbers: Collection[int]) -> None:
    """Store that these keys were used just now; a key whose last use is less than a minute old is not written."""
    transaction.execute(_TOUCH, {"numbers": sorted(numbers)})


def revoke(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> bool:
    """Take a key back; it opens nothing from the commit on. False: no such key of this tenant, or it was taken back."""
    which = (api_key.c.public_id == public_id, api_key.c.tenant_id == tenant_id, api_key.c.revoked_at.is_(None))
    return transaction.execute(sa.update(api_key).where(*which).values(revoked_at=Now())).rowcount == 1


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> Key | None:
    """One key, also one that opens nothing any more; None: no such key of this tenant."""
    which = (api_key.c.public_id == public_id, api_key.c.tenant_id == tenant_id)
    row = transaction.execute(_SELECT.where(*which)).first()
    return None if row is None else _key(row)


def page(transaction: Transaction, *, tenant_id: int = 1, after: int | None = None, limit: int = 100) -> KeyPage:
    """List the keys of a tenant, newest first, with those that were revoked."""
    query = _SELECT.where(api_key.c.tenant_id == tenant_id).order_by(api_key.c.id.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(api_key.c.id < after)
    rows = transaction.execute(query).all()
    more = len(rows) > limit
    return KeyPage(items=tuple(_key(row) for row in rows[:limit]), next=rows[limit - 1].id if more else None)


def _key(row: Any) -> Key:
    return Key(
        id=row.public_id,
        prefix=row.prefix,
        name=row.name,
        scopes=tuple(row.scopes),
        project=row.project,
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        number=row.id,
        tenant_id=row.tenant_id,
        project_id=row.project_id,
    )
