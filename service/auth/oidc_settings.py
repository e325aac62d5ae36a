"""Who may log in by OpenID Connect: BACKPROBE_OIDC_*, read once into a frozen value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from service.process.address import is_loopback
from store.database.environment_variables import describe_variable

if TYPE_CHECKING:
    from collections.abc import Mapping

SCOPES: Final = ("read", "runs:write", "findings:write")
"""What a person may do who has logged in, unless BACKPROBE_OIDC_SCOPES says otherwise."""

KNOWN: Final = frozenset({*SCOPES, "audits:write", "webhooks:write", "keys:write", "metrics", "admin"})
_WHO: Final = re.compile(r"@[a-z0-9.-]+\.[a-z0-9-]+|[^@\s,]+@[a-z0-9.-]+\.[a-z0-9-]+")
_NAMES: Final = ("ISSUER", "CLIENT_ID", "CLIENT_SECRET", "URL", "ALLOWED")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """An identity provider, and who may log in by it.

    The metadata of a field names its environment variable and says what it means.

    Attributes:
        url: Without a path. The redirect URI is `URL/login/callback`.
        allowed: In lower case.
    """

    issuer: str = field(
        metadata=describe_variable(
            "BACKPROBE_OIDC_ISSUER",
            "the provider, as its own metadata names it: `https://id.example/realm`",
            "unset: people log in with the key",
        )
    )
    client_id: str = field(
        metadata=describe_variable("BACKPROBE_OIDC_CLIENT_ID", "the id of the client that is registered there", "")
    )
    client_secret: str = field(
        repr=False,
        metadata=describe_variable("BACKPROBE_OIDC_CLIENT_SECRET", "its secret; workers do not get it", ""),
    )
    url: str = field(
        metadata=describe_variable(
            "BACKPROBE_OIDC_URL",
            "this service as a browser sees it: `https://backprobe.example`; https, except on loopback",
            "",
        )
    )
    allowed: tuple[str, ...] = field(
        metadata=describe_variable(
            "BACKPROBE_OIDC_ALLOWED",
            "who may log in: whole domains or single addresses, `@example.org,bob@other.example`; the provider must "
            "mark the address as verified",
            "",
        )
    )
    scopes: tuple[str, ...] = field(
        default=SCOPES,
        metadata=describe_variable("BACKPROBE_OIDC_SCOPES", "what these people may do, in the first tenant"),
    )

    @property
    def secure(self) -> bool:
        """The service is reached by https: its cookie is sent by nothing else."""
        return self.url.startswith("https://")

    def lets_in(self, email: str) -> bool:
        """Return whether this address, or its whole domain, is allowed."""
        address = email.lower()
        return address in self.allowed or f"@{address.rpartition('@')[2]}" in self.allowed

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> OidcSettings | None:
        """Read the variables of the fields; None: none of them is set.

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
                f"BACKPROBE_OIDC_URL is {_hide_password(url)!r}; it ends after the host: https://backprobe.example"
            )
        allowed = tuple(part.strip().lower() for part in given["ALLOWED"].split(",") if part.strip())
        for pattern in allowed:
            if _WHO.fullmatch(pattern) is None:
                raise ValueError(f"BACKPROBE_OIDC_ALLOWED has {pattern!r}; take ann@example.org or @example.org")
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
    """Require an https URL; plain http is allowed on loopback, to try it out.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(text)
    plain = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or not (parts.scheme == "https" or plain) or parts.query or parts.fragment:
        raise ValueError(f"{name} is {_hide_password(text)!r}; it is an https:// URL (http:// on loopback only)")


def _hide_password(url: str) -> str:
    """Return the URL without what may be a password in it."""
    return re.sub(r"//[^/]*@", "//...@", url)
