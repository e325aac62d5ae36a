"""Findings and failures as diagnostics, on the lines that are still as they ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from lsprotocol import types as lsp

from backprobe.language_server.documents import Document
from backprobe.language_server.runs.results import Failure, Result
from backprobe.rules.framework.finding import Finding, Region
from backprobe.show.plain_text import plain

SOURCE: Final = "backprobe"
SEVERITY: Final = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}
Documents = Callable[[str], Document | None]
"""The document of an absolute path with the result's text attached; None: the result's text cannot be placed in it."""


def diagnostics(result: Result, path: str, documents: Documents, rules_at: str | None) -> list[lsp.Diagnostic]:
    """List what a result says of one file.

    Args:
        path: Of the file, absolute.
        documents: Where related lines of other files stand now.
        rules_at: Address of the service, which has a page for each rule; None: there is none.
    """
    document = documents(path)
    if document is None:
        return []
    shown = [
        _diagnostic(finding, where, documents, rules_at)
        for finding in result.findings
        if finding.location.path == path and (where := document.range_now(finding.location.region)) is not None
    ]
    if result.failure is not None and (result.failure.path or result.entry) == path:
        failed = _report_failure(result.failure, document)
        shown += [] if failed is None else [failed]
    return shown


def _diagnostic(finding: Finding, where: lsp.Range, documents: Documents, rules_at: str | None) -> lsp.Diagnostic:
    return lsp.Diagnostic(
        range=where,
        message=plain(finding.message, keep_newlines=True),
        severity=SEVERITY[finding.level],
        code=finding.rule.code,
        code_description=None if rules_at is None else lsp.CodeDescription(href=rules_at + finding.rule.url),
        source=SOURCE,
        related_information=_list_related(finding, documents),
        data=finding.fingerprint,
    )


def _list_related(finding: Finding, documents: Documents) -> list[lsp.DiagnosticRelatedInformation]:
    """List the reason chain, as far as its lines are still as they ran."""
    found: list[lsp.DiagnosticRelatedInformation] = []
    for row in finding.related:
        document = documents(row.location.path)
        where = None if document is None else document.range_now(row.location.region)
        if where is not None:
            place = lsp.Location(uri=Path(row.location.path).as_uri(), range=where)
            found.append(lsp.DiagnosticRelatedInformation(location=place, message=plain(row.message)))
    return found


def _report_failure(failure: Failure, document: Document) -> lsp.Diagnostic | None:
    """Report the end of a program that raised, on the line that raised; on the first line if none is known."""
    ran = max(1, failure.line or 1)
    lines = document.ran or []
    if ran > len(lines):
        ran = max(1, len(lines))
    text = lines[ran - 1] if lines else ""
    indent = len(text) - len(text.lstrip())
    region = Region(start_line=ran, start_col=indent + 1, end_line=ran, end_col=len(text.rstrip()) + 1)
    where = document.range_now(region)
    if where is None:
        return None
    return lsp.Diagnostic(
        range=where,
        message=plain(failure.message, keep_newlines=True),
        severity=lsp.DiagnosticSeverity.Error,
        source=SOURCE,
        code="program-failed",
    )
