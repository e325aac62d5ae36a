"""Edits applied to a text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from backprobe.rules.framework.finding import Edit


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text of one file after its edits, which must not overlap. The last is applied first, so that places hold."""
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda edit: (edit.region.start_line, edit.region.start_col), reverse=True):
        region = edit.region
        head = lines[region.start_line - 1][: region.start_col - 1]
        tail = lines[region.end_line - 1][region.end_col - 1 :]
        lines[region.start_line - 1 : region.end_line] = (head + edit.text + tail).split("\n")
    return "\n".join(lines)


def program_with(files: Mapping[str, str], edits: Collection[Edit]) -> dict[str, str]:
    """A program with edits in it, by path.

    Raises:
        KeyError: a file of the edits is none of the program's. IndexError: a line of theirs is none of its file's.
    """
    texts = dict(files)
    for path in {edit.path for edit in edits}:
        texts[path] = edited(texts[path], [edit for edit in edits if edit.path == path])
    return texts
