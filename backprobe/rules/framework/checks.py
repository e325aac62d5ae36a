"""What an invariant found out about a run: it holds, it is broken, or it cannot be known, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding
    from backprobe.rules.framework.rule import Rule

State = Literal["holds", "broken", "unknown"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one invariant in one run.

    Attributes:
        name: The invariant's name: `coverage`. code: the code of its findings, `BP953`.
        state: holds, broken, or unknown: the record cannot tell.
        checked: Steps, backward calls or reads that were looked at. total: all that the run made.
        unit: What `checked` and `total` count, in the plural: "steps".
        why: Why the state is unknown, or what was left out; "": nothing to add.
    """

    name: str
    code: str
    state: State
    checked: int
    total: int
    unit: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of a run an invariant could look at.

    Attributes:
        checked, total, unit: As in `Check`.
        why: Why nothing could be looked at; "" if `checked` is not 0.
    """

    checked: int
    total: int
    unit: str
    why: str = ""


class InvariantModule(Protocol):
    """A module of `rules/invariants`: a rule whose silence is a statement as well."""

    __name__: str
    __doc__: str | None
    RULE: Rule
    EXPLAINED_BY: tuple[str, ...]
    check: Callable[[Record], Iterator[Finding]]
    measure_coverage: Callable[[Record], Coverage]


FAILED: Final = "the check failed; BP902 names the error"
"""Why the state of an invariant is unknown whose code raised."""


def is_invariant(module: object) -> bool:
    """Return whether a rule module is an invariant."""
    return hasattr(module, "measure_coverage")
