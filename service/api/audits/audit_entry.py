"""Items of an audit on their way in: looked at one by one, then stored with the runs that they begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.api.runs.isolation_offer import least_for
from service.api.runs.submission import program_of, queue_of, submission_of
from service.auth.caller import caller
from service.problems.errors import LONGEST_DETAIL, Problem
from service.program_checks import file_name
from store.audits import audit_uploads
from store.audits.audits import NewItem
from store.runs import lifecycle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backprobe.isolation import IsolationLevel
    from service.program_checks import Snippet
    from service.schemas.audit_requests import ItemAsked
    from store.access.projects import Project
    from store.database.session import Transaction
    from store.runs.model import Queue
    from store.runs.submission import QueuedCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An item that was looked at: to be run, one that was run, or refused with a problem.

    Attributes:
        name: Its `custom_id`; None: it gave none that can be read.
        asked: None: it could not be read.
    """

    name: str | None
    asked: ItemAsked | None = None
    program: Snippet | None = None
    queue: Queue = "cpu"
    least: IsolationLevel = "none"
    problem: dict[str, Any] | None = None


def looked_at(asked: ItemAsked) -> Entry:
    """Everything that can be said of an item before anything is stored."""
    if asked.run is not None:
        return Entry(name=asked.custom_id, asked=asked)
    try:
        queue, program = queue_of(asked), program_of(_name_source(asked))
        least = least_for(asked, queue)
    except Problem as error:
        return Entry(name=asked.custom_id, asked=asked, problem=problem_json(error))
    return Entry(name=asked.custom_id, asked=asked, program=program, queue=queue, least=least)


def _name_source(asked: ItemAsked) -> ItemAsked:
    """Name the file of an item's `source` like the item, unless it has an entry."""
    if asked.source is None or asked.entry is not None:
        return asked
    return asked.model_copy(update={"entry": file_name(asked.custom_id, asked.source)})


def problem_json(error: Problem) -> dict[str, Any]:
    """Return the problem of a refused item as JSON."""
    places = [place.as_json() for place in error.places]
    return {"code": error.code, "detail": error.detail[:LONGEST_DETAIL], "errors": places}


def known_runs(transaction: Transaction, entries: Sequence[Entry]) -> dict[str, int]:
    """Numbers of the runs that items name and the caller sees."""
    asking = caller()
    named = {entry.asked.run for entry in entries if entry.asked is not None and entry.asked.run is not None}
    return audit_uploads.numbers(transaction, named, tenant_id=asking.tenant_id, project_id=asking.project_id)


def item_of(
    transaction: Transaction, entry: Entry, place: Project, known: dict[str, int], counted: QueuedCounts
) -> NewItem:
    """Queue the run of an item; return the item to be stored.

    Raises:
        QuotaExceeded: the tenant may queue no more; nothing was written.
    """
    if entry.problem is not None or entry.asked is None:
        return NewItem(custom_id=entry.name, problem=entry.problem)
    if entry.program is None:
        number = known.get(str(entry.asked.run))
        if number is not None:
            return NewItem(custom_id=entry.name, run_id=number, known=True)
        missing = Problem("not-found", f"There is no run {str(entry.asked.run)[:40]}.")
        return NewItem(custom_id=entry.name, problem=problem_json(missing))
    submission = submission_of(entry.asked, entry.program, entry.queue, entry.least, place, custom_id=entry.name)
    return NewItem(custom_id=entry.name, run_id=lifecycle.enqueue(transaction, submission, counted).number)
