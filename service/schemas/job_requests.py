"""What recorders send to begin a run and to end it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from backprobe.record.record import Tier
from service.schemas.requests import Labels, ProjectId, Short
from service.web.body import Int, Strict
from store.recorders.recorders import MOST_FRAMES

_MOST_INTEGER: Final = 2**31 - 1


class RecorderCapture(Strict):
    """How much is recorded."""

    tier: Tier = Field(default="full", description="state < grad < full < deep.")
    every: Annotated[Int, Field(ge=1, le=_MOST_INTEGER)] = Field(
        default=1, description="N: each N-th step is recorded."
    )


class RecorderAsked(Strict):
    """A run that a recorder is about to send."""

    project: ProjectId | None = Field(default=None, description="Default: the only one of the key, or the first.")
    labels: Labels = Field(default_factory=dict, description="Your own words for this run.")
    capture: RecorderCapture = Field(default_factory=RecorderCapture)
    environment: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")], Short], Field(max_length=32)
    ] = Field(default_factory=dict, description="Where the job runs: `torch`, `python`, `host`, ... text by name.")


class JobError(Strict):
    """What ended a job that failed."""

    type: Annotated[str, Field(max_length=200)] | None = Field(default=None, description="The exception's class.")
    message: Annotated[str, Field(max_length=4000)] = Field(default="", description="Its text.")
    path: Annotated[str, Field(max_length=1000)] | None = Field(default=None, description="Of the file that raised.")
    line: Annotated[Int, Field(ge=1, le=_MOST_INTEGER)] | None = Field(default=None, description="Its line, from 1.")


class JobEnded(Strict):
    """How a job ended. What is not given is read off the record's end frame."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"error": {"type": "null"}}},
                {"properties": {"status": {"const": "failed"}}, "required": ["status"]},
            ]
        }
    )

    status: Literal["succeeded", "failed", "canceled"] | None = Field(default=None)
    exit_code: Annotated[Int, Field(ge=-_MOST_INTEGER, le=_MOST_INTEGER)] | None = Field(default=None)
    wall_seconds: Annotated[float, Field(ge=0, le=1e9)] | None = Field(default=None, description="Of the job.")
    error: JobError | None = Field(default=None, description="Of a job that failed.")
    frames: Annotated[Int, Field(ge=0, le=MOST_FRAMES)] | None = Field(
        default=None, description="How many were sent: the end is refused while one of them has not come."
    )

    @model_validator(mode="after")
    def _check_error(self) -> Self:
        if self.error is not None and self.status != "failed":
            message = "`error` is of a job whose `status` is failed"
            raise ValueError(message)
        return self
