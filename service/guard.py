"""Who may ask, and what every answer carries.

1. Without a key the server answers to loopback names only: a page of evil.example that resolves to 127.0.0.1 still
   sends its own name as Host (DNS rebinding).
2. A write that a browser makes for another site's page is refused by its Origin, with or without a key.
3. Every answer, an error too, carries its request id and the headers that keep a stranger's text from being run.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from flask import g, request

from service.address import is_loopback
from service.caller import LOCAL, SERVER, demand, holder
from service.errors import Problem

if TYPE_CHECKING:
    from apiflask import APIFlask
    from flask import Response

    from service.caller import Caller
    from service.settings import Settings

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")
"""Name or address, and port; anything else (`user@name`, half a bracket) is no host of ours."""

_OPEN: Final = frozenset({"/healthz", "/readyz"})
"""Asked by health checks that hold no key; they tell nothing about anyone's runs."""

_FOR_ALL: Final = frozenset({"static", "openapi.spec", "pages.problem", "keys.get_me"})
"""Endpoints for every key, whatever it may do: what they tell is of nobody, or of the caller."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_POLICY_DATA: Final = "default-src 'none'; frame-ancestors 'none'"
_POLICY_PAGE: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def _check_host() -> None:
    host = request.headers.get("Host", "")
    found = _HOST.fullmatch(host)
    if found is None or not is_loopback(found[1]):
        raise Problem("foreign-host", f"The Host header says {host[:100]!r}, which is not a loopback name.")


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _check_origin() -> None:
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site")
    foreign = origin is not None and _place(origin) != request.host
    if foreign or site not in {None, "same-origin", "none"}:
        raise Problem("foreign-origin", "This write came from a page of another origin.")


def _caller(settings: Settings) -> Caller:
    """Who asks.

    Raises:
        Problem: `unauthenticated`; `foreign-host` of a server that demands no key.
    """
    given = request.authorization
    if given is None and settings.api_key is None:
        _check_host()
        return LOCAL
    offered = ""
    if given is not None and given.type == "bearer":
        offered = given.token or ""
    elif given is not None and given.type == "basic":
        offered = given.password or ""
    if settings.api_key is not None and hmac.compare_digest(offered.encode(), settings.api_key.encode()):
        return SERVER
    if (found := holder(offered)) is not None:
        return found
    if settings.api_key is None:
        _check_host()
    page = not request.path.startswith("/v1") and "text/html" in request.headers.get("Accept", "")
    scheme = 'Basic realm="Backprobe", charset="UTF-8"' if page else 'Bearer realm="Backprobe"'
    said = "No key was sent." if given is None else "That key is not this server's."
    raise Problem("unauthenticated", said, headers={"WWW-Authenticate": scheme})


def _check_scope(app: APIFlask) -> None:
    """What a view declares is demanded; a page, which declares nothing, is read."""
    view = app.view_functions.get(request.endpoint or "")
    if view is None or request.endpoint in _FOR_ALL:
        return
    declared = getattr(view, "operation", None)
    demand("read" if declared is None else declared.scope)


def register(app: APIFlask, settings: Settings) -> None:
    """Install the checks before, and the headers after, every request."""

    @app.before_request
    def _check() -> None:
        asked = request.headers.get("X-Request-Id", "")
        g.request_id = asked if _REQUEST_ID.fullmatch(asked) else f"req_{secrets.token_hex(8)}"
        if request.path in _OPEN:
            return
        g.caller = _caller(settings)
        if request.method not in _SAFE:
            _check_origin()
        _check_scope(app)

    @app.after_request
    def _headers(response: Response) -> Response:
        page = response.mimetype == "text/html"
        response.headers["X-Request-Id"] = g.get("request_id", "")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Content-Security-Policy"] = _POLICY_PAGE if page else _POLICY_DATA
        response.headers["Referrer-Policy"] = "same-origin" if page else "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers.setdefault("Cache-Control", "no-cache")
        return response
