"""Groups of findings: the same finding over all runs of a project, counted in the transaction that stores it.

1. Groups are touched in order of their fingerprints: two runs that end at once wait for each other, never in a circle.
   Aliases (`store.findings.moved_groups`) are written before all of them.
2. A run is counted once in a group, however many of its judgements show it, and under however many fingerprints.
3. What people made of a group stays, with one exception: a finding that is seen again after it was fixed opens it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from backprobe.rules import Finding
from store.database.ids import new_id
from store.database.session import Transaction
from store.findings.moved_groups import fingerprint_without_path, known_fingerprints, load_groups
from store.tables import Now, finding_group

ROWS: Final = 500
"""Groups in one statement: 18 values each, and SQLite takes 32,766."""

_SEEN: Final = ("rule", "level", "path", "line", "message", "fingerprint_without_path")
"""Columns that tell of the finding seen last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shower:
    """The run that shows findings."""

    run_id: int
    public_id: str
    tenant_id: int
    project_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a run's findings did to a group.

    Attributes:
        group: Its public id, `fg_...`. what: `new`: no run had shown it; `returned`: it had been fixed.
        fingerprint: Of the group.
    """

    group: str
    fingerprint: str
    rule: str
    level: str
    what: str


def show(
    transaction: Transaction, shower: Shower, findings: Sequence[Finding], shown_before: Collection[str] = ()
) -> tuple[Change, ...]:
    """Count findings of one run into their groups, which are made where there are none; new and returned ones.

    Args:
        transaction: The one that stores the findings.
        shower: Their run.
        findings: All that it shows; of several with one fingerprint the first one counts. One that a comment in the
            source suppresses is counted, but neither opens a fixed group nor counts as new.
        shown_before: Fingerprints that it showed in judgements before this one: it was counted in their groups.
    """
    by_fingerprint: dict[str, Finding] = {}
    for finding in findings:
        by_fingerprint.setdefault(finding.fingerprint, finding)
    counted = load_groups(transaction, shower.project_id, shown_before)
    shown = list(by_fingerprint.values())
    known = known_fingerprints(transaction, shower.project_id, shower.run_id, shown, shown_before)
    of_groups = {known.get(fingerprint, fingerprint): finding for fingerprint, finding in by_fingerprint.items()}
    ordered = sorted(
        (pair for pair in of_groups.items() if pair[0] not in counted or pair[1].fingerprint not in shown_before),
        key=lambda pair: pair[0],
    )
    changes: list[Change] = []
    kinds = groupby(ordered, key=lambda pair: (pair[0] in counted, pair[1].suppressed is None))
    for (is_counted, opens), some in kinds:
        pairs = list(some)
        if is_counted:
            for group, finding in pairs:
                _replace_place(transaction, shower, group, finding)
            continue
        for start in range(0, len(pairs), ROWS):
            changes += _count_findings(transaction, shower, pairs[start : start + ROWS], opens=opens)
    return tuple(changes)


def _replace_place(transaction: Transaction, shower: Shower, fingerprint: str, finding: Finding) -> None:
    """Write where a group is that its last run first showed under an alias, which was wrong."""
    group, values = finding_group.c, _values(shower, fingerprint, finding)
    which = (group.project_id == shower.project_id, group.fingerprint == fingerprint)
    changed = {name: values[name] for name in _SEEN} | {"version": group.version + 1}
    transaction.execute(sa.update(finding_group).where(*which, group.last_run_id == shower.run_id).values(changed))


def _count_findings(
    transaction: Transaction, shower: Shower, findings: Sequence[tuple[str, Finding]], *, opens: bool
) -> list[Change]:
    """Count findings, each with the fingerprint of its group, which opens where it was fixed if it is to."""
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    added = insert(finding_group).values([_values(shower, *pair) for pair in findings])
    facts = _facts(shower, added.excluded) | (_opened_values(shower) if opens else {})
    upsert = added.on_conflict_do_update(index_elements=["project_id", "fingerprint"], set_=facts)
    changes: list[Change] = []
    for row in transaction.execute(upsert.returning(finding_group)):
        what = _what(shower, row)
        if what is not None and opens:
            told = {name: getattr(row, name) for name in ("fingerprint", "rule", "level")}
            changes.append(Change(group=row.public_id, what=what, **told))
    return changes


def _values(shower: Shower, fingerprint: str, finding: Finding) -> dict[str, Any]:
    return {
        "public_id": new_id("fg"),
        "tenant_id": shower.tenant_id,
        "project_id": shower.project_id,
        "fingerprint": fingerprint,
        "fingerprint_without_path": fingerprint_without_path(finding),
        "rule": finding.rule.name,
        "level": finding.level,
        "path": finding.location.path,
        "line": finding.location.region.start_line,
        "message": finding.message,
        "state": "open",
        "first_run_id": shower.run_id,
        "last_run_id": shower.run_id,
        "first_seen_at": Now(),
        "last_seen_at": Now(),
        "runs": 1,
        "returned": 0,
        "version": 1,
    }


def _facts(shower: Shower, excluded: Any) -> dict[str, Any]:
    return {name: excluded[name] for name in _SEEN} | {
        "last_run_id": shower.run_id,
        "last_seen_at": Now(),
        "runs": finding_group.c.runs + 1,
        "version": finding_group.c.version + 1,
    }


def _opened_values(shower: Shower) -> dict[str, Any]:
    """Return the columns that open a fixed group. They name the run as the actor that opened it."""
    fixed = finding_group.c.state == "fixed"
    return {
        "state": sa.case((fixed, "open"), else_=finding_group.c.state),
        "returned": finding_group.c.returned + sa.case((fixed, 1), else_=0),
        "state_by": sa.case((fixed, shower.public_id), else_=finding_group.c.state_by),
        "state_at": sa.case((fixed, Now()), else_=finding_group.c.state_at),
        "reason": sa.case((fixed, sa.null()), else_=finding_group.c.reason),
    }


def _what(shower: Shower, row: Any) -> str | None:
    if row.runs == 1 and row.first_run_id == shower.run_id:
        return "new"
    return "returned" if row.state_by == shower.public_id and row.last_run_id == shower.run_id else None
