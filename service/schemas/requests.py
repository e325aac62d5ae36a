"""What clients send: the schemas of bodies and parameters. They stop at the view function."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from backprobe.isolation import IsolationLevel
from backprobe.record.record import Tier
from backprobe.rules import BadOption, options_from
from backprobe.rules.framework.manual import every_rule
from backprobe.rules.framework.rule import Confidence, Level
from service.program_checks import MOST_FILES, path_fault
from service.web.body import Int, Strict
from service.web.printable_text import OTHERS, describe_field, is_printable
from store.runs.limits import LIMITS, Limit
from store.runs.model import Queue

DEVICES: Final = {"cpu": "cpu", "cuda": "gpu"}
"""Devices, and the queue whose workers have them."""


def _path(value: str) -> str:
    if fault := path_fault(value):
        raise ValueError(fault.removesuffix("."))
    return value


def _printable(value: str) -> str:
    if not is_printable(value):
        message = "Only printable characters are taken here"
        raise ValueError(message)
    return value


_PATH: Final = rf"^(?![^/]*:)(?!(?:.*/)?\.{{0,2}}(?:/|$))(?!(?:.*/)? )(?!.* (?:/|$))[^\\{OTHERS}]+$"
"""As `path_fault` has it: no `:` in the first part; no part is empty, `.` or `..`, or has a blank at either end."""

Path = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_path), describe_field(pattern=_PATH)]
Short = Annotated[str, Field(max_length=200), AfterValidator(_printable), describe_field(pattern=f"^[^{OTHERS}]*$")]

ProjectId = Annotated[str, Field(pattern=r"^prj_[A-Za-z0-9]{1,40}$")]
Labels = Annotated[dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")], Short], Field(max_length=32)]


class File(Strict):
    """One file of a snippet."""

    path: Path = Field(description="Relative, POSIX, without `..`.")
    text: str = Field(description="Its text; at most 1,048,576 characters.")


class Capture(Strict):
    """How much is recorded."""

    tier: Tier = Field(default="full", description="state < grad < full < deep.")
    every: Annotated[Int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None,
        description="N: each N-th training step is taken in full; null: all of a short program, of a long one the "
        "first 20, then 1-2-5 per decade.",
    )
    histograms: bool = Field(
        default=False, description="At each such step the elements of parameters and gradients are counted by size."
    )

    check: Literal["gradients"] | None = Field(
        default=None,
        description="gradients: the first and the third step are computed again in copies of the process, with one "
        "tensor moved in each, to say whether the gradients that they use are the derivatives of their loss. It needs "
        "isolation namespace with a cgroup for the run; elsewhere the rows say that it could not be done.",
    )

    def to_stored(self) -> dict[str, Any]:
        """Return the fields as a run stores them, without those that are None."""
        return self.model_dump(exclude_none=True)


def _limit(limit: Limit) -> tuple[Any, Any]:
    """Make the field of one limit. A refusal names both ends of its range."""

    def check_range(value: int) -> int:
        if not limit.least <= value <= limit.most:
            message = "{name} takes {least} to {most} ({unit})"
            told = {"name": limit.name, "least": limit.least, "most": limit.most, "unit": limit.unit}
            raise PydanticCustomError("out_of_range", message, told)
        return value

    kind: Any = Annotated[Int, AfterValidator(check_range)]
    text = f"{limit.unit}; default {limit.default}."
    return kind | None, Field(
        default=None, description=text, json_schema_extra={"minimum": limit.least, "maximum": limit.most}
    )


if TYPE_CHECKING:

    class Limits(Strict):
        """What a type checker sees of a model whose fields stand in a table."""

        def __getattr__(self, name: str) -> int | None: ...

else:
    Limits = create_model(
        "LimitsAsked",
        __base__=Strict,
        __doc__="Limits of the run; one that is not named takes its default. Outside least and most is refused.",
        **{name: _limit(limit) for name, limit in LIMITS.items()},
    )


def _settings(value: Any, told: ValidationInfo) -> Any:
    """Check a setting of judging as `[tool.backprobe]` is checked."""
    try:
        options_from({str(told.field_name): value}, every_rule())
    except BadOption as error:
        message = str(error).replace("{", "(").replace("}", ")")
        raise PydanticCustomError("bad_option", "{why}", {"why": message}) from None
    return value


Name = Annotated[str, Field(min_length=1, max_length=100)]
Names = Annotated[list[Name], Field(max_length=500)]


class RulesAsked(Strict):
    """Which rules judge, and how: as in `[tool.backprobe]` of pyproject.toml."""

    select: Names = Field(
        default_factory=list, description="These rules only: names, codes or beginnings of codes (BP3). Default: all."
    )
    ignore: Names = Field(default_factory=list, description="These rules not.")
    severity: Annotated[dict[Name, Level], Field(max_length=500)] = Field(
        default_factory=dict,
        description="A level by rule, in place of the rule's default; an exception stays an error.",
    )
    per_file_ignores: Annotated[dict[Name, Names], Field(max_length=100)] = Field(
        default_factory=dict, description="Rules by a pattern of paths (`tests/*`): findings there are left out."
    )
    thresholds: Annotated[dict[Name, float], Field(max_length=500)] = Field(
        default_factory=dict, description="Numbers of heuristic rules, by `rule-name.threshold`."
    )
    min_confidence: Confidence = Field(default="heuristic", description="Findings less sure than this are left out.")

    _known = field_validator("*", mode="after")(_settings)


class SnippetAsked(Strict):
    """A program to be kept, so that runs can name it."""

    PROGRAM = re.compile(r"#/files/\d+/text")

    files: Annotated[list[File], Field(min_length=1, max_length=MOST_FILES)] = Field(
        description="A program of one file or several."
    )
    entry: Path | None = Field(
        default=None,
        description="Which of `files` is started, or a module among them, which is run as by `python -m`; needed if"
        " there are several.",
    )


def one_of_schema(**kinds: str) -> Any:
    """Build a JSON schema for `model_config`: exactly one of these fields is given, of its type; the others are null.

    One file of `files` alone is a program, so it has some text; of several one is the `entry`.
    """
    none = {name: {"type": "null"} for name in kinds}
    branches: list[dict[str, Any]] = []
    for name, kind in kinds.items():
        alone = {"required": [name], "properties": {**none, name: {"type": kind}}}
        if name == "files":
            text = {"properties": {"text": {"minLength": 1}}}
            single, several = {"type": kind, "maxItems": 1, "items": text}, {"type": kind, "minItems": 2}
            branches.append({"required": [name], "properties": {**none, name: single}})
            entry = {"type": "string"}
            alone = {"required": [name, "entry"], "properties": {**none, name: several, "entry": entry}}
        branches.append(alone)
    return {"oneOf": branches}


class RunAsked(Strict):
    """A snippet to run: exactly one of `source`, `files` and `snippet`."""

    PROGRAM = re.compile(r"#/source|#/files/\d+/text")

    model_config = ConfigDict(json_schema_extra=one_of_schema(source="string", files="array", snippet="string"))

    source: Annotated[str, describe_field(minLength=1)] | None = Field(
        default=None, description="A program of one file; `entry` is its name."
    )
    files: Annotated[list[File], Field(min_length=1, max_length=MOST_FILES)] | None = Field(
        default=None,
        description="A program of several files; `entry` is started, and all lie in its working directory.",
    )
    entry: Path | None = Field(
        default=None,
        description="Which of `files` to start, or a module among them, which is run as by `python -m`; needed if there"
        " are several. With `source`: the name of its file; without, it is shown as unnamed, its path is snippet.py.",
    )
    snippet: Annotated[str, Field(pattern=r"^snp_[0-7][0-9A-HJKMNP-TV-Z]{25}$")] | None = Field(
        default=None, description="A program that was sent before, by its id."
    )
    arguments: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=256)] = Field(
        default_factory=list, description="`sys.argv[1:]`."
    )
    device: Annotated[str, describe_field(enum=list(DEVICES))] = Field(
        default="cpu", max_length=64, description="cpu or cuda."
    )
    queue: Queue | None = Field(default=None, description="Derived from `device` if it is not given.")
    device_class: Annotated[Short, Field(min_length=1)] | None = Field(
        default=None,
        description="A kind of device that a live worker of the queue offers, as `GET /v1/workers` names it.",
    )
    isolation: IsolationLevel = Field(
        default="none",
        description="The least level accepted: none < process < namespace < gvisor. `limits.processes` above 1 asks for"
        " namespace; so does `limits.disk_bytes` above 0, where better than none is offered.",
    )
    limits: Limits = Field(default_factory=Limits)
    capture: Capture = Field(default_factory=Capture)
    seed: Annotated[Int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="Given to torch.manual_seed before the program starts."
    )
    rules: RulesAsked | None = Field(
        default=None, description="Which rules judge, and how; the project's, if not given."
    )
    priority: Annotated[Int, Field(ge=0, le=9)] = Field(default=5, description="0 is first, 9 last.")
    labels: Labels = Field(
        default_factory=dict, description="Your own words for this run; shown, and never interpreted."
    )
    project: ProjectId | None = Field(
        default=None, description="Where it belongs; if not given, the key's project, or the tenant's first."
    )

    @model_validator(mode="after")
    def _one_program(self) -> Self:
        if sum(given is not None for given in (self.source, self.files, self.snippet)) != 1:
            message = "Give exactly one of `source`, `files` and `snippet`"
            raise ValueError(message)
        if self.snippet is not None and self.entry is not None:
            message = "`entry` names one of `files`, or the file of `source`; a `snippet` knows where it starts"
            raise ValueError(message)
        return self


class RerunAsked(Strict):
    """What is to be other than it was; the rest of the run is repeated."""

    queue: Queue | None = Field(default=None, description="cpu or gpu; as it was if it is not given.")
    isolation: IsolationLevel | None = Field(
        default=None, description="The least level accepted; as it was if not given."
    )
    limits: Limits = Field(default_factory=Limits, description="Only those named are other than they were.")
    capture: Capture | None = Field(default=None, description="As it was if it is not given.")
    seed: Annotated[Int, Field(ge=0, le=2**63 - 1)] | None = Field(
        default=None, description="`null`: no seed is set; not given: as it was."
    )
    rules: RulesAsked | None = Field(default=None, description="`null`: all rules; not given: as it was.")


class TrialAsked(Strict):
    """Which fix of a finding is to be tried."""

    fix: Annotated[Int, Field(ge=0, le=99)] | None = Field(
        default=None, description="From 0, as the finding lists them; not given: the first one that has edits."
    )


class RunChanged(Strict):
    """What is to change of a run; what is not given stays. Read by `model_fields_set`: the defaults mean nothing."""

    labels: Labels = Field(default_factory=dict, description="Replaces all of its labels.")
    pinned: bool = Field(default_factory=bool, description="Its record is never expired.")
    kept_until: AwareDatetime = Field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC),
        description="Its record is kept till then, at most ten years ahead. A time that has passed: it may go now.",
    )


class Nothing(Strict):
    """A body without fields; it may be left out."""
