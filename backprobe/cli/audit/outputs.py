"""Repeated `--format X --output F`: each format has its file, or standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backprobe.cli.exit_codes import OutputLost, UsageError
from backprobe.show.audits.report import AuditReport

FORMATS: Final = ("text", "json", "sarif", "junit", "github", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A format, and the file that it goes to; None: standard output."""

    form: str
    path: Path | None


def outputs(formats: Sequence[str], paths: Sequence[Path]) -> tuple[Output, ...]:
    """Pair formats with files, in order. The last format may have no file, and goes to standard output.

    Raises:
        UsageError: there are other numbers of them, or a file cannot be written.
    """
    if not formats:
        if len(paths) > 1:
            raise UsageError("each --output needs its own --format before it")
        formats = ("text",)
    if len(paths) not in (len(formats), len(formats) - 1):
        raise UsageError(f"{len(formats)} --format and {len(paths)} --output: each format but the last wants its file")
    for path in paths:
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UsageError(f"`{path}` cannot be written: name a file in a folder that is there")
    given = [*paths, *([None] * (len(formats) - len(paths)))]
    asked = tuple(Output(form=form, path=path) for form, path in zip(formats, given, strict=True))
    return _without_html(asked) if "html" in formats else asked


def _without_html(asked: tuple[Output, ...]) -> tuple[Output, ...]:
    """All of them where the report's scripts were built; else the other formats, with a word about it.

    Raises:
        UsageError: there are no others.
    """
    from backprobe.show.html_report.assets import AssetsMissing, assets

    try:
        assets()
    except AssetsMissing as error:
        others = tuple(output for output in asked if output.form != "html")
        if not others:
            raise UsageError(f"--format html: {error}") from None
        print(f"backprobe: no HTML report is written: {error}", file=sys.stderr)
        return others
    return asked


def write(report: AuditReport, asked: Sequence[Output]) -> None:
    """Write the report in each format; GitHub's step summary gets it as a table where that is set.

    Raises:
        OutputLost: a file could not be written.
    """
    for output in asked:
        text = render_report(report, output.form)
        if output.path is None:
            print(text)
            continue
        try:
            output.path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise OutputLost(f"`{output.path}` was not written ({error.strerror})") from None
    step = os.environ.get("GITHUB_STEP_SUMMARY")
    if step and any(output.form == "github" for output in asked):
        try:
            with Path(step).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(step_summary(report))
        except OSError as error:
            print(f"backprobe: the step's summary was not written ({error.strerror})", file=sys.stderr)


def render_report(report: AuditReport, form: str) -> str:
    """Render the report in one format."""
    told = [item.reported for item in report.items]
    if form == "json":
        return json.dumps(report.json(), indent=2)
    if form == "sarif":
        from backprobe.show.formats import sarif

        return sarif.render(told, name=report.name)
    if form == "junit":
        from backprobe.show.formats import junit

        return junit.render(told).rstrip("\n")
    if form == "github":
        from backprobe.show.audits.text import summary
        from backprobe.show.formats import github

        at = f"; audit {report.audit}" if report.audit else ""
        return github.render(told, verdict=summary(report).partition("\n")[0] + at)
    if form == "html":
        from backprobe.show.audits import html

        return html.render(report)
    from backprobe.show.audits import text

    return text.render(report)


def step_summary(report: AuditReport) -> str:
    """Write the programs that do not pass, as a table in Markdown."""
    from backprobe.show.audits.text import summary
    from backprobe.show.plain_text import plain

    rows = [
        f"| {item.verdict or 'not-run'} | `{plain(item.name).replace('`', '').replace('|', '/')}` "
        f"| {', '.join(cell.rule for cell in item.cells)} |"
        for item in report.items
        if item.verdict != "pass"
    ]
    head = ["| verdict | program | rules |", "| --- | --- | --- |"] if rows else []
    return "\n".join([f"### Backprobe: {summary(report).partition(chr(10))[0]}", "", *head, *rows, ""])
