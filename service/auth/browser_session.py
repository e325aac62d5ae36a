"""The signed cookie of a browser in which a person has signed in, by an identity provider or with an API key.

1. The cookie is HttpOnly and SameSite=Lax, over HTTPS also Secure and `__Host-`, and lasts twelve hours. It is made new
   at each sign-in, so a cookie that was planted before is worth nothing.
2. It names the key and does not hold it. Each request looks the key up again: a key that has expired or was revoked
   opens nothing in a browser either.
3. A sign-out is stored: a copy of the cookie opens nothing.
4. A write with the cookie needs the token of the session in `X-CSRF-Token` (a page's form: `csrf`), besides the check
   of its Origin that every write passes.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from flask import Blueprint, abort, g, redirect, request, session

from service.auth.caller import SERVER, Caller, caller, of_key
from service.context import context
from service.problems.errors import Problem
from service.web.parameters import LONGEST_ADDRESS
from store.access import keys, logins

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response as Redirect

    from service.auth.oidc_settings import OidcSettings
    from service.settings import Settings

blueprint = Blueprint("browser_session", __name__)

LIFETIME_SECONDS: Final = 12 * 3600
CSRF_HEADER: Final = "X-CSRF-Token"
START: Final = "/runs"
"""Where a sign-in leads that was not asked for by a page."""

SIGN_IN: Final = "/sign-in"
LOGIN: Final = "/login"
OPEN: Final = frozenset({SIGN_IN, LOGIN, f"{LOGIN}/callback"})
"""Paths that need no key."""

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def register(app: Flask, settings: Settings) -> None:
    """Set up the cookie where a key or a login is demanded; every page may ask for `person` either way."""
    app.context_processor(lambda: {"person": _describe_person(), "may": _may})
    if settings.is_open:
        return
    is_secure = settings.https or (settings.oidc is not None and settings.oidc.secure)
    app.secret_key = hmac.digest(settings.secret, b"backprobe session", "sha256")
    app.config.update(
        SESSION_COOKIE_NAME="__Host-backprobe" if is_secure else "backprobe",
        SESSION_COOKIE_SECURE=is_secure,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=LIFETIME_SECONDS,
    )
    app.register_blueprint(blueprint)


def begin_session(**who: str) -> None:
    """Replace this browser's session by a new one of a person (`email`) or a key (`key`)."""
    session.clear()
    session.permanent = True
    session.update(**who, login=secrets.token_urlsafe(16), csrf=secrets.token_urlsafe(32))


def key_mark(found: Caller, settings: Settings) -> str:
    """Return what a session keeps of a key: its id; of BACKPROBE_API_KEY a digest, which another key does not have."""
    return str(found.key) if found.key is not None else _server_mark(settings)


def _server_mark(settings: Settings) -> str:
    return f"server:{hmac.digest(settings.secret, b'sign-in ' + (settings.api_key or '').encode(), 'sha256').hex()}"


def find_person(settings: Settings) -> Caller | None:
    """Return who has signed in with this browser and may still use the service; None: nobody.

    Raises:
        Problem: `csrf-token-needed`, of a write without the session's token.
    """
    found = None if _is_signed_out() else _caller_of_session(settings)
    token = session.get("csrf")
    if found is not None and request.method not in _SAFE:
        sent = request.headers.get(CSRF_HEADER) or request.form.get("csrf", "")
        if not isinstance(token, str) or not hmac.compare_digest(sent.encode(), token.encode()):
            raise Problem("csrf-token-needed", f"This write came with a cookie and without its {CSRF_HEADER}.")
    if found is None or not isinstance(token, str):  # without a token no form could be sent: the person signs in again
        session.clear()
        return None
    return replace(found, login=str(session["login"]))


def _caller_of_session(settings: Settings) -> Caller | None:
    mark = session.get("key")
    if mark is None:
        return None if settings.oidc is None else _caller_of_email(settings.oidc)
    if hmac.compare_digest(str(mark).encode(), _server_mark(settings).encode()):
        return None if settings.api_key is None else SERVER
    if not str(mark).isdecimal():
        return None
    with context().database.read() as transaction:
        found = keys.find_by_number(transaction, int(mark))
    return None if found is None else of_key(found)


def _caller_of_email(oidc: OidcSettings) -> Caller | None:
    """Return the person who has logged in by the provider; None: the operator does not allow this address any more."""
    email = session.get("email")
    if not isinstance(email, str) or not oidc.lets_in(email):
        return None
    return Caller(actor=f"user:{email}", scopes=frozenset(oidc.scopes))


def _is_signed_out() -> bool:
    """Return whether the person has signed out, in this browser or in the one whose cookie was copied."""
    login = session.get("login")
    if not isinstance(login, str):
        return True
    with context().database.read() as transaction:
        return logins.has_ended(transaction, login)


def ask_for_sign_in(settings: Settings) -> None:
    """Redirect a browser that wants a page to the sign-in, which leads back to the page; do nothing for other clients.

    A service with an identity provider sends people there.
    """
    if (
        request.method in _SAFE
        and not request.path.startswith("/v1")
        and "text/html" in request.headers.get("Accept", "")
    ):
        way = SIGN_IN if settings.oidc is None else LOGIN
        asked = request.query_string.decode(errors="replace")
        onward = local_path(f"{quote(request.path)}?{asked}" if asked else quote(request.path))
        abort(redirect(f"{way}?{urlencode({'next': onward})}"))


def local_path(path: str) -> str:
    """Return the path if it leads to a page of this service, else the list of runs: no link may lead elsewhere.

    A path that a sign-in would refuse as too long leads to the list of runs, too.
    """
    fine = (
        path.startswith("/")
        and len(path) <= LONGEST_ADDRESS
        and not path.startswith(("//", "/\\", LOGIN, SIGN_IN))
        and path.isprintable()
        and "\\" not in path
    )
    return path if fine else START


def _describe_person() -> dict[str, str] | None:
    """Return name and token of the person who has signed in, for the head of a page."""
    found: Caller | None = g.get("caller")
    if found is None or found.login is None:
        return None
    return {"name": found.actor.removeprefix("user:"), "csrf": session["csrf"]}


def _may(scope: str) -> bool:
    """Return whether the caller has the scope; an error page can come before the caller is known."""
    found: Caller | None = g.get("caller")
    return found is not None and found.may(scope)


@blueprint.post("/logout")
def log_out() -> Redirect:
    """End the session of this browser, and of every copy of its cookie."""
    way = SIGN_IN if context().settings.oidc is None or "key" in session else LOGIN
    login = session.get("login")
    if isinstance(login, str):
        with context().database.begin() as transaction:
            logins.end(transaction, login, caller().actor, kept_seconds=LIFETIME_SECONDS)
    session.clear()
    return redirect(way)
