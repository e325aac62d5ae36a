"""What tensors and their gradients were at a moment: `end`, `after-backward 2`, `optimizer-step 1`, or a number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.mcp_server.known_runs import KeptRun, NoRun
from backprobe.rules.analysis.gradients.why_none import why_none, why_none_after
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import shared_tables
from backprobe.show.amounts import count_noun, elements, format_shape, number
from backprobe.show.backward_calls import call_rows
from backprobe.show.plain_text import plain
from backprobe.show.tensor_table import FLAGS, name_of

if TYPE_CHECKING:
    from backprobe.record import Moment, Record, Snapshot

KINDS: Final = ("end", "before-backward", "after-backward", "optimizer-step")
_MOMENT: Final = re.compile(r"(?:(end)|(before-backward|after-backward|optimizer-step)(?:[ =](\d+))?|(\d+))")
_WRITTEN: Final = (
    "a moment is `end`, `before-backward K`, `after-backward K`, `optimizer-step K` (K counts from 1) or a number"
)


def moment_of(record: Record, asked: str) -> Moment:
    """Find the moment with this name.

    Raises:
        NoRun: it is no moment, or the run has none like it; the message names those it has.
    """
    written = _MOMENT.fullmatch(asked.strip())
    if written is None:
        raise NoRun(f"{asked!r} is no moment: {_WRITTEN}")
    end, kind, k, by_number = written.groups()
    if by_number is not None:
        found = [moment for moment in record.moments if moment.moment == int(by_number)]
    elif end:
        found = list(record.moments[-1:])
    else:
        of_kind = [moment for moment in record.moments if moment.kind == kind]
        found = of_kind[int(k or 1) - 1 : int(k or 1)] if int(k or 1) else []
    if not found:
        counts = {kind: sum(row.kind == kind for row in record.moments) for kind in KINDS[1:]}
        there = (
            ", ".join(f"{kind} 1 to {count}" for kind, count in counts.items() if count) or "none of backward or step"
        )
        raise NoRun(f"this run has no moment {asked!r}: it has `end`, and {there}")
    return found[0]


def tensors_at(run: KeptRun, name: str, asked: str) -> str:
    """List the tensors with this name, or all that have one, at a moment: one a line, and why its `.grad` is None."""
    record = run.record
    if not record.moments:
        return f"run {run.name} has no moment: no statement was seen"
    moment = moment_of(record, asked)
    with shared_tables(record):
        lines = list(_lines(record, name, moment))
    if not lines:
        raise NoRun(f"run {run.name} has no tensor named {name!r} at {asked}; without a name all are listed")
    when = f"moment {moment.moment} ({moment.kind}, {moment.step} steps before it)"
    head = f"run {run.name}, {count_noun(len(lines), 'tensor')} at {when}:"
    return "\n".join([head, *lines])


def _lines(record: Record, name: str, moment: Moment) -> Iterator[str]:
    index = lookup(record)
    at_end = moment.moment >= record.moments[-1].moment
    call = next(
        (backward_call.call for backward_call in record.backward_calls if backward_call.moment_after == moment.moment),
        None,
    )
    whys = why_none(record) if at_end else {} if call is None else why_none_after(record, call)
    small = {
        (row.tensor, row.of): row
        for row in sorted(record.small_values, key=lambda row: row.moment)
        if row.moment <= moment.moment
    }
    for tensor in record.tensors:
        called = name_of(index, tensor.tensor)
        history = [snapshot for snapshot in index.snapshots_of[tensor.tensor] if snapshot.moment <= moment.moment]
        bound = {binding.name for binding in index.bindings_of[tensor.tensor]}
        if called is None or not history or (name and name != called and name not in bound):
            continue
        last = history[-1]
        site = None if tensor.site is None else index.sites[tensor.site]
        place = "?" if site is None else f"line {site.line}"
        state = "leaf" if last.is_leaf else f"not leaf ({last.grad_fn or '?'})"
        value = small.get((tensor.tensor, "grad"))
        gradient = (
            f"grad {elements(value)}" if value is not None and last.grad == "present" else f"grad {_gradient(history)}"
        )
        arrived = small.get((tensor.tensor, "arrived"))
        if last.grad != "present" and arrived is not None:
            gradient += f"; arrived {elements(arrived)}"
        why = whys.get(tensor.tensor)
        because = f"; why None: {plain(str(why.text))}" if why is not None and last.grad != "present" else ""
        flags = ", ".join(f"{flag}={getattr(last, flag)}" for flag in FLAGS if flag != "is_leaf")
        what = f"{plain(called)} ({place}) {format_shape(tensor.shape)} {tensor.dtype}"
        yield f"  {what}: {state}, {flags}, {gradient}{because}"


def _gradient(history: list[Snapshot]) -> str:
    last = history[-1]
    if last.grad != "present":
        return "None" if last.grad == "none" else "not read (a non-leaf that does not retain it)"
    for snapshot in reversed(history):
        if (snapshot.grad_id, snapshot.grad_version) != (last.grad_id, last.grad_version):
            break
        if snapshot.grad_stats is not None and snapshot.grad_stats.norm is not None:
            return f"norm {number(snapshot.grad_stats.norm)}"
    return "present"


def backward_calls(run: KeptRun) -> str:
    """Each backward call: where, with which flags, what it ran, freed and left."""
    rows = call_rows(run.record)
    if not rows:
        return f"run {run.name} made no backward call"
    calls = count_noun(len(rows), "backward call")
    lines = [f"run {run.name}, {calls} (moment `after-backward K` is the state behind call K):"]
    for row in rows:
        given = "default" if row.retain_graph_given is None else "given"
        lines.append(
            f"  {row.number}. line {row.line} {row.entry} from {', '.join(map(plain, row.roots)) or '?'}:"
            f" retain_graph={row.retain_graph} ({given}), create_graph={row.create_graph}, ran {row.nodes_run} of"
            f" {row.nodes_met} nodes, freed {row.freed_bytes} B, still held {row.kept_bytes} B, {row.outcome}"
        )
    return "\n".join(lines)
