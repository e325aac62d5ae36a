"""What the questions answer: values whose fields are the names of the API's JSON."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

GradState = Literal["none", "present", "not-read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCreated:
    """Where a tensor came from: by `op`, `user`, `library` or `unknown`; how: the op or call; proof: how that is known."""

    by: str
    how: str
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorState:
    """A tensor's last state; moment and kind say when it was taken."""

    moment: int
    kind: str
    is_leaf: bool
    requires_grad: bool
    retains_grad: bool
    grad_fn: str | None
    version: int | None
    grad: GradState
    held_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNoneRow:
    """Why a tensor has no gradient; `backward_call` and `line` decided it, where one did."""

    verdict: str
    line: int | None
    backward_call: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRow:
    """One tensor as lists show it.

    Attributes:
        name: The binding it is shown by: the last name it had; None: it never had one.
        state: None: no snapshot of it was taken.
        grad_norm, value_norm: Last ones measured; None: never. nonfinite: NaN and Inf ever seen, values and gradients.
        bindings: Every name it had, in order, each once.
        findings: Public ids of the findings about it.
    """

    tensor: int
    name: str | None
    fqn: str | None
    role: str | None
    cls: str
    shape: tuple[int, ...] | None
    dtype: str
    device: str
    numel: int
    bytes: int
    line: int | None
    path: str | None
    storage: int | None
    view_of: int | None
    created: TensorCreated
    died: int | None
    state: TensorState | None
    why_none: WhyNoneRow | None
    grad_norm: float | None
    value_norm: float | None
    nonfinite: int
    grad_ever: bool
    bindings: tuple[str, ...]
    findings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPage:
    """Some tensors in order of their number; `next`: the `after` of the next page, None at the end."""

    items: tuple[TensorRow, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRow:
    """A value or gradient in numbers. None: not defined for it; `mean` and `std` are derived from the others."""

    norm: float | None
    sum: float | None
    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    nan: int
    inf: int
    zeros: int
    counted: int
    kind: Literal["exact", "sampled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """One tensor at one moment. `why_none` is known at the tensor's last snapshot only. None statistics: not measured."""

    tensor: int
    moment: int
    kind: str
    k: int
    step: int
    line: int | None
    is_leaf: bool
    requires_grad: bool
    retains_grad: bool
    grad_fn: str | None
    version: int | None
    grad: GradState
    grad_id: int | None
    grad_version: int | None
    why_none: str | None
    value: StatisticsRow | None
    grad_stats: StatisticsRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPage:
    """Some snapshots by (tensor, moment); `next`: the `after` of the next page, None at the end."""

    items: tuple[SnapshotRow, ...]
    next: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BindingRow:
    """A name that came to hold a tensor. `replaces`: the tensor it held before; `parents`: what this was computed from."""

    binding: int
    name: str
    path: str
    line: int
    function: str
    moment: int
    version: int | None
    replaces: int | None
    parents: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InplaceRow:
    """A change in place: the version rose at this line."""

    moment: int
    line: int | None
    path: str | None
    version_before: int
    version_after: int
    done_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedByRow:
    """A node that holds the tensor for backward, under which of its names, at which version."""

    node: int
    type: str
    name: str
    version: int | None
    held_by: str
    line: int | None
    freed_by: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallValueRow:
    """The elements of a small tensor at a moment.

    Attributes:
        of: `value`, `grad`, or `arrived`: the gradient that reached it in a backward call.
        elements: Nested lists in its shape, or a number for a scalar; complex ones as [real, imaginary]; non-finite
            ones as in all JSON of ours.
    """

    moment: int
    of: Literal["value", "grad", "arrived"]
    dtype: str
    shape: tuple[int, ...]
    elements: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderRow:
    """What a root kept alive after a call or at the end, and the Python names that keep it."""

    moment: int
    backward_call: int | None
    state: str
    freed_by: int | None
    held_nodes: int
    held_bytes: int
    holders: tuple[str, ...]
    holder_search: str
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFull:
    """One tensor in full; each list is capped at 1000 and in order of moments."""

    tensor: TensorRow
    bindings: tuple[BindingRow, ...]
    snapshots: tuple[SnapshotRow, ...]
    inplace_events: tuple[InplaceRow, ...]
    saved_by: tuple[SavedByRow, ...]
    values: tuple[SmallValueRow, ...]
    holders: tuple[HolderRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardRoot:
    """A tensor that a backward call began at, or whose gradient it was asked for."""

    tensor: int | None
    name: str | None
    shape: tuple[int, ...] | None
    gradient_given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardCallRow:
    """One pass of the engine: flags as written and as they took effect, what it walked, ran and freed.

    Attributes:
        inputs: None: all leaves. retain_graph_given: None: defaulted.
        returned: Of `autograd.grad`: per input, whether a gradient came back.
        exception: Text of what it raised; None: it finished, or the record ends inside it.
        freed_nodes, held_nodes: Their numbers, at most 1000 each: what this call freed, and what it ran and left held.
        leaves: Tensors whose `.grad` this call wrote.
    """

    call: int
    entry: str
    path: str | None
    line: int | None
    thread: int
    parent: int | None
    roots: tuple[BackwardRoot, ...]
    inputs: tuple[BackwardRoot, ...] | None
    retain_graph: bool
    retain_graph_given: bool | None
    create_graph: bool
    accumulate_grad: bool
    allow_unused: bool
    returned: tuple[bool, ...] | None
    nodes_met: int
    nodes_run: int
    nodes_freed: int
    held_bytes: int
    freed_bytes: int
    duration_ns: int
    own_ns: int
    outcome: str
    exception: str | None
    truncated: bool
    moment_before: int
    moment_after: int | None
    freed_nodes: tuple[int, ...]
    held_nodes: tuple[int, ...]
    leaves: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """An autograd node.

    Attributes:
        variable: Of an AccumulateGrad, its leaf. tensors: the record's tensors that it made.
        calls: Backward calls that ran it. freed_by: the call that freed what it saved.
    """

    node: int
    type: str
    seq: int | None
    path: str | None
    line: int | None
    born_in: str
    grad_order: int
    variable: int | None
    custom: str | None
    saved_bytes: int
    freed_by: int | None
    first_seen: int
    died: int | None
    tensors: tuple[int, ...]
    calls: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRow:
    """`node.next_functions[slot]`; `to_node` None: no gradient is wanted there."""

    node: int
    slot: int
    to_node: int | None
    input_nr: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The autograd graph, or the part below the cap.

    Attributes:
        hidden: Nodes left out; edges to them are left out too. 0: it is whole.
    """

    nodes: tuple[NodeRow, ...]
    edges: tuple[EdgeRow, ...]
    hidden: int


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
    grad: GradState | None
    why_none: WhyNoneRow | None
    grad_norm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLine:
    """One line of a file and what happened on it.

    Attributes:
        passes: How often one of its statements was passed. held_bytes: saved by the nodes born on it, freed or not.
        backward_calls: Numbers. findings: public ids.
    """

    line: int
    text: str
    bindings: tuple[LineBinding, ...]
    passes: int
    backward_calls: tuple[int, ...]
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


def as_json(value: Any) -> Any:
    """Plain JSON values of an answer: dicts, lists, text, numbers, with "class" for `cls` and text for non-finite ones."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            "class" if field.name == "cls" else field.name: as_json(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [as_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
