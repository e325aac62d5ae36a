"""Who may ask, and what every answer carries.

1. Without a key the server answers to loopback names only: a page of evil.example that resolves to 127.0.0.1 still
   sends its own name as Host (DNS rebinding).
2. A write that a browser makes for another site's page is refused by its Origin, with or without a key, unless the
   operator has listed that origin (`service.auth.origins`).
3. Every answer, an error too, carries its request id and the headers that keep a stranger's text from being run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from flask import g, request

from service.auth import browser_session, origins
from service.auth.caller import LOCAL, demand, key_holder
from service.auth.origins import is_listed, preflight
from service.context import context
from service.limits import rates
from service.limits.request_bodies import credentials
from service.limits.turns import HEALTH
from service.openapi import deprecation
from service.problems.errors import Problem
from service.process.address import is_loopback
from service.telemetry.request_log import bind_caller
from service.web import compression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flask import Flask, Response

    from service.auth.caller import Caller
    from service.settings import Settings

_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")
"""Name or address, and port; anything else (`user@name`, half a bracket) is not a valid host."""

_FOR_ALL: Final = frozenset({"static", "openapi.spec", "pages.problem", "keys.get_me"})
"""Endpoints for every key, whatever it may do: what they tell is of nobody, or of the caller."""

_NO_KEY: Final = "Send no Authorization header; for the command line and watched jobs, unset BACKPROBE_API_KEY."
"""What who sends a key to a service without one is to do."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})

HSTS: Final = "max-age=31536000"
"""A browser that has seen it asks by https only, for a year."""

INERT: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""What every answer carries; a page has another policy, for its styles and scripts."""

_POLICY_PAGE: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def _page_policy() -> str:
    """Return the policy of a page; one with an editor names the nonce of the styles that its script makes."""
    nonce = g.get("style_nonce")
    return _POLICY_PAGE if nonce is None else _POLICY_PAGE.replace("style-src", f"style-src 'nonce-{nonce}'", 1)


def _check_host() -> None:
    host = request.headers.get("Host", "")
    found = _HOST.fullmatch(host)
    if found is None or not is_loopback(found[1]):
        raise Problem("foreign-host", f"The Host header says {host[:100]!r}, which is not a loopback name.")


def _place(origin: str, *, https: bool) -> str | None:
    """Return host and port of an origin; None: it cannot be this service's, such as http with a service behind TLS."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc if parts.scheme == "https" or (parts.scheme == "http" and not https) else None


def _check_origin(listed: Sequence[str], *, https: bool) -> None:
    if is_listed(listed):
        return
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site")
    foreign = origin is not None and _place(origin, https=https) != request.host
    if foreign or site not in {None, "same-origin", "none"}:
        raise Problem("foreign-origin", "This write came from a page of another origin.")


def _caller(settings: Settings) -> Caller:
    """Return the caller of this request.

    Raises:
        Problem: `unauthenticated`; `foreign-host` of a server that demands no key.
    """
    given = request.authorization
    if given is not None and given.type == "bearer" and not given.token:
        given = None  # what a program sends whose variable for the key is not set
    if given is None and settings.is_open:
        _check_host()
        return LOCAL
    offered = ""
    if given is not None and given.type == "bearer":
        offered = given.token or ""
    elif given is not None and given.type == "basic":
        offered = given.password or ""
    if (found := key_holder(offered, settings)) is not None:
        return found
    if settings.is_open:
        _check_host()
    elif given is None or given.type == "basic":  # a browser goes on sending a password that it was given once
        if (found := browser_session.find_person(settings)) is not None:
            return found
        browser_session.ask_for_sign_in(settings)
    said, hint = "No key was sent." if given is None else "That key is not this server's.", None
    if settings.is_open:
        said, hint = "This service asks for no key, and does not know the one that was sent: leave it away.", _NO_KEY
    raise Problem("unauthenticated", said, hint=hint, headers={"WWW-Authenticate": 'Bearer realm="Backprobe"'})


def _check_rate(view: Any) -> None:
    if request.endpoint != "static":  # a page has many such files, and they cost nothing
        declared = getattr(view, "operation", None)
        context().rates.check(g.caller, "reads" if declared is None else declared.rate)


def _check_scope(view: Any) -> None:
    """Demand the scope that a view declares. A page declares none and demands `read`."""
    if view is None or request.endpoint in _FOR_ALL:
        return
    declared = getattr(view, "operation", None)
    demand("read" if declared is None else declared.scope)


def register(app: Flask, settings: Settings) -> None:
    """Install the checks before, and the headers after, every request."""

    @app.before_request
    def _check() -> Response | None:
        if request.path in HEALTH:
            return None
        if not settings.is_open and (request.path in browser_session.OPEN or request.endpoint == "static"):
            if request.method not in _SAFE:
                _check_origin(settings.origins, https=settings.https)
            return None
        if (allowed := preflight(settings.origins)) is not None:
            return allowed
        g.caller = _caller(settings)
        bind_caller(g.caller)
        if g.caller.key is not None:
            context().key_uses.note(g.caller.key)
        shown = credentials(request.headers.get("Authorization"), request.headers.get("Cookie"))
        if shown and g.caller.sharing is not None:
            context().senders.remember(shown, g.caller.sharing)
        view = app.view_functions.get(request.endpoint or "")
        _check_rate(view)
        if request.method not in _SAFE:
            _check_origin(settings.origins, https=settings.https)
        _check_scope(view)
        return None

    @app.after_request
    def _headers(response: Response) -> Response:
        page = response.mimetype == "text/html"
        response.headers["X-Request-Id"] = g.get("request_id", "")
        response.headers.update(INERT)
        if page:
            response.headers.update({"Content-Security-Policy": _page_policy(), "Referrer-Policy": "same-origin"})
        if settings.https:
            response.headers["Strict-Transport-Security"] = HSTS
        origins.tell(response, settings.origins)
        response.headers.setdefault("Cache-Control", "no-cache")
        rates.tell(response)
        deprecation.tell(response)
        compression.encode(response)
        return response
