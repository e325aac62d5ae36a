"""Responses about keys, the caller, and the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service.web.listing import Listing


@dataclass(frozen=True, kw_only=True)
class KeyTold:
    """A key, without what would open anything.

    Attributes:
        prefix: The part by which its holder knows it.
        project: The only one that it sees; null: all of the tenant's.
        last_used_at: When a request last came with it, exact to a minute or so; null: never.
    """

    id: str
    name: str
    prefix: str
    scopes: list[str]
    project: str | None
    created_by: str
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


@dataclass(frozen=True, kw_only=True)
class KeyMade(KeyTold):
    """A new key; only this response contains `secret`."""

    secret: str | None


@dataclass(frozen=True, kw_only=True)
class KeyList(Listing[KeyTold]):
    """Keys, newest first."""


@dataclass(frozen=True, kw_only=True)
class LimitTold:
    """The range of one limit of a run."""

    default: int
    least: int
    most: int
    unit: str


@dataclass(frozen=True, kw_only=True)
class QuotaTold:
    """What the tenant has of something, and may have."""

    used: int
    allowed: int


@dataclass(frozen=True, kw_only=True)
class Me:
    """Who the caller is.

    Attributes:
        quotas: queued, running, stored_bytes and of these record_bytes, gpu_seconds of this month. rates: requests in
            a minute, by quota. What has no limit is not there.
    """

    actor: str
    tenant: str
    scopes: list[str]
    project: str | None
    expires_at: str | None
    limits: dict[str, LimitTold]
    quotas: dict[str, QuotaTold]
    rates: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class AuditEntryTold:
    """One write that somebody asked for; `object`: what was written."""

    at: str
    actor: str
    action: str
    object: str
    request_id: str
    address: str | None
    detail: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class AuditEntryList(Listing[AuditEntryTold]):
    """Entries of the audit log, newest first."""
