"""The gradient check as text: a line for each leaf, its derivative by small changes, what the step used, the verdict.

gradient check
  step  tensor    derivative  used      verdict
  0     w         293.686     195.791   differs: the backward of Cube, line 8, is not the derivative of its forward
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.measured_cuts import checked_rows
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.locations import line_of
from backprobe.show.amounts import count_noun
from backprobe.show.plain_text import cut_apart, plain
from backprobe.show.tensor_table import name_of
from backprobe.show.terminal_style import Ink, columns, pad_text

if TYPE_CHECKING:
    from backprobe.record import GradientCheck, Record
    from backprobe.rules.framework.finding import Finding

_WORST_FIRST: Final = ("differs", "factor", "cut", "rough", "not-checked", "agrees")
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


def gradient_check_lines(
    record: Record, ink: Ink, findings: Iterable[Finding] = (), *, whole: bool = False
) -> list[str]:
    """Return a line that counts the verdicts, and the table of the rows that are wrong; nothing without the check.

    Args:
        findings: Where one of them names the cut or the hook that makes a difference, its row says so.
        whole: Return the table of all rows.
    """
    causes = checked_rows(findings)
    rows = [row for row in record.gradient_checks if whole or is_wrong(row) or row.n in causes]
    lines = [] if whole or not record.gradient_checks else [summary(record.gradient_checks)]
    return [*lines, *_table(record, rows, causes, ink)] if rows else lines


def summary(rows: Sequence[GradientCheck]) -> str:
    """Return one line: how many parameters agree, and what became of the others.

    `gradients at steps 0, 2: 4 of 6 parameters agree with the derivative of the loss; 2 not checked (...)`
    """
    worst: dict[int, GradientCheck] = {}
    for row in sorted(rows, key=lambda row: (not row.tensors, -_WORST_FIRST.index(row.verdict))):
        worst.update(dict.fromkeys(row.tensors or ([] if row.tensor is None else [row.tensor]), row))
    verdicts = Counter("explained" if _is_explained(row) else row.verdict for row in worst.values())
    reasons = list(dict.fromkeys(row.why for row in rows if row.why is not None))
    reason = f" ({plain(reasons[0])})" if reasons else ""
    if not verdicts or set(verdicts) == {"not-checked"}:
        return f"gradients: not checked{reason}"
    steps = sorted({row.step for row in rows if row.step is not None and row.verdict != "not-checked"})
    at = f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"
    parts = [f"{verdicts['agrees']} of {count_noun(len(worst), 'parameter')} agree with the derivative of the loss"]
    known = list(dict.fromkeys(row.explained_by for row in worst.values() if _is_explained(row)))
    parts += (
        [f"{count_noun(verdicts['explained'], 'differs', 'differ')} for a known reason ({plain(known[0] or '')})"]
        if known
        else []
    )
    wrong = sum(verdicts[verdict] for verdict in ("cut", "differs", "factor"))
    parts += [f"{count_noun(wrong, 'does', 'do')} not"] if wrong else []
    parts += [f"{verdicts['rough']} could not be compared (the loss is not smooth here)"] if verdicts["rough"] else []
    parts += [f"{verdicts['not-checked']} not checked{reason}"] if verdicts["not-checked"] else []
    return f"gradients at {at}: " + "; ".join(parts)


def _is_explained(row: GradientCheck) -> bool:
    return row.verdict in ("cut", "differs", "factor") and not is_wrong(row)


def _table(record: Record, rows: Sequence[GradientCheck], causes: Mapping[int, Finding], ink: Ink) -> list[str]:
    shown = rows[:_MOST]
    names = cut_apart([_name(record, row) for row in shown], _MOST_NAME)
    cells = [
        (str(row.step), name, _number(row.numeric), _number(row.used)) for row, name in zip(shown, names, strict=True)
    ]
    wide = [max(columns(line[at]) for line in [_HEAD, *cells]) for at in range(len(_HEAD))]
    lines = [ink("strong", "gradient check"), ink("quiet", f"  {_line(_HEAD, wide)}  verdict")]
    for row, line in zip(shown, cells, strict=True):
        cause = causes.get(row.n)
        role = "good" if row.verdict == "agrees" else "warning" if is_wrong(row) or cause is not None else "quiet"
        text = verdict_text(record, row) + ("" if cause is None else f": see {cause.rule.code} {cause.rule.name}")
        lines.append(f"  {_line(line, wide)}  {ink(role, text)}")
    if len(rows) > _MOST:
        lines.append(f"  ... and {count_noun(len(rows) - _MOST, 'more row')}: `--format json` has them all")
    return lines


def is_wrong(row: GradientCheck) -> bool:
    """Return whether what was used is not the derivative, and nothing explains it, or a mistake does."""
    return row.verdict in ("cut", "factor", "differs") and (row.explained_by is None or row.cause is not None)


def verdict_text(record: Record, row: GradientCheck) -> str:
    """Write the row's verdict and its reason in words; the record gives the line."""
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
    """Return whether what is used is the derivative along the paths that the program leaves open.

    The program states which paths it shuts.
    """
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
    more = f" and {count_noun(len(row.tensors) - 1, 'more')}" if len(row.tensors) > 1 else ""
    return plain(name or "-") + more.replace("mores", "more")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    return "  ".join(pad_text(cell, size) for cell, size in zip(cells, wide, strict=True))
