"""What happened to each leaf's `.grad`: when gradients arrived, and when the leaf itself was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, LeafGrad, Record

_ARRIVALS: Final = frozenset({"populate", "accumulate", "accumulate-new-tensor"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GradLife:
    """One leaf.

    Attributes:
        arrivals: Gradients that a backward call stored or added, in order.
        steps: The optimizer steps that these arrivals came before, ascending, each once.
        writes: In-place changes of the leaf itself.
    """

    tensor: int
    arrivals: tuple[LeafGrad, ...]
    steps: tuple[int, ...]
    writes: tuple[InplaceEvent, ...]


@table
def grad_lives(record: Record) -> dict[int, GradLife]:
    """The leaves that a gradient arrived at, by tensor."""
    index = lookup(record)
    lives: dict[int, GradLife] = {}
    for tensor in dict.fromkeys(row.tensor for row in record.leaf_grads):
        arrivals = tuple(row for row in index.leaf_grads_of[tensor] if row.kind in _ARRIVALS and row.call is not None)
        if arrivals:
            lives[tensor] = GradLife(
                tensor=tensor,
                arrivals=arrivals,
                steps=tuple(sorted({step_of(record, row.moment) for row in arrivals})),
                writes=tuple(index.inplace_of[tensor]),
            )
    return lives
