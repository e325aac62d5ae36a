"""Metrics for Prometheus."""

from __future__ import annotations

from flask import Response

from service.api.records.record import NoQuery
from service.auth.caller import demand_operator
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.web.body import query

blueprint = Operations("metrics", __name__, tag="Operation")

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@blueprint.get("/metrics")
@query(NoQuery)
@answers(
    {200: Answer(text="In Prometheus's text format.", media={"text/plain": {"schema": {"type": "string"}}})},
    scope="metrics",
)
def get_metrics() -> Response:
    """Figures of the whole service, and of this process's answers. For a key of the first tenant."""
    demand_operator()
    return Response(context().metrics.render(), content_type=_TEXT, headers={"Cache-Control": "no-store"})
