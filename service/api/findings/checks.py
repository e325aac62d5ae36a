"""The state of each invariant of a run: what holds, what is broken, and what cannot be known."""

from __future__ import annotations

from flask import Response

from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.web.reply import SAME, cache_headers, json_reply, not_modified
from store import queries
from store.queries.checks import Checks, load_checks

blueprint = Operations("checks", __name__, tag="Findings")


@blueprint.get("/v1/runs/<run>/checks")
@answers(
    {200: Answer(text="The invariants, in order of their codes.", model=Checks, headers=("ETag",)), 304: SAME},
    problems=("record-expired",),
    headers=("If-None-Match",),
)
def list_checks(run: str) -> Response:
    """Does each of the eight invariants hold in the run, is it broken, or can it not be known, and why?

    A run that an older version judged has none: `POST /v1/runs/{run}/judge` has it judged again.
    """
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        if same := not_modified(row):
            return same
        found = load_checks(transaction, row)
    return json_reply(queries.as_json(found), headers=cache_headers(row))
