"""The page `/sign-in`: a person pastes an API key and gets the cookie of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Blueprint, make_response, redirect, render_template, request
from pydantic import Field

from service.auth.browser_session import START, begin_session, key_mark, local_path
from service.auth.caller import key_holder
from service.context import context
from service.web.body import Strict, query
from service.web.parameters import Address

if TYPE_CHECKING:
    from flask import Response
    from werkzeug.wrappers import Response as Redirect

blueprint = Blueprint("key_form", __name__)


class SignInQuery(Strict):
    """Where the sign-in leads."""

    next: Address = Field(default=START, description="A path of this service.")


@blueprint.get("/sign-in")
@query(SignInQuery)
def show_sign_in(query: SignInQuery) -> Response | Redirect:
    """Show the form; a service that asks for no key leads on."""
    if context().settings.is_open:
        return redirect(local_path(query.next))
    return _render_form(query.next, 200)


@blueprint.post("/sign-in")
@query(SignInQuery)
def sign_in(query: SignInQuery) -> Response | Redirect:
    """Begin a session for the key of the form."""
    settings = context().settings
    if settings.is_open:
        return redirect(local_path(query.next))
    sent = request.form.get("key", "").strip()
    found = key_holder(sent, settings)
    if found is None:
        return _render_form(query.next, 401, "empty" if not sent else "wrong")
    context().rates.check(found, "reads")
    begin_session(key=key_mark(found, settings))
    return redirect(local_path(query.next), 303)


def _render_form(onward: str, status: int, fault: str = "") -> Response:
    page = render_template("sign_in.html", onward=onward, fault=fault, by_provider=context().settings.oidc is not None)
    answer = make_response(page, status)
    answer.headers["Cache-Control"] = "no-store"
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="Backprobe"'
    return answer
