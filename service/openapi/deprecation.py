"""Operations on their way out: marked where they are declared, told in the document and in each answer.

Within v1 an operation goes only after it was announced for six months. `Deprecation` is RFC 9745's, the
moment since which it is discouraged; `Sunset` is RFC 8594's, the moment from which it may be gone. Who still asks is
counted by caller in the database, a small write for each such request; `backprobe key deprecated` tells the operator.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from flask import current_app, g, request

from service.context import context
from store.access import deprecated_uses as counted
from store.database.session import is_unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Response

F = TypeVar("F", bound="Callable[..., Any]")
LEAST_DAYS: Final = 182
"""Between the announcement and the end: six months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecated:
    """Since when an operation is discouraged, from when it may be gone, and the path that takes its place.

    Raises:
        ValueError: less than six months lie between the two days.
    """

    since: datetime.date
    sunset: datetime.date
    instead: str

    def __post_init__(self) -> None:
        if (self.sunset - self.since).days < LEAST_DAYS:
            raise ValueError(
                f"an operation stays {LEAST_DAYS} days after it was announced to go, not until {self.sunset}"
            )

    @property
    def headers(self) -> dict[str, str]:
        """Of every answer."""
        since, sunset = (
            datetime.datetime.combine(day, datetime.time(), datetime.UTC) for day in (self.since, self.sunset)
        )
        return {
            "Deprecation": f"@{int(since.timestamp())}",
            "Sunset": format_datetime(sunset, usegmt=True),
            "Link": f'<{self.instead}>; rel="successor-version"',
        }


def mark_deprecated(*, since: datetime.date, sunset: datetime.date, instead: str) -> Callable[[F], F]:
    """Mark a view, outside of all its other decorators but its route."""
    told = Deprecated(since=since, sunset=sunset, instead=instead)

    def decorate(view: F) -> F:
        view.deprecated = told  # type: ignore[attr-defined] for the document and the headers
        return view

    return decorate


def describe(view: Any, operation: dict[str, Any]) -> None:
    """Say it in the operation of the document."""
    told: Deprecated | None = getattr(view, "deprecated", None)
    if told is None:
        return
    operation["deprecated"] = True
    said = f"Deprecated since {told.since}; gone from {told.sunset} on. Use {told.instead}."
    operation["description"] = f"{operation.get('description', '')}\n\n{said}".strip()
    for response in operation["responses"].values():
        for name in told.headers:
            response.setdefault("headers", {})[name] = {"schema": {"type": "string"}}


def tell(response: Response) -> None:
    """Say it in the answer that is on its way, and count who asked; nobody is counted who was not let in."""
    told: Deprecated | None = getattr(current_app.view_functions.get(request.endpoint or ""), "deprecated", None)
    if told is None or request.url_rule is None:
        return
    if "caller" in g:
        _count(f"{request.method} {request.url_rule.rule}")
    for name, value in told.headers.items():
        response.headers.add(name, value)


def _count(operation: str) -> None:
    """Count a call of a deprecated operation. An unavailable database is ignored: the view itself reports it."""
    try:
        with context().database.begin() as transaction:
            counted.count(transaction, g.caller.actor, operation, tenant_id=g.caller.tenant_id)
    except Exception as error:
        if not is_unavailable(error):
            raise
