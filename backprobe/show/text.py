"""Record and findings as text for a terminal: tensors, backward calls, findings, and what was judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from backprobe.record.record import THINNED
from backprobe.record.series import steps_looked_at
from backprobe.rules.table import shared_tables
from backprobe.show.amounts import counted, shaped, sized
from backprobe.show.calls import CallRow, call_rows
from backprobe.show.finding_text import finding_lines
from backprobe.show.held import held_lines, step_lines
from backprobe.show.ink import Ink, columns, padded
from backprobe.show.origins import origin_lines
from backprobe.show.plain import cut, plain
from backprobe.show.tensors import TensorRow, tensor_rows

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.judge import Judgement

MAX_TENSORS: Final = 60
MAX_CALLS: Final = 20
_HEAD: Final = ("name", "line", "shape", "requires_grad", "is_leaf", "retains_grad", "grad_fn")


def render(record: Record, judgement: Judgement, *, color: bool = False, width: int = 100) -> str:
    """The whole report, without a newline at its end.

    Args:
        color: Write ANSI colours. width: columns of the terminal; tables cut their last column to it.
    """
    with shared_tables(record):
        return _rendered(record, judgement, Ink(color), width)


def _rendered(record: Record, judgement: Judgement, ink: Ink, width: int) -> str:
    blocks = [_tensors(record, ink, width), _calls(record, ink)]
    blocks += [
        [ink("strong", head), *lines]
        for head, lines in (("held graphs", held_lines(record)), ("steps", step_lines(record)))
        if lines
    ]
    blocks += [finding_lines(record, finding, ink) for finding in judgement.findings if finding.suppressed is None]
    blocks.append(origin_lines(record))
    blocks.append(_incomplete(record, judgement, ink))
    blocks.append([summary(record, judgement)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def summary(record: Record, judgement: Judgement) -> str:
    """One line: what was judged and how many findings there are."""
    hidden = sum(finding.suppressed is not None for finding in judgement.findings)
    rules = counted(judgement.rules_judged, "rule")
    if judgement.not_run:
        rules = f"{judgement.rules_judged} of {counted(judgement.rules_judged + len(judgement.not_run), 'rule')}"
    named = sum(row.times for row in tensor_rows(record))
    calls = counted(len(record.backward_calls), "backward call")
    looked_at, made = steps_looked_at(record.steps)
    calls += f", {looked_at:,} of {counted(made, 'step')} looked at (`--every 1` for all)" if looked_at < made else ""
    line = f"{rules}, {counted(named, 'tensor')}, {calls}, {counted(len(judgement.findings) - hidden, 'finding')}"
    line += f" ({hidden} suppressed)" if hidden else ""
    return line + (", record incomplete" if record.truncated else "")


def _tensors(record: Record, ink: Ink, width: int) -> list[str]:
    rows = tensor_rows(record)
    if not rows:
        return [ink("strong", "tensors"), "  none with a name was seen"]
    several = len({row.path for row in rows if row.path is not None}) > 1
    cells = [_cells(row, several=several) for row in rows[:MAX_TENSORS]]
    wide = [max(columns(line[at]) for line in [_HEAD, *cells]) for at in range(len(_HEAD))]
    lines = [ink("strong", "tensors"), ink("quiet", f"  {_line(_HEAD, wide)}  gradient")]
    for row, line in zip(rows, cells, strict=False):
        text, gradient = "  " + _line(line, wide), gradient_text(row)
        if columns(text) + 2 + columns(gradient) <= width:
            lines.append(f"{text}  {gradient}")
        else:
            lines += [text.rstrip(), f"      gradient {ink('quiet', gradient)}"]
    if len(rows) > MAX_TENSORS:
        lines.append(f"  ... and {counted(len(rows) - MAX_TENSORS, 'more name')}: `--format json` has them all")
    return lines


def _line(cells: Sequence[str], wide: Sequence[int]) -> str:
    return "  ".join(padded(cell, size) for cell, size in zip(cells, wide, strict=True))


def _cells(row: TensorRow, *, several: bool) -> tuple[str, ...]:
    name = cut(plain(row.name), 32) + (f" \u00d7{row.times}" if row.times > 1 else "")
    line = "-" if row.line is None else str(row.line)
    if several and row.path is not None:
        line = f"{cut(plain(row.path), 24)}:{line}"
    flags = (str(row.requires_grad), str(row.is_leaf), str(row.retains_grad))
    return (name, line, shaped(row.shape), *flags, plain(row.grad_fn or "None"))


def gradient_text(row: TensorRow) -> str:
    """What `.grad` holds, or `None` with the reason."""
    if row.gradient is not None:
        return plain(row.gradient)
    said = f"None: {plain(row.why.text)}" if row.why is not None else "None"
    return said + (f"; arrived: {plain(row.arrived)}" if row.arrived is not None else "")


def _calls(record: Record, ink: Ink) -> list[str]:
    rows = call_rows(record)
    if not rows:
        return [ink("strong", "backward calls"), "  none"]
    lines = [ink("strong", "backward calls")]
    alike = [list(group) for _key, group in groupby(rows, _alike)]
    for group in alike[:MAX_CALLS]:
        lines += _call_lines(group)
    if len(alike) > MAX_CALLS:
        rest = sum(len(group) for group in alike[MAX_CALLS:])
        lines.append(f"  ... and {counted(rest, 'more call')}: `--format json` has them all")
    return lines


def _alike(row: CallRow) -> tuple[object, ...]:
    flags = (row.retain_graph, row.retain_graph_given, row.create_graph, row.outcome, row.truncated)
    counts = (row.nodes_met, row.nodes_run, row.nodes_freed, row.held_bytes, row.freed_bytes) if row.nodes_met else ()
    return (row.path, row.line, row.entry, row.roots, *flags, *counts)


def _call_lines(group: Sequence[CallRow]) -> list[str]:
    row = group[0]
    number = str(row.number) if len(group) == 1 else f"{row.number}-{group[-1].number}"
    place = "line ?" if row.line is None else f"line {row.line}"
    retain = "given" if row.retain_graph_given is not None else "default"
    roots = plain(", ".join(row.roots))
    flags = f"retain_graph={row.retain_graph} ({retain}), create_graph={row.create_graph}"
    ended = {"raised": "  raised an exception", "running": "  did not return"}.get(row.outcome, "")
    freed = f"ran {row.nodes_run:,} of {counted(row.nodes_met, 'node')}, freed {row.nodes_freed:,} of them"
    saved = f"{sized(row.freed_bytes)} of {sized(row.held_bytes)} saved; still held: {sized(row.kept_bytes)}"
    if row.truncated:
        freed = "at least: " + freed
    each = "each " if len(group) > 1 else ""
    told = (
        f"{each}{freed}; freed {saved}" if row.nodes_met else "the graph was not walked: nothing is said of its nodes"
    )
    return [f"  {number}  {place}  {row.entry} from `{roots}`  {flags}{ended}", f"  {' ' * len(number)}  {told}"]


def _incomplete(record: Record, judgement: Judgement, ink: Ink) -> list[str]:
    lines = [f"{ink('warning', 'not run')}: {rule.code} {rule.name} {rule.why}" for rule in judgement.not_run]
    if record.end is None:
        lines.append(f"{ink('warning', 'incomplete')}: the record stops before the program's end")
    for cap in [cap for cap in record.truncations if cap.what not in THINNED]:
        said = f"{plain(cap.what)}: {plain(cap.why)}"
        lines.append(f"{ink('warning', 'incomplete')}: {said}" + (f" (limit {cap.limit:,})" if cap.limit else ""))
    if record.end is not None and record.end.own_errors:
        own = counted(record.end.own_errors, "error")
        lines.append(f"{ink('warning', 'incomplete')}: {own} of Backprobe's own: {plain(record.end.own_error or '')}")
    return lines
