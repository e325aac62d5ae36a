"""Two runs beside each other: findings by what they are about, tensors by name and line of source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.show.plain_text import plain
from backprobe.show.tensor_table import FLAGS, TensorRow, tensor_rows

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Finding

Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Findings of two runs."""

    fixed: list[Finding]
    new: list[Finding]
    same: list[Finding]


def key(finding: Finding) -> Key:
    """Return what makes a finding the same after an edit: rule, file, function, and the name it is about."""
    binding = finding.evidence.get("binding")
    return finding.rule.code, finding.location.path, finding.location.function, str(binding or "")


def split(before: Sequence[Finding], after: Sequence[Finding]) -> Split:
    """Which are fixed, new, or in both; `same` are those of the later run."""
    left = Counter(map(key, before))
    new: list[Finding] = []
    same: list[Finding] = []
    for finding in after:
        if left[key(finding)]:
            left[key(finding)] -= 1
            same.append(finding)
        else:
            new.append(finding)
    fixed = [finding for finding in before if left[key(finding)] and not left.subtract([key(finding)])]
    return Split(fixed=fixed, new=new, same=same)


def changed_tensors(before: Record, after: Record) -> list[str]:
    """Named tensors of both whose last state differs, as lines."""
    earlier = {(row.name, row.path): row for row in tensor_rows(before)}
    lines: list[str] = []
    for row in tensor_rows(after):
        old = earlier.get((row.name, row.path))
        facts = [] if old is None else _facts(old, row)
        if facts:
            lines.append(f"{plain(row.name)} (line {row.line}): {', '.join(facts)}")
    return lines


def _facts(old: TensorRow, new: TensorRow) -> list[str]:
    told = [
        f"{name} {plain(str(getattr(old, name)))} -> {plain(str(getattr(new, name)))}"
        for name in ("shape", "dtype", *FLAGS, "grad_fn")
        if getattr(old, name) != getattr(new, name)
    ]
    if (old.gradient is None) != (new.gradient is None):
        told.append(f"gradient {plain(old.gradient or 'None')} -> {plain(new.gradient or 'None')}")
    return told
