"""`GET /v1/runs/{run}/ranks`: the ranks of a distributed job beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.api.runs.run_json import run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.web.reply import json_reply
from store import queries
from store.queries.ranks import RankComparison, ranks

if TYPE_CHECKING:
    from flask import Response

    from store.runs.model import RunRow

blueprint = Operations("ranks", __name__, tag="Runs")


@blueprint.get("/v1/runs/<run>/ranks")
@answers({200: Answer(text="The ranks of its job.", model=RankComparison)}, problems=("not-found",))
def compare_ranks(run: str) -> Response:
    """The ranks of the job that this run is one of: how far each is, what differs first, what only some of them have.

    Runs are ranks of one job whose labels `group`, `world_size` and `restart` are equal, as recorders set them
    (`ranks="all"`), and that began within 15 minutes. What has come of a job that goes on is compared as it stands.
    """
    return json_reply(queries.as_json(comparison(run)[1]))


def comparison(run: str) -> tuple[RunRow, RankComparison]:
    """Load a run, and the ranks of its job.

    Raises:
        Problem: there is no such run, or it is no rank of a job.
    """
    with context().database.read() as transaction:
        row = run_of(transaction, run)
        found = ranks(transaction, row)
    if found is None:
        raise Problem("not-found", f"Run {row.id} is no rank of a job: it lacks the labels group, rank and world_size.")
    return row, found
