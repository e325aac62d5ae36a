"""What can be done about a finding: its fixes, a comment that suppresses it here, its rule's manual, its run's page."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from lsprotocol import types as lsp

from backprobe.language_server.diagnostics import SOURCE, Documents
from backprobe.language_server.documents import Document
from backprobe.language_server.runs.results import Result
from backprobe.rules.framework.finding import Edit, Finding, Fix
from backprobe.show.trial_words import trial_words

REASON: Final = "say here why this is meant"
"""Stands behind `--` in a comment that suppresses, to be written over."""

_SAFETY: Final = {"safe": "", "unsafe": " (may change what the program does)", "manual": " (look at it first)"}


def actions(
    result: Result, path: str, asked: Sequence[lsp.Diagnostic], documents: Documents, *, versioned: bool
) -> list[lsp.CodeAction]:
    """List what can be done about these diagnostics.

    Args:
        path: Of the file they are in, absolute.
        asked: As the editor hands them back; `data` has the fingerprint of the finding.
        versioned: The editor takes edits of a named version of a document, and refuses them once that has changed.
    """
    document = documents(path)
    if document is None:
        return []
    found: list[lsp.CodeAction] = []
    for diagnostic in asked:
        finding = _finding(result, path, document, diagnostic)
        if finding is not None:
            retire = _retiring(finding, document)
            found += _fixes(finding, diagnostic, documents, retire, versioned=versioned)
            found += _suppressing(finding, document, diagnostic, retire, versioned=versioned)
            found.append(_explaining(finding, diagnostic))
            if result.page is not None:
                found.append(_opening(result.page, diagnostic))
    return found


def _finding(result: Result, path: str, document: Document, diagnostic: lsp.Diagnostic) -> Finding | None:
    """Find the finding behind a diagnostic, if its lines are still as they ran."""
    if diagnostic.source != SOURCE:
        return None
    for finding in result.findings:
        if finding.fingerprint == diagnostic.data and finding.location.path == path:
            return finding if document.range_now(finding.location.region) is not None else None
    return None


def _retiring(finding: Finding, document: Document) -> lsp.Command:
    """Build the command that an editor sends when it has applied an edit: it retires the finding."""
    return lsp.Command(title="", command="backprobe.retire", arguments=[document.uri, finding.fingerprint])


def _fixes(
    finding: Finding, diagnostic: lsp.Diagnostic, documents: Documents, retire: lsp.Command, *, versioned: bool
) -> Iterator[lsp.CodeAction]:
    for fix in finding.fixes:
        edit = _workspace_edit(fix, documents, versioned=versioned)
        if edit is not None:
            yield lsp.CodeAction(
                title=fix.title + _SAFETY[fix.safety] + _describe_trial(fix),
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                is_preferred=fix.safety == "safe",
                edit=edit,
                command=retire,
            )


def _describe_trial(fix: Fix) -> str:
    """Say what the trial of the fix showed; empty if it was not tried."""
    return "" if fix.trial is msgspec.UNSET else f", {trial_words(fix.trial)}"


def _workspace_edit(fix: Fix, documents: Documents, *, versioned: bool) -> lsp.WorkspaceEdit | None:
    """Move the edits of a fix to where they are now; None if it has none, or a line that it changes was edited."""
    changes: dict[str, list[lsp.TextEdit]] = {}
    versions: dict[str, int | None] = {}
    for edit in fix.edits:
        document = documents(edit.path)
        where = None if document is None else _where(document, edit)
        if document is None or where is None:
            return None
        uri = document.uri
        versions[uri] = document.version
        changes.setdefault(uri, []).append(lsp.TextEdit(range=where, new_text=edit.text))
    return _edit(changes, versions, versioned=versioned) if changes else None


def _where(document: Document, edit: Edit) -> lsp.Range | None:
    return document.range_now(edit.region)


def _edit(
    changes: dict[str, list[lsp.TextEdit]], versions: dict[str, int | None], *, versioned: bool
) -> lsp.WorkspaceEdit:
    if not versioned:
        return lsp.WorkspaceEdit(changes=changes)
    return lsp.WorkspaceEdit(
        document_changes=[
            lsp.TextDocumentEdit(
                text_document=lsp.OptionalVersionedTextDocumentIdentifier(uri=uri, version=versions[uri]),
                edits=list(edits),
            )
            for uri, edits in changes.items()
        ]
    )


def _suppressing(
    finding: Finding, document: Document, diagnostic: lsp.Diagnostic, retire: lsp.Command, *, versioned: bool
) -> Iterator[lsp.CodeAction]:
    """Build a comment line above the statement; none where the text cannot be parsed."""
    line = document.line_now(finding.location.region.start_line - 1)
    head = None if line is None else _statement_at(document.text, line + 1)
    if head is None:
        return
    text = document.lines[head - 1]
    indent = text[: len(text) - len(text.lstrip())]
    comment = f"{indent}# backprobe: ignore[{finding.rule.name}] -- {REASON}\n"
    start = lsp.Position(line=head - 1, character=0)
    edit = lsp.TextEdit(range=lsp.Range(start=start, end=start), new_text=comment)
    uri = document.uri
    yield lsp.CodeAction(
        title=f"Suppress {finding.rule.name} here, with a reason",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=[diagnostic],
        is_preferred=False,
        edit=_edit({uri: [edit]}, {uri: document.version}, versioned=versioned),
        command=retire,
    )


def _statement_at(text: str, line: int) -> int | None:
    """Return the first line of the innermost statement around a line, decorators included; lines count from 1."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: int | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
            if first <= line <= (node.end_lineno or node.lineno):
                found = first if found is None else max(found, first)
    return found


def _explaining(finding: Finding, diagnostic: lsp.Diagnostic) -> lsp.CodeAction:
    title = f"Explain {finding.rule.code} {finding.rule.name}"
    command = lsp.Command(title=title, command="backprobe.explain", arguments=[finding.rule.name])
    return lsp.CodeAction(title=title, kind=lsp.CodeActionKind.QuickFix, diagnostics=[diagnostic], command=command)


def _opening(page: str, diagnostic: lsp.Diagnostic) -> lsp.CodeAction:
    command = lsp.Command(title="Open the run", command="backprobe.openRun", arguments=[page])
    return lsp.CodeAction(
        title="Open the run", kind=lsp.CodeActionKind.QuickFix, diagnostics=[diagnostic], command=command
    )
