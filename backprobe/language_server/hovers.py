"""The text about the line under the cursor: its findings with their reason chains, and its tensors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lsprotocol import types as lsp

from backprobe.language_server.documents import Document
from backprobe.language_server.hints import describe_tensor
from backprobe.language_server.runs.results import Result
from backprobe.rules.framework.finding import Finding
from backprobe.show.plain_text import plain

_MARKUP: Final = re.compile(r"([\\*_{}\[\]<>#+!|~&])")
MOST_TENSORS: Final = 5


def hover(document: Document, result: Result, path: str, position: lsp.Position, *, markdown: bool) -> lsp.Hover | None:
    """Return what is known of a line; None if nothing is, or it was edited since it ran.

    Args:
        path: The document's, absolute.
        markdown: The editor shows it; else the text is plain.
    """
    blocks: list[str] = []
    shown: lsp.Range | None = None
    for finding in result.findings:
        where = document.range_now(finding.location.region) if finding.location.path == path else None
        if where is not None and where.start.line <= position.line <= where.end.line:
            shown = shown or where
            blocks.append("\n".join(_describe_finding(finding, document, path, markdown=markdown)))
    tensors = [
        describe_tensor(tensor)
        for tensor in result.tensors
        if tensor.path == path and document.line_now(tensor.line - 1) == position.line
    ]
    if len(tensors) > MOST_TENSORS:
        tensors[MOST_TENSORS:] = [f"and {len(tensors) - MOST_TENSORS} more tensors"]
    blocks += [_fence_text(text) if markdown else text for text in tensors]
    if not blocks:
        return None
    kind = lsp.MarkupKind.Markdown if markdown else lsp.MarkupKind.PlainText
    separator = "\n\n---\n\n" if markdown else "\n\n"
    return lsp.Hover(contents=lsp.MarkupContent(kind=kind, value=separator.join(blocks)), range=shown)


def _describe_finding(finding: Finding, document: Document, path: str, *, markdown: bool) -> Iterator[str]:
    say = _escape_markdown if markdown else plain
    end = "\n" if markdown else ""
    head = f"{finding.rule.code} {finding.rule.name}"
    yield (f"**{head}**" if markdown else head) + f" ({finding.level}, {finding.confidence})" + end
    for line in finding.message.split("\n"):
        yield say(line) + ("  " if markdown else "")
    if finding.related:
        yield end + "How it came to be:" + end
        for n, row in enumerate(finding.related, start=1):
            place = row.location
            ran = place.region.start_line
            now = document.line_now(ran - 1) if place.path == path else None
            line = f"line {ran if now is None else now + 1}" + (
                ", edited since" if now is None and place.path == path else ""
            )
            file = "" if place.path == path else f"{Path(place.path).name}, "
            yield f"{n}. {say(file)}{line}: {say(row.message)}"
    facts = ", ".join(f"{name} = {_value(value)}" for name, value in finding.evidence.items())
    if facts:
        yield end + "Evidence: " + say(facts) + end
    if finding.occurrences.count > 1:
        yield f"Seen {finding.occurrences.count:,} times, from step {finding.occurrences.first_step} on." + end
    for fix in finding.fixes:
        yield f"Fix ({fix.safety}): {say(fix.title)}" + ("  " if markdown else "")


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)


def _escape_markdown(text: str) -> str:
    """Escape a stranger's text for Markdown: no link, no image, no HTML. Code spans stay."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:  # an odd number of backquotes: the last one opens nothing
        parts[-2:] = [parts[-2] + "'" + parts[-1]]
    return "`".join(part if n % 2 else _MARKUP.sub(r"\\\1", part) for n, part in enumerate(parts))


def _fence_text(text: str) -> str:
    """Lines as they are; no fence can end inside, whatever they hold."""
    return "```text\n" + text.replace("```", "'''") + "\n```"
