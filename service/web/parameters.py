"""Parameters in addresses: text that becomes numbers, times and lists. They stop at the view function."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from service.web.body import Strict


def _digits(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value


def _boolean(value: object) -> object:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _split_list(value: object) -> object:
    return value.split(",") if isinstance(value, str) else value


def _time(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        at = datetime.datetime.fromisoformat(value)
        at = None if at.tzinfo is None else at.astimezone(datetime.UTC)
    except (ValueError, OverflowError):  # the latter: its offset leads before year 1
        at = None
    if at is None:
        message = "A time is ISO 8601 with its offset, like 2026-11-20T19:52:29.123Z"
        raise ValueError(message)
    return at


Whole = Annotated[int, BeforeValidator(_digits, json_schema_input_type=int)]
"""An integer of a parameter: digits."""


_DECIMAL: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")


def _decimal(value: object) -> object:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    return value


Measure = Annotated[float, BeforeValidator(_decimal, json_schema_input_type=float)]
"""A number of a parameter: decimal, with an exponent or not; finite."""

Flag = Annotated[bool, BeforeValidator(_boolean, json_schema_input_type=bool)]
Split = BeforeValidator(_split_list, json_schema_input_type=list[str])
"""Several values of a parameter, joined by commas: any of them."""

_SPAN: Final = r"^[1-9][0-9]{0,4}[mhdw]$"
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _check_span(value: object) -> object:
    if isinstance(value, str) and re.match(_SPAN, value) is None:
        message = "Write a number and a unit: 30m, 1h, 7d or 2w"
        raise ValueError(message)
    return value


Span = Annotated[str, BeforeValidator(_check_span, json_schema_input_type=str), Field(pattern=_SPAN)]
"""A length of time: a number of minutes, hours, days or weeks."""


def length_of_span(span: str) -> datetime.timedelta:
    """Return the length of a `Span`."""
    return datetime.timedelta(**{_UNITS[span[-1]]: int(span[:-1])})


Time = Annotated[datetime.datetime, BeforeValidator(_time, json_schema_input_type=datetime.datetime)]
LONGEST_ADDRESS: Final = 2000
Address = Annotated[str, Field(max_length=LONGEST_ADDRESS)]
"""A path with its query, which a sign-in leads back to."""

PageSize = Annotated[Whole, Field(ge=1, le=1000)]
Cursor = Annotated[str, Field(min_length=1, max_length=512, json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"})]


class Page(Strict):
    """How much of a list, and from where."""

    limit: PageSize = Field(default=100, description="Items of one page.")
    cursor: Cursor | None = Field(default=None, description="`next_cursor` of the page before.")

    def filters(self) -> dict[str, Any]:
        """Return what decides which items are in the list. A cursor is bound to it."""
        return self.model_dump(exclude={"limit", "cursor", "format", "include"}, exclude_none=True)


class Included(Strict):
    """What else to answer with a run."""

    include: Annotated[list[Literal["findings", "tensors", "source"]], Split, Field(min_length=1, max_length=3)] = (
        Field(
            default_factory=list,
            description="findings, tensors: the first 100 of each; source: the entry, line by line; in `included`.",
        )
    )
