"""Who may log in by OpenID Connect: BACKPROBE_OIDC_*, read once into a frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from service.process.address import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

SCOPES: Final = ("read", "runs:write", "findings:write")
"""What a person may do who has logged in, unless BACKPROBE_OIDC_SCOPES says otherwise."""

KNOWN: Final = frozenset({*SCOPES, "audits:write", "webhooks:write", "keys:write", "metrics", "admin"})
_WHO: Final = re.compile(r"@[a-z0-9.-]+\.[a-z0-9-]+|[^@\s,]+@[a-z0-9.-]+\.[a-z0-9-]+")
_NAMES: Final = ("ISSUER", "CLIENT_ID", "CLIENT_SECRET", "URL", "ALLOWED")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An identity provider, and whom it may let in.

    Attributes:
        issuer: URL of the provider, as its own metadata names it.
        url: Of this service, as a browser sees it, without a path: it ends in the redirect URI `URL/login/callback`.
        allowed: Addresses of people, and whole domains as `@example.org`; in lower case.
        scopes: What those may do, in the first tenant.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    url: str
    allowed: tuple[str, ...]
    scopes: tuple[str, ...] = SCOPES

    @property
    def secure(self) -> bool:
        """The service is reached by https: its cookie is sent by nothing else."""
        return self.url.startswith("https://")

    def lets_in(self, email: str) -> bool:
        """This address, or its whole domain, is among the allowed."""
        address = email.lower()
        return address in self.allowed or f"@{address.rpartition('@')[2]}" in self.allowed

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> OidcSettings | None:
        """Read BACKPROBE_OIDC_ISSUER, _CLIENT_ID, _CLIENT_SECRET, _URL, _ALLOWED and _SCOPES; None: none is set.

        Raises:
            ValueError: one is missing, or says what cannot be followed.
        """
        given = {name: environ.get(f"BACKPROBE_OIDC_{name}", "").strip() for name in (*_NAMES, "SCOPES")}
        if not any(given.values()):
            return None
        if missing := [f"BACKPROBE_OIDC_{name}" for name in _NAMES if not given[name]]:
            raise ValueError(f"login by OpenID Connect needs {', '.join(missing)} too")
        for name in ("ISSUER", "URL"):
            _check_url(f"BACKPROBE_OIDC_{name}", given[name])
        url = given["URL"].rstrip("/")
        if urlsplit(url).path:
            raise ValueError(
                f"BACKPROBE_OIDC_URL is {_shown(url)!r}; it ends after the host: https://backprobe.example"
            )
        allowed = tuple(part.strip().lower() for part in given["ALLOWED"].split(",") if part.strip())
        for one in allowed:
            if _WHO.fullmatch(one) is None:
                raise ValueError(f"BACKPROBE_OIDC_ALLOWED has {one!r}; take ann@example.org or @example.org")
        scopes = tuple(part.strip() for part in given["SCOPES"].split(",") if part.strip()) or SCOPES
        if unknown := sorted(set(scopes) - KNOWN):
            raise ValueError(f"BACKPROBE_OIDC_SCOPES has {unknown[0]!r}; there are {', '.join(sorted(KNOWN))}")
        return cls(
            issuer=given["ISSUER"],
            client_id=given["CLIENT_ID"],
            client_secret=given["CLIENT_SECRET"],
            url=url,
            allowed=allowed,
            scopes=scopes,
        )


def _check_url(name: str, text: str) -> None:
    """An https URL; plain http on loopback only, for trying it out.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(text)
    plain = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or not (parts.scheme == "https" or plain) or parts.query or parts.fragment:
        raise ValueError(f"{name} is {_shown(text)!r}; it is an https:// URL (http:// on loopback only)")


def _shown(url: str) -> str:
    """The URL without what may be a password in it."""
    return re.sub(r"//[^/]*@", "//...@", url)
