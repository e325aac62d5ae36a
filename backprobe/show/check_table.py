"""Is the gradient true: a line for each leaf, its derivative by small changes, what the step used, and the verdict.

is the gradient true
  step  tensor    derivative  used      verdict
  0     w         293.686     195.791   differs: the backward of Cube, line 8, is not the derivative of its forward
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.measured_cuts import checked_rows
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.locations import line_of
from backprobe.show.amounts import counted
from backprobe.show.plain_text import cut_apart, plain
from backprobe.show.tensor_table import name_of
from backprobe.show.terminal_style import Ink, columns, padded

if TYPE_CHECKING:
    from backprobe.record import GradientCheck, Record
    from backprobe.rules.framework.finding import Finding

_MOST: Final = 60
_MOST_NAME: Final = 40
_VISIBLE: Final = 0.1
_HEAD: Final = ("step", "tensor", "derivative", "used")
_CAUSES: Final = {
    "backward": "the backward of {function} is not the derivative of its forward",
    "not-cleared": "the gradient of the step before is still in it",
    "cleared": "it was cleared between the backward call and the step",
    "own-gradient": "the loss was given to backward as its own gradient",
    "cut": "{explained}",
    "not-scaled": "the scaler's factor was taken out of a gradient whose loss it was not multiplied into",
    "clipped-scaled": "it was clipped while the scaler's factor was still in it",
    "clipped-early": "it was clipped before all backward calls of the step had added to it",
    "hook-repeated": "one line put a hook on it more than once, {explained}",
}


def gradient_check_lines(record: Record, ink: Ink, findings: Iterable[Finding] = ()) -> list[str]:
    """The table, with its head; nothing of a record without the check.

    Args:
        findings: Where one of them names the cut or the hook that makes a difference, its row says so.
    """
    rows = record.gradient_checks
    causes = checked_rows(findings)
    if not rows:
        return []
    shown = rows[:_MOST]
    names = cut_apart([_name(record, row) for row in shown], _MOST_NAME)
    cells = [
        (str(row.step), name, _number(row.numeric), _number(row.used)) for row, name in zip(shown, names, strict=True)
    ]
    wide = [max(columns(line[at]) for line in [_HEAD, *cells]) for at in range(len(_HEAD))]
    lines = [ink("strong", "is the gradient true"), ink("quiet", f"  {_line(_HEAD, wide)}  verdict")]
    for row, line in zip(shown, cells, strict=True):
        cause = causes.get(row.n)
        role = "good" if row.verdict == "agrees" else "warning" if is_wrong(row) or cause is not None else "quiet"
        text = verdict_text(record, row) + ("" if cause is None else f": see {cause.rule.code} {cause.rule.name}")
        lines.append(f"  {_line(line, wide)}  {ink(role, text)}")
    if len(rows) > _MOST:
        lines.append(f"  ... and {counted(len(rows) - _MOST, 'more row')}: `--format json` has them all")
    return lines


def is_wrong(row: GradientCheck) -> bool:
    """What was used is not the derivative, and nothing explains it, or a mistake does."""
    return row.verdict in ("cut", "factor", "differs") and (row.explained_by is None or row.cause is not None)


def verdict_text(record: Record, row: GradientCheck) -> str:
    """The verdict in words, with what explains it."""
    if row.verdict == "agrees":
        if _is_rounding(row):
            return "agrees: beside the loss, both are rounding"
        return "agrees" if row.explained_by is None else f"agrees; {plain(row.explained_by)}"
    if row.verdict == "not-checked":
        return f"not checked: {plain(row.why or 'no reason is known')}"
    if row.verdict == "rough":
        return "rough: the loss is not smooth here, so that nothing is said"
    head = {"cut": "cut", "differs": "differs", "factor": f"differs by the factor {row.factor or 0:.4g}"}[row.verdict]
    why = plain(row.explained_by or "nothing explains it")
    if _is_as_cut(row):
        return f"agrees; {why}"
    if row.cause is not None:
        why = _CAUSES[row.cause].format(function=plain(row.function or "a Function"), explained=why)
        why += "" if row.site is None or row.cause == "cut" else f", line {line_of(record, row.site)}"
    return f"{head}: {why}"


def _is_as_cut(row: GradientCheck) -> bool:
    """What is used is the derivative along the paths that the program leaves open, and it says which it shuts."""
    if row.verdict != "differs" or row.cause is not None or not row.cuts or None in (row.frozen, row.used):
        return False
    return abs((row.frozen or 0.0) - (row.used or 0.0)) <= (row.tolerance or 0.0)


def _is_rounding(row: GradientCheck) -> bool:
    """Both sides lie below what arithmetic shows, and are visibly not the same number."""
    numeric, used = row.numeric or 0.0, row.used or 0.0
    largest = max(abs(numeric), abs(used))
    return largest <= (row.tolerance or 0.0) and abs(numeric - used) > _VISIBLE * largest


def _name(record: Record, row: GradientCheck) -> str:
    name = None if row.tensor is None else name_of(lookup(record), row.tensor)
    if name is None and row.tensor is not None:
        name = lookup(record).tensors[row.tensor].fqn
    more = f" and {counted(len(row.tensors) - 1, 'more')}" if len(row.tensors) > 1 else ""
    return plain(name or "-") + more.replace("mores", "more")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    return "  ".join(padded(cell, size) for cell, size in zip(cells, wide, strict=True))
