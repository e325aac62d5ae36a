"""What clients send: the schemas of bodies and parameters. They stop at the view function."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator
from pydantic_core import PydanticCustomError

from service.api.body import Int, Strict
from service.snippet import MOST_FILES, path_fault
from store.limits import LIMITS, Limit

DEVICES: Final = {"cpu": "cpu", "cuda": "gpu"}
"""Devices, and the queue whose workers have them."""

Level = Literal["none", "process", "namespace", "gvisor"]
Queue = Literal["cpu", "gpu"]
Tier = Literal["state", "grad", "full", "deep"]
Status = Literal["queued", "running", "succeeded", "failed", "exceeded", "canceled", "lost"]
FindingLevel = Literal["error", "warning", "note"]
Confidence = Literal["proven", "likely", "heuristic"]


def _path(value: str) -> str:
    if fault := path_fault(value):
        raise ValueError(fault.removesuffix("."))
    return value


def _printable(value: str) -> str:
    if not value.isprintable():
        message = "Only printable characters are taken here"
        raise ValueError(message)
    return value


Path = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_path)]
Short = Annotated[str, Field(max_length=200), AfterValidator(_printable)]


class File(Strict):
    """One file of a snippet."""

    path: Path = Field(description="Relative, POSIX, without `..`.")
    text: str = Field(description="Its text; at most 1,048,576 characters.")


class Capture(Strict):
    """How much is recorded."""

    tier: Tier = Field(default="full", description="state < grad < full < deep.")


def _limit(limit: Limit) -> tuple[Any, Any]:
    """The field of one limit: a refusal names both ends of its range."""

    def within(value: int) -> int:
        if not limit.least <= value <= limit.most:
            message = "{name} takes {least} to {most} ({unit})"
            told = {"name": limit.name, "least": limit.least, "most": limit.most, "unit": limit.unit}
            raise PydanticCustomError("out_of_range", message, told)
        return value

    kind: Any = Annotated[Int, AfterValidator(within)]
    text = f"{limit.unit}; default {limit.default}."
    return kind | None, Field(
        default=None, description=text, json_schema_extra={"minimum": limit.least, "maximum": limit.most}
    )


Limits: Final = create_model(
    "LimitsAsked",
    __base__=Strict,
    __doc__="Limits of the run; one that is not named takes its default. Outside least and most is refused.",
    **{name: _limit(limit) for name, limit in LIMITS.items()},  # type: ignore[call-overload] from LIMITS
)


class RunAsked(Strict):
    """A snippet to run: exactly one of `source` and `files`."""

    PROGRAM = re.compile(r"#/source|#/files/\d+/text")

    source: str | None = Field(default=None, description="A program of one file, called snippet.py.")
    files: Annotated[list[File], Field(min_length=1, max_length=MOST_FILES)] | None = Field(
        default=None, description="A program of several files; `entry` is started, the others can be imported."
    )
    entry: Path | None = Field(default=None, description="Which of `files` to start; needed if there are several.")
    arguments: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=256)] = Field(
        default_factory=list, description="`sys.argv[1:]`."
    )
    device: str = Field(default="cpu", max_length=64, description="cpu or cuda.")
    queue: Queue | None = Field(default=None, description="Derived from `device` if it is not given.")
    device_class: Annotated[Short, Field(min_length=1)] | None = Field(
        default=None, description="A kind of device that only some workers have."
    )
    isolation: Level = Field(
        default="none",
        description="The least level accepted: none < process < namespace < gvisor. `limits.processes` above 1 asks for"
        " namespace; so does `limits.disk_bytes` above 0, where better than none is offered.",
    )
    limits: Limits = Field(default_factory=Limits)  # type: ignore[valid-type] made above
    capture: Capture = Field(default_factory=Capture)
    seed: Annotated[Int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="Given to torch.manual_seed before the program starts."
    )
    priority: Annotated[Int, Field(ge=0, le=9)] = Field(default=5, description="0 is first, 9 last.")
    labels: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")], Short],
        Field(max_length=32),
    ] = Field(default_factory=dict, description="Your own words for this run; shown, and never interpreted.")

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if (self.source is None) == (self.files is None):
            message = "Give exactly one of `source` and `files`"
            raise ValueError(message)
        if self.source is not None and self.entry is not None:
            message = "`entry` names one of `files`; a single `source` starts by itself"
            raise ValueError(message)
        return self


class Nothing(Strict):
    """A body without fields; it may be left out."""


def _digits(value: object) -> object:
    plain = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19
    return int(value) if plain else value  # type: ignore[arg-type] `plain` says that it is one


def _boolean(value: object) -> object:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _listed(value: object) -> object:
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

Flag = Annotated[bool, BeforeValidator(_boolean, json_schema_input_type=bool)]
Split = BeforeValidator(_listed, json_schema_input_type=list[str])
"""Several values of a parameter, joined by commas: any of them."""

Time = Annotated[datetime.datetime, BeforeValidator(_time, json_schema_input_type=str)]
PageSize = Annotated[Whole, Field(ge=1, le=1000)]
Cursor = Annotated[str, Field(min_length=1, max_length=512)]


class Page(Strict):
    """How much of a list, and from where."""

    limit: PageSize = Field(default=100, description="Items of one page.")
    cursor: Cursor | None = Field(default=None, description="`next_cursor` of the page before.")

    def filters(self) -> dict[str, Any]:
        """What decides which items are in the list: a cursor is bound to it."""
        return self.model_dump(exclude={"limit", "cursor", "format"}, exclude_none=True)


class Included(Strict):
    """What else to answer with a run."""

    include: Annotated[list[Literal["findings", "tensors"]], Split, Field(max_length=2)] = Field(
        default_factory=list, description="findings, tensors: the first 100 of each, in `included`."
    )
