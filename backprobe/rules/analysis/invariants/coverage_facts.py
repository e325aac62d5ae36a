"""What training passes over, and the steps and gradients by which that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record

Kind = Literal[
    "frozen",
    "never-called",
    "no-gradient",
    "overwritten",
    "not-held",
    "not-changed",
    "not-written",
    "zero-gradient",
    "zeroed-by-hook",
    "never-stepped",
    "idle-optimizer",
    "rows-equal",
    "wrapper-passed-by",
    "nothing-trained",
]


REPEATED: Final = 2
"""Steps in which a breach must be seen."""


class Breach(NamedTuple):
    """What training passes over.

    Attributes:
        site: The statement to show. tensors: the leaves concerned. optimizer: the one concerned. None: none.
        moments: The steps that show it of the first leaf. Empty: all steps.
    """

    kind: Kind
    site: int
    tensors: tuple[int, ...]
    optimizer: int | None
    moments: tuple[int, ...] = ()


@table
def steps(record: Record) -> tuple[OptimizerEvent, ...]:
    """Return the optimizer steps in order."""
    return tuple(event for event in record.optimizer_events if event.kind == "step")
