"""The whole file: a policy by hashes, the panes, the answers for the islands, and the islands themselves."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import PurePath
from typing import TYPE_CHECKING

from backprobe.record.rows.series import steps_looked_at
from backprobe.rules.framework.tables import shared_tables
from backprobe.show.formats.terminal_report import summary
from backprobe.show.html_report.answers import answers
from backprobe.show.html_report.assets import assets
from backprobe.show.html_report.finding_cards import findings_pane
from backprobe.show.html_report.markup import Html, name, prose, tag, trust_text
from backprobe.show.html_report.panes import calls_pane, held_twin, pane, source_pane, tensors_pane

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.judge import Judgement


def render(record: Record, judgement: Judgement, *, script: str) -> str:
    """Render the report as one HTML document.

    Args:
        record: The record.
        judgement: What the rules say of it.
        script: What was run, for the title.

    Raises:
        AssetsMissing: scripts and styles were not built.
    """
    with shared_tables(record):
        return _render_document(record, judgement, script)


def _render_document(record: Record, judgement: Judgement, script: str) -> str:
    built = assets()
    told, first = answers(record, judgement.findings)
    # `<` as an escape: nothing in a name can end the element
    data = json.dumps(told, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src {_hash(built.script)}; style-src {_hash(built.style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{script} - Backprobe"),
        tag("style", trust_text(built.style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        tag("header", tag("div", tag("span", "Backprobe", class_="brand"), class_="wide"), class_="site"),
        tag("main", tag("div", *_main(record, judgement, script, first), class_="wide"), id="main", tabindex="-1"),
        tag(
            "footer",
            tag("div", tag("span", f"Written by Backprobe {_version()}; it asks for nothing."), class_="wide"),
            class_="foot",
        ),
        tag("script", trust_text(data), type="application/json", id="in-file"),
        tag("script", trust_text(built.script)),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}"


def _main(record: Record, judgement: Judgement, script: str, first: int | None) -> list[Html]:
    shown = [finding for finding in judgement.findings if finding.suppressed is None]
    _looked_at, made = steps_looked_at(record.steps)
    head = tag(
        "section",
        tag(
            "div",
            tag("h1", name(PurePath(script).name or script), title=script),
            tag("span", class_="tools", data_tools=""),
            class_="title",
        ),
        tag("p", prose(summary(record, judgement)), class_="said"),
        class_="head",
        aria_label="The run",
    )
    left = tag(
        "div",
        findings_pane(record, shown, made, judgement.rules_judged),
        source_pane(record, shown),
        _held_graphs_island(record),
        class_="column",
    )
    right = tag("div", *_islands(record, first), class_="column")
    wide = tag("div", tensors_pane(record), calls_pane(record), class_="column all")
    return [head, tag("div", left, right, wide, class_="run")]


def _held_graphs_island(record: Record) -> Html:
    island = tag("div", data_island="held", data_base="", data_twin="held-twin")
    twin = tag("div", held_twin(record), class_="inner", id="held-twin")
    return pane("held", "Saved tensors in memory", "what was still held after each backward call", island, twin)


def _islands(record: Record, first: int | None) -> list[Html]:
    if first is None:
        said = tag("div", tag("p", "No backward call was walked, so there is no graph to draw."), class_="inner calm")
        return [pane("graph", "Autograd graph", "", said)]
    calls = len(record.backward_calls)
    island = tag("div", data_island="graph", data_base="", data_calls=calls, data_first=first, data_twin="graph-twin")
    words = "This file's own script draws the graph; the table of backward calls says in words what each ran and freed."
    twin = tag("div", tag("p", words), class_="inner calm", id="graph-twin")
    heat = tag("div", data_island="heat", data_base="")
    return [
        pane("graph", "Autograd graph", "the root on top, gradients flow down", island, twin),
        pane("gradients", "Gradients over steps", "norm after each backward call", heat, hidden=True),
    ]


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _version() -> str:
    from backprobe import __version__

    return __version__
