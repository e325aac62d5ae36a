"""What clients send to begin an audit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, model_validator

from backprobe.isolation import IsolationLevel
from service.schemas.requests import Capture, Labels, Limits, ProjectId, RulesAsked, RunAsked, Short, one_of_schema
from service.web.body import Int, Strict
from service.web.printable_text import describe_field
from store.runs.model import Queue

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_ITEMS: Final = 1000
_RUN: Final = r"^run_[0-7][0-9A-HJKMNP-TV-Z]{25}$"


CustomId = Annotated[Short, Field(min_length=1)]
PolicyId = Annotated[str, Field(pattern=r"^pol_[0-7][0-9A-HJKMNP-TV-Z]{25}$")]


class ItemName(Strict):
    """The name of an item, to be validated alone."""

    custom_id: CustomId


class ItemAsked(RunAsked):
    """An item of an audit: a snippet as in `POST /v1/runs`, or a run that is there."""

    model_config = ConfigDict(
        json_schema_extra=one_of_schema(source="string", files="array", snippet="string", run="string")
    )

    custom_id: CustomId = Field(
        description="Your name for it; unique in the audit. A `source` without `entry` is named by it."
    )
    project: Annotated[ProjectId | None, describe_field(anyOf=[{"type": "null"}])] = Field(
        default=None, description="Not here: an item goes where its audit goes."
    )
    run: Annotated[str, Field(pattern=_RUN)] | None = Field(default=None, description="A run that is there, by its id.")

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        given: Sequence[Any] = (self.source, self.files, self.snippet, self.run)
        if sum(member is not None for member in given) != 1:
            message = "Give exactly one of `source`, `files`, `snippet` and `run`"
            raise ValueError(message)
        if self.project is not None:
            message = "An item goes where its audit goes: `project` stands beside `items`, or in line 1"
            raise ValueError(message)
        if self.files is None and self.source is None and self.entry is not None:
            message = (
                "`entry` names one of `files`, or the file of `source`; a `snippet` and a `run` know where they start"
            )
            raise ValueError(message)
        return self


class DefaultsAsked(Strict):
    """What holds for the items that do not say otherwise; read by `model_fields_set`."""

    device: str = Field(default="cpu", max_length=64, description="cpu or cuda.")
    queue: Queue | None = None
    isolation: IsolationLevel = Field(default="none", description="The least level accepted.")
    limits: Limits = Field(default_factory=Limits)
    capture: Capture = Field(default_factory=Capture)
    seed: Annotated[Int, Field(ge=0, le=2**63 - 1)] | None = None
    rules: RulesAsked | None = None
    priority: Annotated[Int, Field(ge=0, le=9)] = Field(default=5, description="0 is first, 9 last.")
    labels: Labels = Field(default_factory=dict)


class AuditHead(Strict):
    """What holds for an audit as a whole: line 1 of NDJSON."""

    name: Annotated[Short, Field(min_length=1, max_length=100)] = Field(default="audit", description="For people.")
    policy: PolicyId | None = Field(
        default=None, description="Its newest revision judges; not given: findings of level error fail."
    )
    baseline: Annotated[str, Field(pattern=r"^aud_[0-7][0-9A-HJKMNP-TV-Z]{25}$")] | None = Field(
        default=None, description="An audit whose findings are known."
    )
    project: ProjectId | None = Field(default=None, description="As in `POST /v1/runs`.")
    labels: Labels = Field(default_factory=dict, description="Your own words for it.")
    defaults: DefaultsAsked = Field(default_factory=DefaultsAsked, description="For items that do not say otherwise.")

    def whole(self, item: ItemAsked) -> ItemAsked:
        """Return an item with the defaults of what it does not state."""
        given = self.defaults.model_fields_set - item.model_fields_set
        return item.model_copy(update={name: getattr(self.defaults, name) for name in given})


class AuditAsked(AuditHead):
    """Programs that are judged together."""

    PROGRAM = re.compile(r"#/items/\d+/(source|files/\d+/text)")

    items: Annotated[list[ItemAsked], Field(min_length=1, max_length=MOST_ITEMS)] = Field(
        description="What is run and judged; one that cannot be run is refused alone, with state `not-run`."
    )

    @model_validator(mode="after")
    def _one_name_each(self) -> Self:
        if len({item.custom_id for item in self.items}) != len(self.items):
            message = "Two of `items` have one `custom_id`"
            raise ValueError(message)
        return self
