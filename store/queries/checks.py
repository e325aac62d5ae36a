"""The state of each invariant of a run, as the rules that judged it left it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.records.reader import at_key
from store.runs.model import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRow:
    """The state of one invariant: a statement that holds in every run which trains as it should.

    Attributes:
        name: Of the invariant: coverage. code: of its rule.
        state: holds, broken, or unknown: the record cannot tell.
        checked: Steps, backward calls or reads that were looked at. total: all that the run made.
        unit: What checked and total count, in the plural.
        why: Why the state is unknown; empty: it is known.
        findings: Codes of the findings that tell of the breach; empty: it is not broken.
    """

    name: str
    code: str
    state: Literal["holds", "broken", "unknown"]
    checked: int
    total: int
    unit: str
    why: str
    findings: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The invariants of a run, in order of their codes.

    Attributes:
        items: One for each invariant among the rules that judged the run.
        why: Why there is none; null: there are some.
    """

    items: list[CheckRow]
    why: str | None


def load_checks(transaction: Transaction, run: RunRow) -> Checks:
    """Return the state of each invariant of a run, or the reason why none is known."""
    if not run.ended:
        return Checks(items=[], why="The run has not ended.")
    if run.key is None or run.findings.ruleset is None:
        return Checks(items=[], why="The run was not judged.")
    if run.record.state == "expired":
        return Checks(items=[], why="The record of the run was deleted.")
    head = sa.select(tables.record.c.checks).where(at_key(tables.record, run.key))
    stored = transaction.execute(head).scalar()
    if stored is None:
        return Checks(items=[], why="The run was judged by a version that checked no invariants.")
    if not stored:
        return Checks(items=[], why="No invariant is among the rules that judged the run.")
    return Checks(items=msgspec.convert(stored, list[CheckRow]), why=None)
