"""The invariants of a run in one line: which held, which are broken, and what could not be checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from backprobe.rules import Check


def checks_line(checks: Sequence[Check]) -> str:
    """Return one line; "" without checks.

    `checked: coverage, ledger held in 40 of 40 steps; mode not checked: no module acts by its mode`
    """
    held: defaultdict[str, list[str]] = defaultdict(list)
    rest: list[str] = []
    for check in checks:
        if check.state == "holds":
            held[f"held in {check.checked:,} of {check.total:,} {check.unit}"].append(check.name)
        elif check.state == "broken":
            rest.append(f"{check.name} is broken: {', '.join(check.findings)}")
        else:
            rest.append(f"{check.name} not checked: {check.why}")
    parts = [f"{', '.join(names)} {words}" for words, names in held.items()] + rest
    return f"checked: {'; '.join(parts)}" if parts else ""
