"""What of the report is read without scripts: source, tensors, backward calls, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.show.amounts import count_noun, format_bytes, format_shape
from backprobe.show.backward_calls import call_rows
from backprobe.show.held_graphs import held_lines, step_lines
from backprobe.show.html_report.markup import Html, join_parts, name, prose, tag, text
from backprobe.show.plain_text import cut
from backprobe.show.tensor_table import tensor_rows

if TYPE_CHECKING:
    from backprobe.record import Record, Source
    from backprobe.rules.framework.finding import Finding

MOST_TENSORS: Final = 60
MOST_CALLS: Final = 40
MOST_LINES: Final = 1200
"""Of the file that was started."""

MOST_NAMES: Final = 6


def pane(key: str, title: str, summary: str, *parts: str | None, hidden: bool = False) -> Html:
    """Build a section with its head."""
    head = tag("header", tag("h2", title, id=f"{key}-title"), tag("span", summary, class_="sum") if summary else None)
    return tag("section", head, *parts, class_="pane", id=key, aria_labelledby=f"{key}-title", hidden=hidden)


def source_pane(record: Record, findings: Sequence[Finding]) -> Html:
    """Write the file that was started, with the names that each line bound and the findings on it."""
    found = _find_started_source(record)
    if found is None:
        return pane(
            "source", "Source", "", tag("div", tag("p", "The source is not in the record."), class_="inner calm")
        )
    lines = found.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    notes = _notes(record, found, findings)
    levels = {
        finding.location.region.start_line: finding.level
        for finding in reversed(findings)
        if finding.location.path == found.path
    }
    shown = [
        tag(
            "li",
            tag("a", number, class_="number", href=f"#L{number}", aria_label=f"Line {number}"),
            tag("code", text(line, block=True), class_="code"),
            tag("ul", *notes[number], class_="notes") if number in notes else None,
            id=f"L{number}",
            data_line=number,
            class_=levels.get(number),
        )
        for number, line in enumerate(lines[:MOST_LINES], 1)
    ]
    more = f"The first {MOST_LINES:,} of {len(lines):,} lines." if len(lines) > MOST_LINES else None
    listed = tag("ol", *shown, class_="source holds", tabindex="0", aria_label=f"Lines of {found.path}")
    return pane("source", "Source", found.path, listed, tag("p", more, class_="skipped") if more else None)


def _find_started_source(record: Record) -> Source | None:
    kept = [row for row in record.sources if row.text]
    return next((row for row in kept if row.rewritten), kept[0] if kept else None)


def _notes(record: Record, found: Source, findings: Sequence[Finding]) -> dict[int, list[Html]]:
    index = lookup(record)
    notes: defaultdict[int, list[Html]] = defaultdict(list)
    for finding in findings:
        if finding.location.path == found.path:
            rule = f"{finding.rule.code} {finding.rule.name}"
            notes[finding.location.region.start_line].append(tag("li", text(rule), class_="finding"))
    last: dict[tuple[int, str], int] = {}
    times: Counter[tuple[int, str]] = Counter()
    for row in record.bindings:
        site = index.sites.get(row.site) if row.site is not None else None
        if site is not None and site.source == found.source:
            last[site.line, row.name] = row.tensor
            times[site.line, row.name] += 1
    for (line, called), tensor in last.items():
        history = index.snapshots_of[tensor]
        if not history or len(notes[line]) >= MOST_NAMES:
            continue
        many = f" \u00d7{times[line, called]}" if times[line, called] > 1 else ""
        kind = "leaf" if history[-1].is_leaf else "not leaf"
        grad = {"present": "has a gradient", "none": "grad None"}.get(history[-1].grad, "")
        facts = ", ".join(filter(None, (kind, "" if history[-1].requires_grad else "requires no grad", grad)))
        shape = format_shape(index.tensors[tensor].shape)
        notes[line].append(
            tag(
                "li",
                tag("span", name(called), class_="name"),
                many,
                " ",
                tag("span", shape, class_="mono"),
                f" {facts}",
                data_t=tensor,
                data_with_line=line,
            )
        )
    return dict(notes)


def tensors_pane(record: Record) -> Html:
    """Write the named tensors with their last state; those without a gradient that was wanted come first."""
    rows = tensor_rows(record)
    if not rows:
        return pane(
            "tensors", "Tensors", "", tag("div", tag("p", "No tensor with a name was seen."), class_="inner calm")
        )
    head = ("Name", "Line", "Shape", "is_leaf", "requires_grad", "grad_fn", "Gradient, or why there is none")
    body = [
        tag(
            "tr",
            tag(
                "th", name(row.name + (f" \u00d7{row.times}" if row.times > 1 else "")), scope="row", class_="mono cut"
            ),
            tag("td", row.line, class_="number", data_label="line"),
            tag("td", format_shape(row.shape), class_="mono tight", data_label="shape"),
            tag("td", str(row.is_leaf), data_label="is_leaf"),
            tag("td", str(row.requires_grad), data_label="requires_grad"),
            tag("td", name(row.grad_fn or "None"), class_="mono", data_label="grad_fn"),
            tag(
                "td",
                _gradient(row.gradient, row.why.text if row.why else "", row.arrived),
                class_="cut",
                data_label="gradient",
            ),
            id=f"t{row.tensor}",
            data_t=row.tensor,
            data_with_line=row.line,
        )
        for row in rows[:MOST_TENSORS]
    ]
    total = f"{min(MOST_TENSORS, len(rows))} of {len(rows):,} names, with the last state of each"
    return pane("tensors", "Tensors", total, _table(head, body, "Table of tensors", "stacks"))


def _gradient(gradient: str | None, why: str, arrived: str | None) -> Html:
    if gradient:
        return tag("span", text(cut(gradient, 160)), class_="mono")
    came = f"; what arrived: {cut(arrived, 120)}" if arrived else ""
    return join_parts(("None", tag("span", text(cut(why, 400) + came), class_="under") if why else None))


def calls_pane(record: Record) -> Html:
    """Write the backward calls: flags, what they ran and freed."""
    rows = call_rows(record)
    if not rows:
        said = "Neither backward() nor autograd.grad() was called."
        return pane("backward-calls", "Backward calls", "", tag("div", tag("p", said), class_="inner calm"))
    head = ("Call", "Line", "Entry", "retain_graph", "create_graph", "Nodes run", "Freed", "Still held", "Ended")
    body = [
        tag(
            "tr",
            tag("th", row.number, scope="row", class_="number", data_label="call"),
            tag("td", row.line, class_="number", data_label="line"),
            tag("td", row.entry, class_="mono tight"),
            tag("td", str(row.retain_graph), data_label="retain_graph"),
            tag("td", str(row.create_graph), data_label="create_graph"),
            tag("td", f"{row.nodes_run} of {row.nodes_met}", class_="number", data_label="nodes run"),
            tag("td", format_bytes(row.freed_bytes), class_="number", data_label="freed"),
            tag("td", format_bytes(row.kept_bytes), class_="number", data_label="still held"),
            tag("td", text(row.outcome), class_="ending"),
            id=f"call-{row.number - 1}",
            data_call=row.number - 1,
            data_with_line=row.line,
        )
        for row in rows[:MOST_CALLS]
    ]
    total = f"the first {MOST_CALLS} of {len(rows):,}" if len(rows) > MOST_CALLS else count_noun(len(rows), "call")
    return pane(
        "backward-calls", "Backward calls", total, _table(head, body, "Table of backward calls", "calls stacks")
    )


def held_twin(record: Record) -> Html:
    """Write what outlives its step and which steps went wrong, in the words of the command line."""
    lines = [*held_lines(record), *step_lines(record)]
    if not lines:
        return tag("p", "Nothing of a graph grew or was still held by a name that was searched for.", class_="calm")
    return tag("ul", *(tag("li", prose(line.strip())) for line in lines))


def _table(head: Iterable[str], body: Iterable[Html], label: str, kind: str | None = None) -> Html:
    top = tag("thead", tag("tr", *(tag("th", title, scope="col") for title in head)))
    table = tag("table", top, tag("tbody", *body), class_=kind)
    return tag("div", table, class_="scroll holds", tabindex="0", role="region", aria_label=label)
