"""People log in with their browser, by OpenID Connect; programs have keys.

1. The authorization code flow with PKCE, state and nonce is Authlib's. What it hands over is believed only if the
   issuer is the one that was configured, the address is verified, and it is among those let in. The id token is signed
   by a private key: the algorithms for that are fixed here, and what the provider's metadata names adds none.
2. Who has logged in is in a signed cookie: `__Host-`, HttpOnly, SameSite=Lax, for twelve hours. It is made new at each
   login, so none that was planted before is worth anything. A logout is stored: a copy of its cookie opens nothing.
3. A write with the cookie needs the token of the session in `X-CSRF-Token` (a page's form: `csrf`), besides the check
   of its Origin that every write passes.
"""

from __future__ import annotations

import hmac
import secrets
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from flask import Blueprint, abort, redirect, request, session
from pydantic import Field

from service.auth.caller import Caller, caller
from service.context import context
from service.problems.errors import Problem
from service.web.body import Strict, query
from store.access import logins

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response as Redirect

    from service.auth.oidc_settings import OidcSettings
    from service.settings import Settings

blueprint = Blueprint("login", __name__)

LIFETIME_SECONDS: Final = 12 * 3600
PROVIDER_SECONDS: Final = 10
"""For each answer of the provider."""

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA",
)  # fmt: skip
"""Of an id token's signature (RFC 7518, RFC 8037): never `none`, nor HMAC, by whose key whoever checks could sign."""

OPEN: Final = frozenset({"/login", "/login/callback"})
CSRF_HEADER: Final = "X-CSRF-Token"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_EXTENSION: Final = "backprobe.oidc"


class LoginQuery(Strict):
    """Where to after it."""

    next: Annotated[str, Field(max_length=2000)] = Field(default="/runs", description="A path of this service.")


def register(app: Flask, settings: Settings) -> None:
    """Install the login where a provider is configured; every page may ask for `person` either way.

    Raises:
        ModuleNotFoundError: a provider is configured and Authlib is not installed.
    """
    oidc = settings.oidc
    app.context_processor(lambda: {"person": None if oidc is None else _shown(oidc)})
    if oidc is None:
        return
    app.secret_key = hmac.digest(settings.secret, b"backprobe session", "sha256")
    app.config.update(
        SESSION_COOKIE_NAME="__Host-backprobe" if oidc.secure else "backprobe",
        SESSION_COOKIE_SECURE=oidc.secure,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=LIFETIME_SECONDS,
    )
    authlib: Any = import_module("authlib.integrations.flask_client")
    app.extensions[_EXTENSION] = authlib.OAuth(app).register(
        "oidc",
        client_cls=_client(authlib),
        client_id=oidc.client_id,
        client_secret=oidc.client_secret,
        server_metadata_url=f"{oidc.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid email",
            "code_challenge_method": "S256",
            "default_timeout": PROVIDER_SECONDS,
        },
    )
    app.register_blueprint(blueprint)


def _client(authlib: Any) -> Any:
    """Authlib's client, which takes the algorithms of an id token from the provider's metadata, with ours there."""

    class Client(authlib.FlaskOAuth2App):
        def load_server_metadata(self) -> dict[str, Any]:
            return {**super().load_server_metadata(), "id_token_signing_alg_values_supported": list(ALGORITHMS)}

    return Client


def person(oidc: OidcSettings) -> Caller | None:
    """Who has logged in with this browser, and may still; None: nobody.

    Raises:
        Problem: `csrf-token-needed`, of a write without the session's token.
    """
    email = _email(oidc)
    if email is None or _over():
        session.clear()
        return None
    if request.method not in _SAFE:
        sent = request.headers.get(CSRF_HEADER) or request.form.get("csrf", "")
        if not hmac.compare_digest(sent.encode(), str(session["csrf"]).encode()):
            raise Problem("csrf-token-needed", f"This write came with a cookie and without its {CSRF_HEADER}.")
    return Caller(actor=f"user:{email}", scopes=frozenset(oidc.scopes), login=str(session["login"]))


def _email(oidc: OidcSettings) -> str | None:
    """Of whoever has logged in; whom the operator lets in no more has not."""
    email = session.get("email")
    return email if isinstance(email, str) and oidc.lets_in(email) else None


def _over() -> bool:
    """The person has logged out of it, in this browser or in the one that it was copied from."""
    login = session.get("login")
    if not isinstance(login, str):
        return True
    with context().database.read() as transaction:
        return logins.has_ended(transaction, login)


def ask_for_login() -> None:
    """Send a browser that wants a page to the login, and back to it afterwards; another client goes on."""
    if (
        request.method in _SAFE
        and not request.path.startswith("/v1")
        and "text/html" in request.headers.get("Accept", "")
    ):
        abort(redirect(f"/login?{urlencode({'next': request.full_path.rstrip('?')})}"))


def _shown(oidc: OidcSettings) -> dict[str, str] | None:
    """Who has logged in, for the head of a page."""
    email = _email(oidc)
    return None if email is None else {"name": email, "csrf": session["csrf"]}


def _oidc() -> OidcSettings:
    found = context().settings.oidc
    if found is None:
        raise Problem("not-found", "Nobody logs in here: no identity provider is configured.")
    return found


def _provider() -> Any:
    from flask import current_app

    return current_app.extensions[_EXTENSION]


@blueprint.get("/login")
@query(LoginQuery)
def login(query: LoginQuery) -> Redirect:
    """Go to the provider."""
    oidc = _oidc()
    session.clear()
    session["next"] = _local(query.next)
    try:
        return _provider().authorize_redirect(f"{oidc.url}/login/callback")
    except Exception as error:
        raise _failed(error) from error


@blueprint.get("/login/callback")
def callback() -> Redirect:
    """Come back from the provider with a code, which buys the id token."""
    oidc = _oidc()
    try:
        told = _provider().authorize_access_token()
        named = _provider().load_server_metadata().get("issuer")
    except Exception as error:
        raise _failed(error) from error
    claims = told.get("userinfo") or {}
    if named != oidc.issuer or claims.get("iss") != oidc.issuer:
        raise Problem(
            "login-failed", f"The provider calls itself {str(named)[:100]!r}, which is not the one configured."
        )
    email = claims.get("email")
    if (
        not isinstance(email, str)
        or len(email) > 200
        or not email.isprintable()
        or claims.get("email_verified") is not True
    ):
        raise Problem("login-refused", "The provider does not vouch for an e-mail address of yours.")
    if not oidc.lets_in(email):
        raise Problem("login-refused", f"{email} is not among those who are let in.")
    onward = _local(session.get("next", "/runs"))
    session.clear()
    session.permanent = True
    session.update(email=email, login=secrets.token_urlsafe(16), csrf=secrets.token_urlsafe(32))
    return redirect(onward)


@blueprint.post("/logout")
def logout() -> Redirect:
    """End the login of this browser, and of every copy of its cookie."""
    login = session.get("login")
    if isinstance(login, str):
        with context().database.begin() as transaction:
            logins.end(transaction, login, caller().actor, kept_seconds=LIFETIME_SECONDS)
    session.clear()
    return redirect("/login")


def _local(path: str) -> str:
    """The path if it leads to this service, else the list of runs: a link to /login must not lead elsewhere."""
    fine = (
        path.startswith("/")
        and not path.startswith(("//", "/\\", "/login"))
        and path.isprintable()
        and "\\" not in path
    )
    return path if fine else "/runs"


def _failed(error: Exception) -> Problem:
    """What went wrong between us and the provider; its texts are a stranger's, and are not repeated."""
    away = isinstance(error, OSError)  # of requests: no connection, no answer in time, a status that is none
    code = "provider-away" if away else "login-failed"
    return Problem(code, f"The login was not completed: {type(error).__name__}.")
