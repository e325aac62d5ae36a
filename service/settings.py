"""What the web process is told: the environment, read once into a frozen value."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from service.auth.oidc_settings import OidcSettings
from service.limits.turns import MOST_AT_WORK
from store.access.backlog import MOST_QUEUED
from store.access.secret import server_secret
from store.database.settings import StoreSettings
from store.recorders.recorder_requests import LEASE_SECONDS
from store.runs.limits import LIMITS, Limit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ORIGIN: Final = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:.]+\](:[0-9]{1,5})?")
LIMIT_VARIABLE: Final = "BACKPROBE_MOST_{}"
"""The operator's maximum of a limit, such as BACKPROBE_MOST_MEMORY_BYTES; the names are those of `LIMITS`."""

LEASES: Final = (60, 90 * 86_400)
"""Seconds of silence, least and most, after which a recorder may be taken to be gone."""

THREADS: Final = 16
"""Threads that answer requests; half of them may wait for a run's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """Requests in a minute; 0: as many as come. Submits are what makes a worker work; all else are reads.

    Attributes:
        reads, submits: Of one key.
        tenant_reads, tenant_submits: Of all keys of a tenant together.
        url: The Redis in which all processes count; None: each counts for itself.
    """

    reads: int = 600
    submits: int = 60
    tenant_reads: int = 6000
    tenant_submits: int = 600
    url: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> RateLimits:
        """Read BACKPROBE_RATE_READS, _SUBMITS, _TENANT_READS, _TENANT_SUBMITS and _URL; empty: the default.

        Raises:
            ValueError: not a whole number of requests.
        """
        taken: dict[str, int] = {}
        for name in ("reads", "submits", "tenant_reads", "tenant_submits"):
            text = environ.get(variable := f"BACKPROBE_RATE_{name.upper()}") or ""
            if text and not (text.isascii() and text.isdigit() and len(text) < 10):
                raise ValueError(f"{variable} is {text!r}; it must be a number of requests in a minute, 0 for no limit")
            if text:
                taken[name] = int(text)
        return cls(**taken, url=environ.get("BACKPROBE_RATE_URL") or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one web process; what is secret, or may hold a password, is not in its repr.

    Attributes:
        store: Where database and broker are.
        secret: Signs cursors, hashes keys, makes the secrets of webhooks: BACKPROBE_SECRET, or the home's.
        api_key: What every request must carry; None: loopback only, and nothing is demanded.
        threads: Of the server.
        rates: Requests that a key may make.
        origins: Pages of these origins may ask the API. https: A proxy in front speaks TLS, and nothing else.
        oidc: Who lets people in; None: keys alone do.
        most_queued: Runs that may wait in each queue, of all tenants.
        most_limits: The most that a run may ask for, by the name of the limit.
        tenant_threads: Reads of one tenant at work at the same time, while other tenants ask; writes are half as many.
        recorder_lease_seconds: Silence after which a recorder in a training job is taken to be gone.
    """

    store: StoreSettings
    secret: bytes = field(repr=False)
    api_key: str | None = field(default=None, repr=False)
    threads: int = THREADS
    rates: RateLimits = RateLimits()
    origins: tuple[str, ...] = ()
    https: bool = False
    oidc: OidcSettings | None = None
    most_queued: int = MOST_QUEUED
    most_limits: Mapping[str, int] = field(default_factory=lambda: {name: limit.most for name, limit in LIMITS.items()})
    tenant_threads: int = MOST_AT_WORK
    recorder_lease_seconds: float = LEASE_SECONDS

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, home: Path | None = None) -> Settings:
        """Read the environment; makes the home and the secret in it where they are missing.

        Raises:
            OSError, sqlalchemy.exc.DBAPIError: as of `server_secret`.
            ValueError: as of `StoreSettings`, `server_secret`, `RateLimits`, `OidcSettings`; a wrong
                BACKPROBE_CORS_ORIGINS, BACKPROBE_MOST_QUEUED, BACKPROBE_MOST_* of a limit, BACKPROBE_TENANT_THREADS or
                BACKPROBE_RECORDER_LEASE_SECONDS.
        """
        store = StoreSettings.from_environment(environ, home)
        store.make_home()
        return cls(
            store=store,
            secret=server_secret(store),
            api_key=environ.get("BACKPROBE_API_KEY") or None,
            rates=RateLimits.from_environment(environ),
            origins=_origins(environ.get("BACKPROBE_CORS_ORIGINS", "")),
            https=environ.get("BACKPROBE_HTTPS") == "1",
            oidc=OidcSettings.from_environment(environ),
            most_queued=_most_queued(environ.get("BACKPROBE_MOST_QUEUED") or str(MOST_QUEUED)),
            most_limits={name: _most_of_limit(limit, environ) for name, limit in LIMITS.items()},
            tenant_threads=_tenant_threads(environ.get("BACKPROBE_TENANT_THREADS") or str(MOST_AT_WORK)),
            recorder_lease_seconds=_lease(environ.get("BACKPROBE_RECORDER_LEASE_SECONDS") or f"{LEASE_SECONDS:.0f}"),
        )


def _most_queued(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise ValueError(f"BACKPROBE_MOST_QUEUED is {text!r}; it must be a number of runs, such as {MOST_QUEUED}")
    return int(text)


def _most_of_limit(limit: Limit, environ: Mapping[str, str]) -> int:
    text = environ.get(variable := LIMIT_VARIABLE.format(limit.name.upper())) or str(limit.most)
    if not (text.isascii() and text.isdigit() and len(text) < 15 and limit.least <= int(text) <= limit.most):
        raise ValueError(f"{variable} is {text!r}; it must be a whole number from {limit.least} to {limit.most}")
    return int(text)


def _tenant_threads(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= THREADS):
        raise ValueError(f"BACKPROBE_TENANT_THREADS is {text!r}; it must be a number of threads, from 1 to {THREADS}")
    return int(text)


def _lease(text: str) -> float:
    least, most = LEASES
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise ValueError(
            f"BACKPROBE_RECORDER_LEASE_SECONDS is {text!r}; it must be whole seconds, from {least} to {most}"
        )
    return float(text)


def _origins(text: str) -> tuple[str, ...]:
    """The origins in a list with commas.

    Raises:
        ValueError: one is none; `*` is none: every page in the browser of whoever can reach the server could ask.
    """
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for one in found:
        if _ORIGIN.fullmatch(one) is None:
            raise ValueError(
                f"BACKPROBE_CORS_ORIGINS has {one!r}; an origin is like https://ide.example or http://[::1]:80"
            )
    return found


def children_environment(store: StoreSettings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What `serve` gives its children: its own environment, the same home and URLs, without keys: they need none."""
    secrets = {"BACKPROBE_API_KEY", "BACKPROBE_OIDC_CLIENT_SECRET"}
    kept = {name: value for name, value in environ.items() if name not in secrets}
    return {
        **kept,
        "BACKPROBE_HOME": str(store.home),
        "BACKPROBE_DATABASE_URL": store.database_url,
        "BACKPROBE_BROKER_URL": store.broker_url,
    }
