"""The tensor table: the named tensors of a record with their last state, as rows that text, JSON and pages share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.record.state import shown_name
from backprobe.record.state_flags import NAMES, by_name, flags_of
from backprobe.rules.analysis.gradients.why_none import WhyNone, why_none
from backprobe.rules.analysis.rows.lookup import Lookup, lookup
from backprobe.show.amounts import elements, number

if TYPE_CHECKING:
    from backprobe.record import Record, SmallValue, Snapshot

FLAGS: Final = sorted(NAMES, key=lambda name: name != "requires_grad")
"""Flags of a tensor's state as text shows them: whether it takes part at all comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRow:
    """The last state of one named tensor.

    Attributes:
        name: Its `state_dict` key, else its last binding.
        path, line: Where it was first seen; None where no statement of the user's did that.
        times: How many tensors this row stands for: the passes of a loop bind one name at one line again and again.
        grad_fn: Name of its node; None if it has none; "?" where it was not read.
        gradient: What `.grad` holds, or None.
        why: Why there is none, in words; None where there is one.
        arrived: The gradient that reached it in the last backward call, where `.grad` did not keep it: its elements, or
            its norm where they are many.
    """

    tensor: int
    name: str
    path: str | None
    line: int | None
    shape: tuple[int, ...] | None
    dtype: str
    device: str
    requires_grad: bool
    is_leaf: bool
    retains_grad: bool
    grad_fn: str | None
    gradient: str | None
    why: WhyNone | None
    arrived: str | None = None
    times: int = 1


def tensor_rows(record: Record) -> list[TensorRow]:
    """List the named tensors in order of first sight. Equal names bound at one line are one row, of the last tensor.

    Tracked and untracked ones stand apart: a line that training and evaluation pass makes both.
    """
    index, whys = lookup(record), why_none(record)
    small = _last_small_values(record)
    groups: dict[tuple[str, int | None, bool, bool], list[int]] = defaultdict(list)
    for tensor in record.tensors:
        name, history = name_of(index, tensor.tensor), index.snapshots_of[tensor.tensor]
        if name is not None and history:
            groups[name, tensor.site, history[-1].requires_grad, history[-1].is_leaf].append(tensor.tensor)
    return [
        _row(index, name, same[-1], len(same), whys.get(same[-1]), small)
        for (name, *_), group in groups.items()
        for same in _apart(index, group)
    ]


def count_of_tensors(record: Record) -> int:
    """How many tensors a run is said to have: those with a name and a state, each execution of a line on its own.

    The rows of `tensor_rows` stand for as many.
    """
    index = lookup(record)
    return sum(
        bool(index.snapshots_of[row.tensor]) and name_of(index, row.tensor) is not None for row in record.tensors
    )


def _apart(index: Lookup, group: list[int]) -> list[list[int]]:
    """Parameters that live side by side to the end are as many, though they are called the same."""
    alive = [member for member in group if index.tensors[member].fqn is not None and index.tensors[member].died is None]
    if len(alive) < 2:
        return [group]
    gone = [member for member in group if member not in set(alive)]
    return [*([gone] if gone else []), *([member] for member in alive)]


def name_of(index: Lookup, tensor: int) -> str | None:
    """Return what the program calls a tensor: its `state_dict` key, else its best known name; None if it has none.

    A parameter that a loop calls `p` for a moment keeps its key.
    """
    bindings, key = index.bindings_of[tensor], index.tensors[tensor].fqn
    if key is not None:
        return key
    return shown_name(bindings)


def _row(
    index: Lookup,
    name: str,
    tensor: int,
    times: int,
    why: WhyNone | None,
    small: Mapping[tuple[int, str], SmallValue],
) -> TensorRow:
    row, history = index.tensors[tensor], index.snapshots_of[tensor]
    last = history[-1]
    site = None if row.site is None else index.sites[row.site]
    kept = last.grad == "present"
    return TensorRow(
        tensor=tensor,
        name=name,
        path=None if site is None else index.sources[site.source].path,
        line=None if site is None else site.line,
        shape=row.shape,
        dtype=row.dtype,
        device=row.device,
        **by_name(flags_of(last)),
        grad_fn=last.grad_fn if last.grad_fn_read else _node_type(index, tensor),
        gradient=_content(small.get((tensor, "grad")), history) if kept else None,
        why=None if kept else why,
        arrived=None if kept else _format_arrived_gradient(index, tensor, small.get((tensor, "arrived"))),
        times=times,
    )


def _format_arrived_gradient(index: Lookup, tensor: int, value: SmallValue | None) -> str | None:
    """Elements of the gradient that reached it last; of a larger one the norm that its node was given."""
    if value is not None:
        return elements(value)
    made = index.node_of.get(tensor)
    if made is None:
        return None
    passes = [row for row in index.passes_of_node[made.node] if row.output_nr == made.output_nr and row.grad_output]
    last = max(passes, key=lambda row: row.call, default=None)
    if last is None or last.grad_output is None or last.grad_output.norm is None:
        return None
    return f"norm {number(last.grad_output.norm)}"


def _node_type(index: Lookup, tensor: int) -> str:
    made = index.node_of.get(tensor)
    return "?" if made is None else index.nodes[made.node].type


def _content(value: SmallValue | None, history: Sequence[Snapshot]) -> str:
    """Write what `.grad` holds. A measurement stays true while it is the same tensor at the same version."""
    if value is not None:
        return elements(value)
    last = history[-1]
    for snapshot in reversed(history):
        if (snapshot.grad_id, snapshot.grad_version) != (last.grad_id, last.grad_version):
            break
        if snapshot.grad_stats is not None and snapshot.grad_stats.norm is not None:
            return f"norm {number(snapshot.grad_stats.norm)}"
    return "present"


def _last_small_values(record: Record) -> dict[tuple[int, str], SmallValue]:
    return {(row.tensor, row.of): row for row in sorted(record.small_values, key=lambda row: row.moment)}
