"""The index of the API: where its collections and its description are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flask import current_app

from backprobe import __version__
from service.api.records.record import NoQuery
from service.openapi.document import Answer, Operations, answers
from service.schemas.responses.operation import ApiIndex
from service.web.body import query
from service.web.reply import json_reply

if TYPE_CHECKING:
    from flask import Response

blueprint = Operations("api_index", __name__, tag="Operation")

ROOT: Final = "/v1"


@blueprint.get(ROOT)
@query(NoQuery)
@answers({200: Answer(text="The addresses that need no id.", model=ApiIndex)})
def get_index() -> Response:
    """List what can be read without an id, and where the API is described."""
    below = f"{ROOT}/"
    readable = sorted(
        rule.rule.removeprefix(below)
        for rule in current_app.url_map.iter_rules()
        if rule.rule.startswith(below) and not rule.arguments and "GET" in (rule.methods or ())
    )
    links = {"openapi": "/openapi.json", "reference": "/docs/api", **{name: f"{below}{name}" for name in readable}}
    return json_reply({"version": __version__, "links": links})
