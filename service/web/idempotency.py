"""The effect of a write: one transaction with the change, its entry in the audit log and its Idempotency-Key.

The key exists exactly if the effect does: a refusal rolls both back, so that a request can be mended and sent again.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from flask import g, request

from service.auth.caller import caller
from service.context import context
from service.problems.errors import Place, Problem
from store.access import audit_log, idempotency
from store.access.backlog import Overfull
from store.access.quotas import QuotaExceeded
from store.access.shares import DatabaseFull

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from store.database.session import Transaction

HEADER: Final = "Idempotency-Key"
RETRY_SECONDS: Final = 1
FULL_SECONDS: Final = 10
"""After which who found a queue full may try again: a tenant its own, or anybody that of all."""

NO_ROOM_SECONDS: Final = 600
"""After which a tenant that stores too much may: records go as they expire, or are deleted."""

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(slots=True)
class Effect:
    """One write in progress.

    Attributes:
        transaction: To write by.
        known: The answer to give again, because this request has had its effect before; None: it is new.
    """

    transaction: Transaction
    key: str | None
    known: idempotency.Answer | None

    def done(self, action: str, about: str, *, run: str | None = None, detail: Mapping[str, Any] | None = None) -> None:
        """Write the audit log and keep the answer under the Idempotency-Key, if there is one.

        Args:
            action: `run.submit`, `key.create`, ...
            about: Public id of what was written.
            run: The run that is the answer, shown as it is when the request comes again.
            detail: For the log; never content.
        """
        asked = caller()
        g.run = run
        entry = audit_log.Entry(
            actor=asked.actor,
            action=action,
            object=about,
            request_id=g.request_id,
            address=request.remote_addr,
            detail=detail,
        )
        audit_log.append(self.transaction, entry, tenant_id=asked.tenant_id)
        if self.key is not None:
            answer = idempotency.Answer(status=200, run=run, body=None if run else about.encode())
            idempotency.done(self.transaction, self.key, answer, tenant_id=asked.tenant_id)

    @property
    def headers(self) -> dict[str, str]:
        """What the answer says of a repeated request."""
        return {} if self.known is None else {"Idempotent-Replayed": "true"}


def given_key() -> str | None:
    """Return the Idempotency-Key of the request; None if it has none.

    Raises:
        Problem: `invalid-request`.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if _KEY.fullmatch(key) is None:
        detail = "An Idempotency-Key is 1 to 255 printable ASCII characters without blanks."
        raise Problem("invalid-request", detail, places=(Place(header=HEADER, code="invalid-header", detail=detail),))
    return key


@contextmanager
def effect() -> Generator[Effect]:
    """Yield the transaction of a write; `body()` has checked the request before.

    Raises:
        Problem: `idempotency-in-flight`, `idempotency-mismatch`, `invalid-request`.
    """
    key = given_key()
    with context().database.begin() as transaction:
        known = None if key is None else _begin_idempotent(transaction, key)
        yield Effect(transaction=transaction, key=key, known=known)


@contextmanager
def storing() -> Generator[Effect]:
    """`effect` of a write after which its tenant stores more than before.

    Raises:
        Problem: as `effect` and `within_quotas`.
    """
    with within_quotas(), effect() as write:
        if write.known is None:
            context().room.demand(write.transaction, tenant_id=caller().tenant_id)
        yield write


@contextmanager
def within_quotas() -> Generator[None]:
    """Turn a full quota of the tenant into `quota-exceeded`, and a full queue into `queue-full`.

    A full database becomes `database-full` for a tenant that has more than its share. Everything is refused before it
    is stored.
    """
    try:
        yield
    except QuotaExceeded as full:
        after = FULL_SECONDS if full.name == "queued" else NO_ROOM_SECONDS
        raise Problem("quota-exceeded", f"{full}.", headers={"Retry-After": str(after)}) from None
    except Overfull as full:
        raise Problem("queue-full", f"{full}.", headers={"Retry-After": str(FULL_SECONDS)}) from None
    except DatabaseFull as full:
        said = f"{full}."
        after = {"Retry-After": str(NO_ROOM_SECONDS)}
        raise Problem("database-full", said[0].upper() + said[1:], headers=after) from None


def _begin_idempotent(transaction: Transaction, key: str) -> idempotency.Answer | None:
    return begin_key(transaction, key, digest_of_request())


def request_line() -> bytes:
    """Return method, path and query of this request, with which the digest of a request begins.

    The order of parameters is no difference, except of values of one name. Without a query it is what releases before
    wrote, which left the query out: keys of theirs stay good.
    """
    line = f"{request.method} {request.path}\0"
    if request.query_string:
        given = sorted(request.args.items(multi=True), key=lambda item: item[0])
        line += f"{urlencode(given)}\0"
    return line.encode("utf-8", "surrogatepass")


def digest_of_request() -> bytes:
    """Compute what distinguishes requests under the same key: a digest of method, path, query and body."""
    return hashlib.sha256(request_line() + g.get("body_sha256", b"")).digest()


def begin_key(transaction: Transaction, key: str, sent: bytes) -> idempotency.Answer | None:
    """Take the caller's key for a request with this digest; None: it is new.

    Raises:
        Problem: `idempotency-in-flight`, `idempotency-mismatch`.
    """
    try:
        return idempotency.begin(transaction, key, sent, tenant_id=caller().tenant_id)
    except idempotency.InFlight:
        raise in_flight() from None
    except idempotency.Mismatch:
        raise build_mismatch_problem() from None


def in_flight() -> Problem:
    """Return the problem that the first request with this key is still being worked on."""
    return Problem("idempotency-in-flight", f"{idempotency.InFlight()}.", headers={"Retry-After": str(RETRY_SECONDS)})


def build_mismatch_problem() -> Problem:
    """Return the problem that the key came with another request before."""
    detail = f"{idempotency.Mismatch()}."
    place = Place(header=HEADER, code="idempotency-mismatch", detail=detail)
    return Problem("idempotency-mismatch", detail, places=(place,))
