"""Record and findings as text for a terminal: what was judged, the findings, then what was seen.

A table that is long is named, and shown on request: nobody reads a hundred lines in which nothing was found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from backprobe.record.record import THINNED
from backprobe.record.rows.series import steps_looked_at
from backprobe.rules.framework.tables import shared_tables
from backprobe.show.amounts import count_noun, format_bytes, format_shape
from backprobe.show.backward_calls import NAMELESS, CallRow, call_rows
from backprobe.show.check_lines import checks_line
from backprobe.show.check_table import gradient_check_lines
from backprobe.show.formats.finding_text import finding_lines
from backprobe.show.held_graphs import held_lines, step_lines
from backprobe.show.nan_origins import origin_lines
from backprobe.show.plain_text import cut_apart, plain
from backprobe.show.slopes import MOST_APART, slope_text
from backprobe.show.tensor_table import FLAGS, TensorRow, count_of_tensors, tensor_rows
from backprobe.show.terminal_style import Ink, columns, pad_text

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement

CHILDREN: Final = "child processes"
"""What a truncation is called that counts those that were not looked at."""

FOLLOWED: Final = "followed child processes"
PARENT: Final = "before this process"

MAX_TENSORS: Final = 60
MAX_CALLS: Final = 20
SHORT: Final = 24
"""Lines up to which a table is shown unasked."""

_MOST_NAME: Final = 40
_MOST_PATH: Final = 32
_SAMPLED: Final = {
    "module calls": "modules that were called very often are known by some of their calls: 1, 2, 5, 10, 20, 50 ...",
}
"""What is thinned out, and what that means: findings hold, counts may be lower bounds."""

_HEAD: Final = ("name", "line", "shape", *FLAGS, "grad_fn")


def render(
    record: Record,
    judgement: Judgement,
    *,
    color: bool = False,
    width: int = 100,
    tables: bool | None = None,
    gradients: bool = False,
) -> str:
    """Render the report, without a newline at its end.

    Args:
        color: Write ANSI colours. width: columns of the terminal; tables cut their last column to it.
        tables: Show the tensors and the backward calls; None: those of at most `SHORT` lines.
        gradients: Show each gradient that was checked, not only those that are wrong.
    """
    with shared_tables(record):
        return _render_report(record, judgement, Ink(color), width, tables=tables, gradients=gradients or bool(tables))


def _render_report(
    record: Record, judgement: Judgement, ink: Ink, width: int, *, tables: bool | None, gradients: bool
) -> str:
    shown = [finding for finding in judgement.findings if finding.suppressed is None]
    blocks = [[summary(record, judgement), *_incomplete(record, judgement, ink)]]
    if not shown and (line := checks_line(judgement.checks)):
        blocks[0].append(line)
    blocks += [finding_lines(record, finding, ink) for finding in shown]
    blocks.append(origin_lines(record))
    blocks.append(gradient_check_lines(record, ink, judgement.findings, whole=gradients))
    blocks += [
        [ink("strong", head), *lines]
        for head, lines in (("held graphs", held_lines(record)), ("steps", step_lines(record)))
        if lines
    ]
    seen = [_tensors(record, ink, width), _calls(record, ink)]
    asked = [block for block in seen if tables or (tables is None and len(block) <= SHORT)]
    left_out = [f"{block[0]}: {count_noun(len(block) - 1, 'line')}" for block in seen if block not in asked]
    blocks += asked
    if left_out:
        blocks.append([f"{', '.join(left_out)}; `--tables` shows them"])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def summary(record: Record, judgement: Judgement) -> str:
    """One line: what was judged and how many findings there are."""
    hidden = sum(finding.suppressed is not None for finding in judgement.findings)
    rules = count_noun(judgement.rules_judged, "rule")
    if judgement.not_run:
        rules = f"{judgement.rules_judged} of {count_noun(judgement.rules_judged + len(judgement.not_run), 'rule')}"
    calls = count_noun(len(record.backward_calls), "backward call")
    looked_at, made = steps_looked_at(record.steps)
    if looked_at < made:
        calls += f", {looked_at:,} of {count_noun(made, 'step')} recorded (`--every 1` records all)"
    tensors, findings = count_noun(count_of_tensors(record), "tensor"), len(judgement.findings) - hidden
    line = f"{rules}, {tensors}, {calls}, {count_noun(findings, 'finding')}"
    line += f" ({hidden} suppressed)" if hidden else ""
    code = None if record.end is None else record.end.exit_code
    line += f", the program's exit code is {code}" if code else ""
    for what, said in ((FOLLOWED, "in records of their own"), (CHILDREN, "not looked at")):
        children = next((cap.seen for cap in record.truncations if cap.what == what), 0)
        line += f", {count_noun(children, 'child process', 'child processes')} {said}" if children else ""
    return line + (", record incomplete" if _is_incomplete(record) else "")


def _is_incomplete(record: Record) -> bool:
    """More is missing than what was thinned out by plan."""
    by_plan = {*THINNED, *_SAMPLED, CHILDREN, FOLLOWED, PARENT}
    return record.end is None or any(cap.what not in by_plan for cap in record.truncations)


def _tensors(record: Record, ink: Ink, width: int) -> list[str]:
    rows = tensor_rows(record)
    if not rows:
        return [ink("strong", "tensors"), "  none with a name was seen"]
    several = len({row.path for row in rows if row.path is not None}) > 1
    rows_shown = rows[:MAX_TENSORS]
    names = cut_apart([plain(row.name) for row in rows_shown], _MOST_NAME)
    paths = cut_apart([plain(row.path or "") for row in rows_shown], _MOST_PATH) if several else [""] * len(names)
    cells = [_cells(row, name, path) for row, name, path in zip(rows_shown, names, paths, strict=True)]
    wide = [max(columns(line[at]) for line in [_HEAD, *cells]) for at in range(len(_HEAD))]
    lines = [ink("strong", "tensors"), ink("quiet", f"  {_line(_HEAD, wide)}  gradient")]
    for row, line in zip(rows, cells, strict=False):
        text, gradient = "  " + _line(line, wide), gradient_text(row)
        if columns(text) + 2 + columns(gradient) <= width:
            lines.append(f"{text}  {gradient}")
        else:
            lines += [text.rstrip(), f"      gradient {ink('quiet', gradient)}"]
    if len(rows) > MAX_TENSORS:
        lines.append(f"  ... and {count_noun(len(rows) - MAX_TENSORS, 'more name')}: `--format json` has them all")
    return lines


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    return "  ".join(pad_text(cell, size) for cell, size in zip(cells, wide, strict=True))


def _cells(row: TensorRow, name: str, path: str) -> tuple[str, ...]:
    name += f" \u00d7{row.times}" if row.times > 1 else ""
    line = "-" if row.line is None else str(row.line)
    if path:
        line = f"{path}:{line}"
    flags = (str(getattr(row, flag)) for flag in FLAGS)
    return (name, line, format_shape(row.shape), *flags, plain(row.grad_fn or "None"))


def gradient_text(row: TensorRow) -> str:
    """Write what `.grad` holds, or `None` with the reason."""
    if row.gradient is not None:
        return plain(row.gradient)
    said = f"None: {plain(row.why.text)}" if row.why is not None else "None"
    return said + (f"; arrived: {plain(row.arrived)}" if row.arrived is not None else "")


def _calls(record: Record, ink: Ink) -> list[str]:
    rows = call_rows(record)
    if not rows:
        return [ink("strong", "backward calls"), "  none"]
    lines = [ink("strong", "backward calls")]
    alike: dict[tuple[object, ...], list[CallRow]] = {}
    for row in rows:
        alike.setdefault(_alike(row), []).append(row)
    places = Counter(_place(group[0]) for group in alike.values())
    folded: dict[tuple[object, ...], list[CallRow]] = {}
    for key, group in alike.items():
        place = _place(group[0])
        folded.setdefault(place if places[place] > MOST_APART and group[0].nodes_met else key, []).extend(group)
    groups = list(folded.values())
    for group in groups[:MAX_CALLS]:
        lines += _call_lines(group)
    if len(groups) > MAX_CALLS:
        rest = sum(len(group) for group in groups[MAX_CALLS:])
        lines.append(f"  ... and {count_noun(rest, 'more call')}: `--format json` has them all")
    return lines


def _alike(row: CallRow) -> tuple[object, ...]:
    counts = (row.nodes_met, row.nodes_run, row.nodes_freed, row.held_bytes, row.freed_bytes) if row.nodes_met else ()
    return (*_place(row), *counts)


def _place(row: CallRow) -> tuple[object, ...]:
    """Return what the calls of one statement share, whatever they ran and freed."""
    flags = (row.retain_graph, row.retain_graph_given, row.create_graph, row.outcome, row.truncated)
    return (row.path, row.line, row.entry, row.roots, *flags)


def _call_lines(group: Sequence[CallRow]) -> list[str]:
    row = group[0]
    number = _shorten_numbers(sorted(call.number for call in group))
    place = "line ?" if row.line is None else f"line {row.line}"
    retain = "given" if row.retain_graph_given is not None else "default"
    flags = f"retain_graph={row.retain_graph} ({retain}), create_graph={row.create_graph}"
    ended = {"raised": "  raised an exception", "running": "  did not return"}.get(row.outcome, "")
    freed = f"ran {row.nodes_run:,} of {count_noun(row.nodes_met, 'node')}, freed {row.nodes_freed:,} of them"
    saved = f"{format_bytes(row.freed_bytes)} of {format_bytes(row.held_bytes)} saved"
    saved += f"; still held: {format_bytes(row.kept_bytes)}"
    if row.truncated:
        freed = "at least: " + freed
    if len({_alike(call) for call in group}) > 1:
        told = ("at least: " if row.truncated else "") + slope_text(sorted(group, key=lambda call: call.number))
        return [
            f"  {number}  {place}  {row.entry}{_describe_roots(row)}  {flags}{ended}",
            f"  {' ' * len(number)}  {told}",
        ]
    each = "each " if len(group) > 1 else ""
    told = (
        f"{each}{freed}; freed {saved}" if row.nodes_met else "the graph was not walked: nothing is said of its nodes"
    )
    return [f"  {number}  {place}  {row.entry}{_describe_roots(row)}  {flags}{ended}", f"  {' ' * len(number)}  {told}"]


def _shorten_numbers(numbers: Sequence[int]) -> str:
    """`3`, `3-5` for neighbours, `1, 3 ... 19` for calls that alternate with others."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 1:
        return str(first)
    if last - first == len(numbers) - 1:
        return f"{first}-{last}"
    return f"{first}, {last}" if len(numbers) == 2 else f"{first}, {numbers[1]} ... {last}"


def _describe_roots(row: CallRow) -> str:
    """Name the roots that have names. The line says all that is known of a value without one."""
    named = [plain(root) for root in row.roots if root != NAMELESS]
    more = len(row.roots) - len(named)
    if not named:
        return ""
    return f" from `{', '.join(named)}`" + (f" and {count_noun(more, 'value')} without a name" if more else "")


def _incomplete(record: Record, judgement: Judgement, ink: Ink) -> list[str]:
    lines = [f"{ink('warning', 'not run')}: {rule.code} {rule.name} {rule.why}" for rule in judgement.not_run]
    if record.end is None:
        lines.append(f"{ink('warning', 'incomplete')}: the record stops before the program's end")
    for cap in record.truncations:
        if cap.what in _SAMPLED:
            lines.append(f"{ink('note', 'sampled')}: {_SAMPLED[cap.what]}")
            continue
        if cap.what == CHILDREN:
            ran = count_noun(cap.seen, "child process", "child processes")
            lines.append(f"{ink('warning', 'not looked at')}: {ran} of the program: {plain(cap.why)}")
            continue
        if cap.what in {*THINNED, FOLLOWED}:
            continue
        if cap.what == PARENT:
            lines.append(f"{ink('note', 'a child process')}: {plain(cap.why)}")
            continue
        said = f"{plain(cap.what)}: {plain(cap.why)}"
        lines.append(f"{ink('warning', 'incomplete')}: {said}" + (f" (limit {cap.limit:,})" if cap.limit else ""))
    if record.end is not None and record.end.own_errors:
        own = count_noun(record.end.own_errors, "error")
        lines.append(f"{ink('warning', 'incomplete')}: {own} of Backprobe's own: {plain(record.end.own_error or '')}")
    return lines
