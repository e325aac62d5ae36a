"""What questions about tensors answer: values whose fields are the names of the API's JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from backprobe.record.rows.tensors import Grad


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCreated:
    """Where a tensor came from: by `op`, `user`, `library`, `unknown`; how: op or call; proof: how that is known."""

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
    grad: Grad
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
    """One tensor at one moment. Only the last snapshot has `why_none`. Statistics of None: not measured."""

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
    grad: Grad
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
    """A name that came to hold a tensor. `replaces`: what it held before; `parents`: what this was computed from."""

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
            ones as in every JSON answer of the service.
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
class ArrivedRow:
    """The gradient that reached a tensor that a node made, in one backward call; `.grad` keeps it of few.

    Attributes:
        norm: Euclidean, of the tensor of any size; None: it is not defined. nan, inf: Elements.
    """

    backward_call: int
    norm: float | None
    nan: int
    inf: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFull:
    """One tensor in full; each list is capped at 1000 and in order of moments.

    Attributes:
        arrived: The gradients that reached it. Empty: none did, it is a leaf, or they were not measured.
    """

    tensor: TensorRow
    bindings: tuple[BindingRow, ...]
    snapshots: tuple[SnapshotRow, ...]
    inplace_events: tuple[InplaceRow, ...]
    saved_by: tuple[SavedByRow, ...]
    values: tuple[SmallValueRow, ...]
    holders: tuple[HolderRow, ...]
    arrived: tuple[ArrivedRow, ...] = ()
