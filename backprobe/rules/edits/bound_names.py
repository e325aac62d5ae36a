"""Whether the names that a fix puts into the source are bound where it puts them: a fix is safe only if all are.

    scaler.unscale_(optimizer)         # put here, this reads a name that nothing has bound yet
    for optimizer in optimizers:
        scaler.step(optimizer)

1. What the statement beside an edit reads is bound there: it ran.
2. Another name is bound if `definite_names` says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.parse_bounds import parse_bounded
from backprobe.rules.edits.definite_names import bound_by, head_of, is_bound
from backprobe.rules.edits.text_edits import edited

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Edit, Finding, Fix, Region


def with_bound_names(record: Record, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings; a fix that reads a name which may not be bound at its place is not called safe."""
    texts = {source.path: source.text for source in record.sources}
    shares_names = record.header.entry == "notebook"
    found: list[Finding] = []
    for finding in findings:
        if any(fix.safety == "safe" and fix.edits for fix in finding.fixes):
            fixes = tuple(_checked(fix, texts, shares_names=shares_names) for fix in finding.fixes)
            finding = msgspec.structs.replace(finding, fixes=fixes)  # noqa: PLW2901 - the same with other fixes
        found.append(finding)
    return found


def _checked(fix: Fix, texts: dict[str, str], *, shares_names: bool) -> Fix:
    """Judge one fix, file by file; a notebook's cell may read what another one has bound."""
    if fix.safety != "safe":
        return fix
    for path in {edit.path for edit in fix.edits}:
        edits = [edit for edit in fix.edits if edit.path == path]
        unbound = unbound_names(texts.get(path, ""), edits)
        if shares_names and unbound is not None:
            unbound = {name for name in unbound if _is_bound_anywhere(edited(texts[path], edits), name)}
        if unbound is None or unbound:
            return msgspec.structs.replace(fix, safety="unsafe")
    return fix


def _is_bound_anywhere(text: str, name: str) -> bool:
    tree = parse_bounded(text)
    return tree is None or any(name in bound_by(node) for node in ast.walk(tree))


def unbound_names(text: str, edits: Sequence[Edit]) -> set[str] | None:
    """Find the names that the texts of edits read and that may not be bound there; None if the result is no Python."""
    before, after = parse_bounded(text), parse_bounded(edited(text, edits))
    if before is None or after is None:
        return None
    offsets = _Offsets(edited(text, edits))
    parents = {child: node for node in ast.walk(after) for child in ast.iter_child_nodes(node)}
    read = [
        (offsets.of(node.lineno, node.col_offset), node)
        for node in parents
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    unbound: set[str] = set()
    for edit, (start, end) in _spans(text, edits):
        inside = [node for at, node in read if start <= at < end]
        known = _read_beside(before, edit.region) if inside else set[str]()
        unbound |= {node.id for node in inside if node.id not in known and not is_bound(node, parents)}
    return unbound


class _Offsets:
    """From a line and a column, in bytes as `ast` counts them, to the character of a text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def of(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        if text.isascii():
            return self._starts[line - 1] + column
        return self._starts[line - 1] + len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))

    def of_characters(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column - 1


def _spans(text: str, edits: Sequence[Edit]) -> list[tuple[Edit, tuple[int, int]]]:
    """Where the text of each edit is in the text that they make: its first character, and the one behind it."""
    offsets, shift = _Offsets(text), 0
    spans: list[tuple[Edit, tuple[int, int]]] = []
    for edit in sorted(edits, key=lambda edit: (edit.region.start_line, edit.region.start_col)):
        region = edit.region
        start = offsets.of_characters(region.start_line, region.start_col)
        end = offsets.of_characters(region.end_line, region.end_col)
        spans.append((edit, (start + shift, start + shift + len(edit.text))))
        shift += len(edit.text) - (end - start)
    return spans


def _read_beside(tree: ast.Module, region: Region) -> set[str]:
    """The names that statements on the lines of a region read when they are reached."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt) or node.lineno > region.end_line:
            continue
        for part in head_of(node):
            end = getattr(part, "end_lineno", None) or node.lineno
            if end >= region.start_line:
                names = (one for one in ast.walk(part) if isinstance(one, ast.Name))
                found |= {one.id for one in names if isinstance(one.ctx, ast.Load)}
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.lineno >= region.start_line:
            found.add(node.target.id)
    return found
