"""What a change of a tensor is put down to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cause:
    """What just happened, to which a change is put down.

    Attributes:
        call: The backward call that just ended; creates: it made a graph of itself. step: the optimizer whose step did.
        unseen: The change came about while nothing was looked at.
        named: The statement names the tensor, and may have changed it: what is found is its doing.
    """

    site: int | None = None
    call: int | None = None
    creates: bool = False
    step: int | None = None
    unseen: bool = False
    named: bool = False


LATE: Final = Cause()
"""The cause of what is found later than at its own statement."""
