"""Settings of the web process: the environment, read once into a frozen value."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from service.auth.oidc_settings import OidcSettings
from service.limits.turns import MOST_AT_WORK
from store.access.backlog import MOST_QUEUED
from store.access.secret import server_secret
from store.database.environment_variables import describe_variable
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
    """Requests in a minute. A submit creates work for a worker; every other request is a read.

    Attributes:
        url: None: each process counts for itself.
    """

    reads: int = field(
        default=600, metadata=describe_variable("BACKPROBE_RATE_READS", "reads of a key per minute; 0: no limit")
    )
    submits: int = field(
        default=60, metadata=describe_variable("BACKPROBE_RATE_SUBMITS", "submits of a key per minute; 0: no limit")
    )
    tenant_reads: int = field(
        default=6000,
        metadata=describe_variable(
            "BACKPROBE_RATE_TENANT_READS", "reads of all keys of a tenant per minute; 0: no limit"
        ),
    )
    tenant_submits: int = field(
        default=600,
        metadata=describe_variable(
            "BACKPROBE_RATE_TENANT_SUBMITS", "submits of all keys of a tenant per minute; 0: no limit"
        ),
    )
    url: str | None = field(
        default=None,
        repr=False,
        metadata=describe_variable(
            "BACKPROBE_RATE_URL",
            "a Redis in which all API processes count together (`pip install 'backprobe[redis]'`)",
        ),
    )

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> RateLimits:
        """Read the variables of the fields; an empty one is unset.

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

    The metadata of a field names its environment variable and says what it means.

    Attributes:
        store: Where database and broker are.
        secret: Signs cursors, hashes keys, makes the secrets of webhooks: BACKPROBE_SECRET, or the file of the home.
        api_key: None: the service listens on loopback only and asks for no key.
        threads: Threads of the server.
        oidc: None: people log in with the key only.
        most_limits: The most that a run may ask for, by the name of the limit (`LIMIT_VARIABLE`).
    """

    store: StoreSettings
    secret: bytes = field(repr=False)
    api_key: str | None = field(
        default=None,
        repr=False,
        metadata=describe_variable(
            "BACKPROBE_API_KEY",
            "the operator's key. Set: every request needs this key or a stored one, as a Bearer token; people paste "
            "it at `/sign-in`. Beyond loopback it needs 32 characters. Unset: the service listens on loopback only and "
            "asks for no key",
        ),
    )
    threads: int = THREADS
    rates: RateLimits = RateLimits()
    origins: tuple[str, ...] = field(
        default=(),
        metadata=describe_variable(
            "BACKPROBE_CORS_ORIGINS",
            "origins, separated by commas, whose pages may call the API: `https://ide.example`; `*` is refused",
            "none",
        ),
    )
    https: bool = field(
        default=False,
        metadata=describe_variable(
            "BACKPROBE_HTTPS",
            "`1`: a proxy in front speaks TLS, so answers have `Strict-Transport-Security` for a year",
            "unset",
        ),
    )
    oidc: OidcSettings | None = None
    most_queued: int = field(
        default=MOST_QUEUED,
        metadata=describe_variable(
            "BACKPROBE_MOST_QUEUED", "how many runs of all tenants together may wait in each queue, cpu and gpu"
        ),
    )
    most_limits: Mapping[str, int] = field(default_factory=lambda: {name: limit.most for name, limit in LIMITS.items()})
    tenant_threads: int = field(
        default=MOST_AT_WORK,
        metadata=describe_variable(
            "BACKPROBE_TENANT_THREADS",
            f"1 to {THREADS}: how many reads of a tenant may run at the same time in each API process while another "
            "tenant sends requests; of writes half as many, and at least one",
        ),
    )
    recorder_lease_seconds: float = field(
        default=LEASE_SECONDS,
        metadata=describe_variable(
            "BACKPROBE_RECORDER_LEASE_SECONDS",
            f"{LEASES[0]} to {LEASES[1]}: after so many seconds of silence the run of a recorder ends as lost",
        ),
    )

    @property
    def is_open(self) -> bool:
        """No key and no login is demanded: the service listens on loopback only."""
        return self.api_key is None and self.oidc is None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, home: Path | None = None) -> Settings:
        """Read the environment; create the home and its secret if they are missing.

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
    """Parse a list of origins with commas.

    Raises:
        ValueError: one is none; `*` is none: every page in the browser of whoever can reach the server could ask.
    """
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in found:
        if _ORIGIN.fullmatch(origin) is None:
            raise ValueError(
                f"BACKPROBE_CORS_ORIGINS has {origin!r}; an origin is like https://ide.example or http://[::1]:80"
            )
    return found


def children_environment(store: StoreSettings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of the children of `serve`: its own, with the same home and URLs, but without keys."""
    secrets = {"BACKPROBE_API_KEY", "BACKPROBE_OIDC_CLIENT_SECRET"}
    kept = {name: value for name, value in environ.items() if name not in secrets}
    return {
        **kept,
        "BACKPROBE_HOME": str(store.home),
        "BACKPROBE_DATABASE_URL": store.database_url,
        "BACKPROBE_BROKER_URL": store.broker_url,
    }
