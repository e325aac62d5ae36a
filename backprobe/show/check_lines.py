"""The invariants of a run in one line: which held, which are broken, and what could not be checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from backprobe.rules import Check


def checks_line(checks: Sequence[Check]) -> str:
    """Return one line; "" without checks.

    `checked: coverage, ledger held in all 40 steps; not checked: mode (no module acts by its mode)`
    """
    held: defaultdict[str, list[str]] = defaultdict(list)
    broken: list[str] = []
    unknown: list[str] = []
    for check in checks:
        if check.state == "holds":
            held[_extent(check)].append(check.name)
        elif check.state == "broken":
            broken.append(f"{check.name} is broken: {', '.join(check.findings)}")
        else:
            unknown.append(f"{check.name} ({check.why})")
    parts = [f"{', '.join(names)} held in {extent}" for extent, names in held.items()] + broken
    sentences = [f"checked: {'; '.join(parts)}"] if parts else []
    if unknown:
        sentences.append(f"not checked: {', '.join(unknown)}")
    return "; ".join(sentences)


def _extent(check: Check) -> str:
    """Return what was looked at. A partial check must not read as if the invariant had failed in the rest."""
    if check.checked == check.total == 1:
        return f"the one {check.unit.removesuffix('s')}"
    if check.checked == check.total:
        return f"all {check.total:,} {check.unit}"
    return f"all {check.checked:,} that were checked of {check.total:,} {check.unit}"
