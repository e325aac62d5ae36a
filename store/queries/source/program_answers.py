"""What questions about the program and its run answer: values whose fields are the names of the API's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backprobe.record.rows.tensors import Grad
from store.queries.tensors.tensor_answers import WhyNoneRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LineBinding:
    """A name that a line bound: how often, and the tensor it got last, with that one's last state."""

    name: str
    times: int
    tensor: int
    shape: tuple[int, ...] | None
    dtype: str
    is_leaf: bool | None
    requires_grad: bool | None
    retains_grad: bool | None
    grad_fn: str | None
    grad: Grad | None
    why_none: WhyNoneRow | None
    grad_norm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """One line of a file and what happened on it.

    Attributes:
        passes: How often one of its statements was passed. saved_bytes: by the nodes born on it, freed or not.
        held_bytes: Of those, what was neither freed nor gone, of nodes that a backward call had met.
        backward_calls: Numbers. findings: public ids.
    """

    line: int
    text: str
    bindings: tuple[LineBinding, ...]
    passes: int
    backward_calls: tuple[int, ...]
    saved_bytes: int
    held_bytes: int
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of the snippet, line by line. files: every path of the snippet, the entry first."""

    path: str
    files: tuple[str, ...]
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """The end of what was printed, and how many bytes there were in all."""

    tail: str
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionRow:
    """An exception of the program; `caught`: the program went on. frames: innermost last."""

    type: str
    message: str
    path: str | None
    line: int | None
    caught: bool
    backward_call: int | None
    frames: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarningRow:
    """A warning that the program's filters showed."""

    category: str
    message: str
    path: str
    line: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """What a run printed, raised and warned of. A stranger's text: escape it."""

    stdout: StreamRow
    stderr: StreamRow
    exceptions: tuple[ExceptionRow, ...]
    warnings: tuple[WarningRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One attempt at a run; `outcome` None: it is still at it."""

    attempt: int
    worker: str
    started_at: str
    ended_at: str | None
    outcome: str | None
    detail: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Something that happened to a run; `seq` counts from 1."""

    seq: int
    at: str
    kind: str
    attempt: int | None
    payload: Mapping[str, Any]
