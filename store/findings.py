"""Findings of runs: written with the run's end, read by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from store.run import RunRow
from store.session import Transaction

if TYPE_CHECKING:
    from backprobe.rules import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """A stored finding. `json()` is the API's shape, `backprobe.finding/1`.

    Attributes:
        id: `f_...`. run: public id of its run. number: keyset cursor of its list.
    """

    id: str
    run: str
    ruleset: str
    number: int
    finding: Finding

    def json(self) -> dict[str, Any]:
        """As every client reads it, with id, run, ruleset, and `group` and `gone`, which are null for now."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPage:
    """Some findings, worst first, then in order of the source; `next` is the `after` of the next page or None."""

    items: tuple[FindingRow, ...]
    next: int | None


def page(
    transaction: Transaction,
    run: RunRow,
    *,
    level: Sequence[str] = (),
    rule: Sequence[str] = (),
    confidence: Sequence[str] = (),
    line: int | None = None,
    suppressed: bool | None = None,
    after: int | None = None,
    limit: int = 100,
) -> FindingPage:
    """The findings of a run's visible attempt.

    Args:
        level, confidence: Any of these; empty: all. rule: names or codes.
        suppressed: Only those that are or are not; None: both.
    """
    raise NotImplementedError


def get(transaction: Transaction, public_id: str, *, tenant_id: int = 1) -> FindingRow | None:
    """One finding; None: no such finding of this tenant, or its attempt is not the visible one."""
    raise NotImplementedError
