"""The most that a run may ask for: the operator's maxima, and the memory of the largest live worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.context import context
from service.problems.errors import Place, Problem
from store.access.worker_shares import shares_with_others
from store.runs.limits import LimitOutOfRange, Limits, tenant_memory_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.admin.workers import Offer
    from store.database.session import Transaction


def allowed_limits(asked: Mapping[str, int]) -> Limits:
    """Return the limits of a run that asks for these by name.

    Raises:
        Problem: `invalid-request`: one is above the operator's maximum, which the error names.
    """
    try:
        return Limits.from_request(asked, context().settings.most_limits)
    except LimitOutOfRange as error:
        detail = f"limits.{error.name} takes {error.least} to {error.most} here; {error.value} was asked for."
        raise _out_of_range(error.name, detail) from None


def repeated_limits(first: Mapping[str, int], asked: Mapping[str, int]) -> Limits:
    """Return the limits of a run that repeats another one: as that had them, lowered to the maxima that hold now.

    Raises:
        Problem: as `allowed_limits`, for a limit that is asked for now.
    """
    most = context().settings.most_limits
    kept = {name: min(value, most[name]) for name, value in Limits.from_stored(first).to_column().items()}
    return allowed_limits({**kept, **asked})


def demand_memory(transaction: Transaction, limits: Limits, offer: Offer, tenant_id: int) -> None:
    """Go on if the largest live worker has the memory that the limits promise; while none lives, that is not known.

    Raises:
        Problem: `invalid-request`: it has not, and the error names the most.
    """
    if offer.memory_bytes is None:
        return
    is_shared = shares_with_others(transaction, tenant_id)
    most = tenant_memory_bytes(offer.memory_bytes) if is_shared else offer.memory_bytes
    over = limits.promised_bytes - max(most, Limits().promised_bytes)
    if over > 0:
        name = "memory_bytes" if limits.memory_bytes > limits.disk_bytes else "disk_bytes"
        asked = getattr(limits, name)
        detail = (
            f"limits.{name} is {asked}. No live worker has the memory for that: with the other limits as they are, the"
            f" most is {max(0, asked - over)}."
        )
        raise _out_of_range(name, detail)


def _out_of_range(name: str, detail: str) -> Problem:
    place = Place(pointer=f"#/limits/{name}", code="out-of-range", detail=detail)
    return Problem("invalid-request", detail, places=(place,))
