"""Requests that must not take effect twice.

`begin` and `done` belong into the transaction of the effect: then the key exists exactly if the effect does, a crash
frees it, and of two at once on PostgreSQL the second waits for the first one's commit and finds its answer. Where the
effect needs several transactions, `begin` commits first; what comes meanwhile is `InFlight`, and `free` gives it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.database.session import Transaction
from store.tables import Now, idempotency, run

KEEP_SECONDS: Final = 24 * 3600.0
"""How long an answer is kept."""

_WHICH: Final = (
    idempotency.c.tenant_id == sa.bindparam("its_tenant"),
    idempotency.c.key == sa.bindparam("its_key"),
)
_DROP_EXPIRED: Final = sa.delete(idempotency).where(*_WHICH, idempotency.c.expires_at <= Now())
_KNOWN: Final = (
    sa.select(idempotency, run.c.public_id.label("run"))
    .join_from(idempotency, run, run.c.id == idempotency.c.run_id, isouter=True)
    .where(*_WHICH)
)
_RUN: Final = sa.select(run.c.id).where(
    run.c.public_id == sa.bindparam("run"), run.c.tenant_id == sa.bindparam("its_tenant")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the first request was told.

    Attributes:
        run: Public id of the run that it made, to be shown as it is now; None: `body` is the answer.
        status: HTTP status. headers: those worth repeating.
    """

    status: int
    run: str | None = None
    headers: Mapping[str, str] | None = None
    body: bytes | None = None


class InFlight(Exception):
    """The first request with this key has not been answered yet; ask again later."""

    def __init__(self) -> None:
        super().__init__("the first request with this Idempotency-Key is still being worked on; ask again later")


class Mismatch(Exception):
    """This key came with another request before; send each request with a different key."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key came with another request before; each request wants its own")


def begin(
    transaction: Transaction,
    key: str,
    request_hash: bytes,
    *,
    tenant_id: int = 1,
    keep_seconds: float = KEEP_SECONDS,
) -> Answer | None:
    """Take a key. None: it is new, go on, and call `done` at the end; else the answer to give again.

    Args:
        transaction: The effect's own.
        key: The caller's, at most 255 characters; checked before.
        request_hash: Over method, path and body.
        tenant_id: Whose request.
        keep_seconds: How long the answer is to be kept, from now.

    Raises:
        InFlight: the first request is not answered yet.
        Mismatch: the first request was another one.
    """
    which = {"its_tenant": tenant_id, "its_key": key}
    transaction.execute(_DROP_EXPIRED, which)
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    values = {"tenant_id": tenant_id, "key": key, "request_hash": request_hash, "state": "in-flight"}
    times = {"created_at": Now(), "expires_at": Now(keep_seconds)}
    taken = insert(idempotency).values(values | times).on_conflict_do_nothing().returning(idempotency.c.key)
    if transaction.execute(taken).first() is not None:
        return None
    known = transaction.execute(_KNOWN, which).first()
    if known is None:  # freed between the two statements: whoever asks again takes it
        raise InFlight
    if known.request_hash != request_hash:
        raise Mismatch
    if known.state == "in-flight":
        raise InFlight
    return Answer(status=known.status, run=known.run, headers=known.headers, body=known.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenKey:
    """A key whose request has begun.

    Attributes:
        about: Public id of the object that the request made; None: not known yet. over: True once it was answered.
    """

    request_hash: bytes
    about: str | None
    over: bool


def find_key(transaction: Transaction, key: str, *, tenant_id: int = 1) -> TakenKey | None:
    """Load the request stored under a key; None if there is none, or it has expired."""
    which = {"its_tenant": tenant_id, "its_key": key}
    transaction.execute(_DROP_EXPIRED, which)
    row = transaction.execute(_KNOWN, which).first()
    if row is None:
        return None
    about = None if row.body is None else bytes(row.body).decode(errors="replace")
    return TakenKey(request_hash=bytes(row.request_hash), about=about, over=row.state == "done")


def advance(transaction: Transaction, key: str, request_hash: bytes, about: str, *, tenant_id: int = 1) -> None:
    """Record that the request in flight under a key has come as far as `request_hash`.

    Its effect takes several transactions.

    Raises:
        KeyError: the key was not begun, or was answered.
    """
    which = {"its_tenant": tenant_id, "its_key": key}
    this = sa.update(idempotency).where(*_WHICH, idempotency.c.state == "in-flight")
    if transaction.execute(this.values(request_hash=request_hash, body=about.encode()), which).rowcount != 1:
        raise KeyError(key)


def done(transaction: Transaction, key: str, answer: Answer, *, tenant_id: int = 1) -> None:
    """Keep the answer of a key that was begun.

    Raises:
        KeyError: `answer.run` names no run of the tenant, or the key was not begun.
    """
    which = {"its_tenant": tenant_id, "its_key": key}
    number = None
    if answer.run is not None:
        number = transaction.execute(_RUN, which | {"run": answer.run}).scalar()
        if number is None:
            raise KeyError(answer.run)
    values = {
        "state": "done",
        "run_id": number,
        "status": answer.status,
        "headers": dict(answer.headers or {}),
        "body": answer.body,
    }
    if transaction.execute(sa.update(idempotency).where(*_WHICH).values(values), which).rowcount != 1:
        raise KeyError(key)


def free(transaction: Transaction, key: str, *, tenant_id: int = 1) -> None:
    """Give up a key whose request was refused: refusals are not stored, so the client can correct the request."""
    which = {"its_tenant": tenant_id, "its_key": key}
    transaction.execute(sa.delete(idempotency).where(*_WHICH, idempotency.c.state == "in-flight"), which)


def drop_expired(transaction: Transaction, *, limit: int = 1000) -> int:
    """Delete keys that are free again; how many."""
    old = sa.select(idempotency.c.tenant_id, idempotency.c.key).where(idempotency.c.expires_at <= Now()).limit(limit)
    pair = sa.tuple_(idempotency.c.tenant_id, idempotency.c.key)
    return transaction.execute(sa.delete(idempotency).where(pair.in_(old))).rowcount
