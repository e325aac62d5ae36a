"""The booleans of a tensor's state, in one table: what reads, sends, stores, asks for and shows them is made from it.

    StateFlag("is_leaf", bit=1, untracked=True)
    tensor.is_leaf -> Snapshot.is_leaf -> bit 1 of a chunk's flags -> column tensor.is_leaf -> `is_leaf` in the API

1. A flag's name and bit never change: stored records and clients have them. A new flag stands at the end.
2. This file imports the standard library only: the build of the compiled core reads it before anything is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class StateFlag:
    """One boolean.

    Attributes:
        name: Attribute of a `torch.Tensor`, field of `Snapshot`, column of `tensor`, name in the API and on pages.
        bit: Which bit of `flags` in a chunk of snapshots.
        untracked: Its value for a tensor of which autograd keeps nothing; the compiled core does not ask torch then.
        since: Version of the record that brought it. Those of version 1 lie together in a snapshot's row, later ones
            at its end.
    """

    name: str
    bit: int
    untracked: bool
    since: int = 1


STATE_FLAGS: Final = (
    StateFlag("is_leaf", bit=1, untracked=True),
    StateFlag("requires_grad", bit=2, untracked=False),
    StateFlag("retains_grad", bit=4, untracked=False),
)
"""In the order in which they are read and shown. Bits 8 to 1024 of a chunk's flags have other meanings."""

NAMES: Final = tuple(flag.name for flag in STATE_FLAGS)

BITS: Final = {flag.name: flag.bit for flag in STATE_FLAGS}

flags_of: Final[Callable[[Any], tuple[Any, ...]]] = attrgetter(*NAMES)
"""The flags of a tensor, a snapshot or a row of the database, in the table's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagsOrNone:
    """The flags where one may be missing: of a filter, None lets all pass; of a tensor, no snapshot was taken."""

    is_leaf: bool | None = None
    requires_grad: bool | None = None
    retains_grad: bool | None = None

    @property
    def known_flags(self) -> dict[str, bool]:
        """Those that are not None, by name."""
        return {name: value for name, value in zip(NAMES, flags_of(self), strict=True) if value is not None}


def by_name(flags: Sequence[bool]) -> dict[str, bool]:
    """Map the names of the flags to these values, which are in the table's order."""
    return dict(zip(NAMES, flags, strict=True))


def bits_of(snapshot: Any) -> int:
    """Pack the flags of a snapshot into bits."""
    return sum(bit for bit, value in zip(BITS.values(), flags_of(snapshot), strict=True) if value)


@cache
def flags_in(bits: int) -> Mapping[str, bool]:
    """Unpack bits into flags by name. A chunk's other bits may be set too."""
    return {name: bool(bits & bit) for name, bit in BITS.items()}
