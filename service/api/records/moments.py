"""A moment in a parameter: its number, or its kind and number, and the refusal of one that there is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from service.problems.errors import Place, Problem
from store import queries

if TYPE_CHECKING:
    from store.database.session import Transaction
    from store.runs.model import RunRow

At = Annotated[str, Field(pattern="^((before-backward|after-backward|optimizer-step|end):)?[0-9]{1,9}$")]
"""`12`, or `after-backward:0`."""


def moment_at(transaction: Transaction, run: RunRow, at: str) -> int:
    """Return the number of the moment that `at` names.

    Raises:
        Problem: `not-found`, naming the parameter.
    """
    found = queries.moment_named(transaction, run, at)
    if found is None:
        detail = f"Run {run.id} has no moment {at}; GET /v1/runs/{run.id}/moments lists them."
        raise Problem("not-found", detail, places=(Place(parameter="at", code="not-found", detail=detail),))
    return found
