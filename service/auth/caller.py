"""The caller of a request: its tenant, actor and scopes.

1. A key is `bp_` and eight hex digits, by which it is found, then 32 random bytes; only its HMAC is stored.
2. Without a key (loopback only) and with the key of the environment, the caller may do all, in the first tenant.
3. The first tenant is the operator's: only its keys can read data of the whole service.
4. Whose an id is, is asked of the store with the caller's tenant: another's id is unknown, with the same text.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from flask import g

from service.context import context
from service.problems.errors import Problem
from store.access import keys

if TYPE_CHECKING:
    from service.settings import Settings

Scope = Literal[
    "read", "runs:write", "findings:write", "audits:write", "webhooks:write", "keys:write", "metrics", "admin"
]
SCOPES: Final[tuple[Scope, ...]] = (
    "read",
    "runs:write",
    "findings:write",
    "audits:write",
    "webhooks:write",
    "keys:write",
    "metrics",
    "admin",
)
_KEY: Final = re.compile(r"bp_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
_FIRST_TENANT: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who a request comes from.

    Attributes:
        actor: `local`, `key:server` or `key:bp_<prefix>`.
        scopes: What it may do; `admin` is all of them.
        project: Public id of the only project that it sees; None: all of its tenant's. project_id: its number.
        key: Number of its key in the database; None: another key, or none. login: of a browser's session, what a
            sign-out ends.
    """

    actor: str
    scopes: frozenset[str]
    tenant_id: int = _FIRST_TENANT
    project: str | None = None
    project_id: int | None = None
    expires_at: str | None = None
    key: int | None = None
    login: str | None = None

    def may(self, scope: str) -> bool:
        """Return whether the caller has the scope."""
        return scope in self.scopes or "admin" in self.scopes

    @property
    def sharing(self) -> int | None:
        """The tenant that shares the service with others; None: nobody else is there, for no key is demanded."""
        return None if self.actor == "local" else self.tenant_id

    @property
    def operates(self) -> bool:
        """It may know of the whole service, and not of one tenant or project alone."""
        return self.tenant_id == _FIRST_TENANT and self.project is None


LOCAL: Final = Caller(actor="local", scopes=frozenset(SCOPES))
SERVER: Final = Caller(actor="key:server", scopes=frozenset(SCOPES))


def caller() -> Caller:
    """Who sent the request that is being answered."""
    found: Caller = g.caller
    return found


def demand(scope: str) -> None:
    """Refuse a caller without this scope.

    Raises:
        Problem: `scope-missing`, which names it.
    """
    asked = caller()
    if not asked.may(scope):
        told = ", ".join(sorted(asked.scopes)) or "none"
        raise Problem("scope-missing", f"This needs the scope {scope}; the key has: {told}.")


def demand_operator() -> None:
    """Refuse a caller of another tenant than the first, or of one project.

    Raises:
        Problem: `scope-missing`.
    """
    if not caller().operates:
        raise Problem("scope-missing", "This concerns the whole service. Only keys of its first tenant can read it.")


def demand_tenant() -> None:
    """Refuse a key of one project, for what belongs to the tenant as a whole.

    Raises:
        Problem: `scope-missing`.
    """
    if caller().project is not None:
        raise Problem("scope-missing", "This key is of one project; this needs a key of the whole tenant.")


def new_key() -> tuple[str, str]:
    """Make a key; return it, and the part of it that may be shown."""
    prefix = secrets.token_hex(4)
    return f"bp_{prefix}_{secrets.token_urlsafe(32)}", prefix


def digest_of(key: str, secret: bytes) -> bytes:
    """Compute what is stored of a key."""
    return hmac.digest(hmac.digest(secret, b"backprobe key", "sha256"), key.encode(), "sha256")


def holder(key: str) -> Caller | None:
    """Who holds this key of the database; None: it opens nothing."""
    shape = _KEY.fullmatch(key)
    if shape is None:
        return None
    shared = context()
    with shared.database.read() as transaction:
        found = keys.find(transaction, shape[1], digest_of(key, shared.settings.secret))
    return None if found is None else of_key(found)


def key_holder(key: str, settings: Settings) -> Caller | None:
    """Return who holds this key, the server's or one of the database; None: it opens nothing."""
    if settings.api_key is not None and hmac.compare_digest(key.encode(), settings.api_key.encode()):
        return SERVER
    return holder(key)


def of_key(found: keys.Key) -> Caller:
    """Build the caller that a stored key makes."""
    return Caller(
        actor=f"key:bp_{found.prefix}",
        scopes=frozenset(found.scopes),
        tenant_id=found.tenant_id,
        project=found.project,
        project_id=found.project_id,
        expires_at=found.expires_at,
        key=found.number,
    )
