"""Forms of the admin pages: what was typed is checked as a body of the API is, and shown again if it is wrong."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from flask import render_template, request

from service.auth.caller import caller
from service.dashboard import words
from service.problems.errors import Place, Problem
from service.web.body import Strict, parse_json

Model = TypeVar("Model", bound=Strict)


def read_form(model: type[Model], fields: dict[str, Any]) -> Model:
    """Return the fields of a form as a body of the API.

    Raises:
        Problem: `invalid-request`, with a pointer to each wrong field.
    """
    return parse_json(json.dumps(fields).encode(), model, "The form")


def to_number(text: str) -> int | str | None:
    """Return the number of a text field; None: it is empty; a text that is no number, which the schema refuses."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


def check_typed(*names: str) -> None:
    """Require that the form's field `typed` repeats one of these names, as it is or as a page shows it.

    Raises:
        Problem: `invalid-request`.
    """
    typed = request.form.get("typed", "").strip()
    if not typed or typed not in {text.strip() for name in names for text in (name, words.name(name))}:
        detail = "What was typed is not the name. Nothing was changed."
        raise Problem("invalid-request", detail, places=(Place(pointer="#/typed", code="wrong-name", detail=detail),))


def check_form_etag(what: str, etag: str) -> None:
    """Require that the form was opened at the state with this etag; the form has it in the hidden field `etag`.

    Raises:
        Problem: `stale`.
    """
    if request.form.get("etag") != etag:
        raise Problem("stale", f"The {what} was changed after this form was opened. Nothing was saved.")


def etag_to_show(etag: str, fault: Problem | None) -> str:
    """Return the etag for a form; one that is shown again with what was typed keeps the etag that it was opened with.

    Args:
        etag: Of the state now.
        fault: Why the form is shown again; None: it is opened.
    """
    return etag if fault is None else request.form.get("etag", "")


def render_admin(template: str, **facts: Any) -> str:
    """Render an admin page with the links to the others that the caller may open."""
    asked = caller()
    sections = [("/admin", "Overview")]
    if asked.may("keys:write") and asked.project is None:
        sections.append(("/admin/keys", "Keys"))
    sections.append(("/admin/projects", "Projects"))
    if asked.may("admin") and asked.operates:
        sections.append(("/admin/tenants", "Tenants"))
    if asked.may("admin") and asked.project is None:
        sections.append(("/admin/audit-log", "Audit log"))
    return render_template(f"admin/{template}", sections=sections, **facts)
