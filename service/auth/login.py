"""People log in with their browser, by OpenID Connect; programs have keys.

The authorization code flow with PKCE, state and nonce is Authlib's. What it hands over is believed only if the issuer
is the one that was configured, the address is verified, and it is among those let in. The id token is signed by a
private key: the algorithms for that are fixed here, and what the provider's metadata names adds none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from flask import Blueprint, redirect, session
from pydantic import Field

from service.auth.browser_session import START, begin_session, local_path
from service.context import context
from service.problems.errors import Problem
from service.web.body import Strict, query
from service.web.parameters import Address

if TYPE_CHECKING:
    from flask import Flask
    from werkzeug.wrappers import Response as Redirect

    from service.auth.oidc_settings import OidcSettings
    from service.settings import Settings

blueprint = Blueprint("login", __name__)

PROVIDER_SECONDS: Final = 10
"""For each answer of the provider."""

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA",
)  # fmt: skip
"""Of an id token's signature (RFC 7518, RFC 8037): never `none`, nor HMAC, by whose key whoever checks could sign."""

_EXTENSION: Final = "backprobe.oidc"


class LoginQuery(Strict):
    """Where to after it."""

    next: Address = Field(default=START, description="A path of this service.")


def register(app: Flask, settings: Settings) -> None:
    """Install the login where a provider is configured.

    Raises:
        ModuleNotFoundError: a provider is configured and Authlib is not installed.
    """
    oidc = settings.oidc
    if oidc is None:
        return
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
    session["next"] = local_path(query.next)
    try:
        return _provider().authorize_redirect(f"{oidc.url}/login/callback")
    except Exception as error:
        raise _build_login_problem(error) from error


@blueprint.get("/login/callback")
def callback() -> Redirect:
    """Come back from the provider with a code, which buys the id token."""
    oidc = _oidc()
    try:
        told = _provider().authorize_access_token()
        named = _provider().load_server_metadata().get("issuer")
    except Exception as error:
        raise _build_login_problem(error) from error
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
    onward = local_path(session.get("next", START))
    begin_session(email=email)
    return redirect(onward)


def _build_login_problem(error: Exception) -> Problem:
    """Describe an error between service and provider, without the provider's texts, which are a stranger's."""
    away = isinstance(error, OSError)  # of requests: no connection, no answer in time, a status that is none
    code = "provider-away" if away else "login-failed"
    return Problem(code, f"The login was not completed: {type(error).__name__}.")
