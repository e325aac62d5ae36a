"""`GET /v1/compare`: what is different between two runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from backprobe.rules.framework.finding import with_fingerprints
from backprobe.show.operation_comparison import first_difference
from backprobe.show.run_comparison import align, diffs, fingerprints_as_called, lines_of, same_files, tensors_json
from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.responses.comparison import Comparison
from service.web.body import Strict, query
from service.web.reply import json_reply
from store import queries
from store.findings import findings
from store.queries.history import alignment as aligned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flask import Response

    from backprobe.show.run_comparison import PlacedTensor
    from store.database.session import Transaction
    from store.findings.findings import FindingRow
    from store.runs.model import RunRow

blueprint = Operations("compare", __name__, tag="Runs")

MOST_TENSORS: Final = 20_000
"""Of either run: at that many the answer takes about a second."""

MOST_OPERATIONS: Final = 50_000
"""Of either run: the first of them are compared."""

MOST_FINDINGS: Final = 2_000
MOST_LISTED: Final = 500
"""Items of each list in the answer; the counts beside them are whole."""

RunId = Annotated[str, Field(pattern="^run_[0-7][0-9A-HJKMNP-TV-Z]{25}$")]


class CompareQuery(Strict):
    """Which two runs."""

    a: RunId = Field(description="The run before.")
    b: RunId = Field(description="The run after.")


@blueprint.get("/v1/compare")
@query(CompareQuery)
@answers(
    {200: Answer(text="What differs.", model=Comparison)},
    problems=("not-found", "run-not-ended", "record-expired", "too-much-asked"),
)
def compare_runs(query: CompareQuery) -> Response:
    """Two runs beside each other: findings that are new or fixed, tensors whose state changed, the source's diff.

    Operations are compared in their order, the first 50,000: equal are those with the same function, shapes and dtypes.
    Tensors are aligned by fqn, else by module call, function, name and line text; those without a partner are listed.
    A norm has changed if it differs by more than a thousandth. A file that was renamed is known by its text.
    """
    return json_reply(queries.as_json(comparison(query.a, query.b)))


def comparison(a: str, b: str) -> dict[str, Any]:
    """Compare two runs, as `Comparison` describes it; ids, counts, and at most 500 of each list.

    Raises:
        Problem: one is not there, not ended or not kept; or there is too much.
    """
    with context().database.read() as transaction:
        runs = [_load_ended_run(transaction, name, public_id) for name, public_id in (("a", a), ("b", b))]
        texts = [aligned.texts(transaction, run) for run in runs]
        tensors = [_tensors(transaction, run) for run in runs]
        operations = _compare_operations(transaction, runs)
        called = same_files(lines_of(texts[0]), lines_of(texts[1]))
        found = [_findings(transaction, run, names) for run, names in zip(runs, ({}, called), strict=True)]
    both = align(tensors[0], tensors[1], lines_of(texts[0]), lines_of(texts[1]))
    return {
        "a": runs[0].id,
        "b": runs[1].id,
        "findings": _compare_findings(found[0], found[1]),
        "tensors": tensors_json(both, MOST_LISTED),
        "operations": operations,
        "source": diffs(texts[0], texts[1]),
    }


def _load_ended_run(transaction: Transaction, parameter: str, public_id: str) -> RunRow:
    run = require_record(run_of(transaction, public_id))
    if not run.ended:
        detail = f"Run {run.id} is {run.status}."
        place = Place(parameter=parameter, code="run-not-ended", detail=detail)
        raise Problem("run-not-ended", detail, places=(place,))
    return run


def _tensors(transaction: Transaction, run: RunRow) -> tuple[PlacedTensor, ...]:
    found = aligned.placed_tensors(transaction, run, limit=MOST_TENSORS + 1)
    if len(found) > MOST_TENSORS:
        detail = f"Run {run.id} has more than {MOST_TENSORS:,} tensors with a name; so many are not compared."
        raise Problem("too-much-asked", detail)
    return found


def _compare_operations(transaction: Transaction, runs: list[RunRow]) -> dict[str, Any]:
    in_a, in_b = (aligned.count_operations(transaction, run) for run in runs)
    rows = (aligned.placed_operations(transaction, run, limit=MOST_OPERATIONS) for run in runs)
    return {
        "in_a": in_a,
        "in_b": in_b,
        "compared": min(max(in_a, in_b), MOST_OPERATIONS),
        "first": first_difference(*rows),
    }


def _findings(transaction: Transaction, run: RunRow, called: Mapping[str, str]) -> dict[str, FindingRow]:
    page = findings.page(transaction, run, suppressed=False, limit=MOST_FINDINGS)
    if page.next is not None:
        raise Problem("too-much-asked", f"Run {run.id} has more than {MOST_FINDINGS:,} findings.")
    if called:
        names = fingerprints_as_called((row.finding for row in page.items), called)
        return dict(zip(names, page.items, strict=True))
    if run.unnamed is None:
        return {row.finding.fingerprint: row for row in page.items}
    # an unnamed program is known by its very content, which is what differs here
    found = with_fingerprints(row.finding for row in page.items)
    return {finding.fingerprint: row for finding, row in zip(found, page.items, strict=True)}


def _compare_findings(a: dict[str, FindingRow], b: dict[str, FindingRow]) -> dict[str, Any]:
    new = [row for name, row in b.items() if name not in a]
    fixed = [row for name, row in a.items() if name not in b]
    return {
        "new": len(new),
        "fixed": len(fixed),
        "same": len(a) - len(fixed),
        "in_b": [row.json() for row in new[:MOST_LISTED]],
        "in_a": [row.json() for row in fixed[:MOST_LISTED]],
    }
