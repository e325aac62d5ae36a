"""Fixes that were confirmed, as a unified diff that `git apply` and `patch -p1` take, or written into the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.rules.edits.text_edits import edited

if TYPE_CHECKING:
    from backprobe.rules import Edit, Finding, Fix

_ENDS: Final = re.compile(r"\r\n|\r|\n")
_NO_NEWLINE: Final = "\n\\ No newline at end of file\n"


def confirmed_safe(findings: Iterable[Finding]) -> list[tuple[Finding, Fix]]:
    """Choose the fixes that are marked safe and were confirmed: one of each finding, and none that overlap."""
    chosen: list[tuple[Finding, Fix]] = []
    for finding in findings:
        for fix in finding.fixes:
            if fix.safety != "safe" or fix.trial is msgspec.UNSET or fix.trial.verdict != "confirmed":
                continue
            if not any(overlap(edit, other) for _, taken in chosen for edit in taken.edits for other in fix.edits):
                chosen.append((finding, fix))
                break
    return chosen


def overlap(edit: Edit, other: Edit) -> bool:
    """Both change the same place of a file, or insert there: their order would decide."""
    first, second = edit.region, other.region
    return (
        edit.path == other.path
        and (first.start_line, first.start_col) <= (second.end_line, second.end_col)
        and (second.start_line, second.start_col) <= (first.end_line, first.end_col)
    )


def edit_texts(
    folder: Path, fixes: Sequence[tuple[Finding, Fix]], recorded: Mapping[str, str]
) -> dict[Path, tuple[str, str]]:
    """Return the texts of the files that the fixes edit, before and after, by path, with the line ends on disk.

    Args:
        recorded: The texts, by path in the record, that the places of the edits are in.

    Raises:
        OSError: a file is not as it was recorded, or cannot be edited.
    """
    edits: dict[str, list[Edit]] = {}
    for _finding, fix in fixes:
        for edit in fix.edits:
            edits.setdefault(edit.path, []).append(edit)
    found: dict[Path, tuple[str, str]] = {}
    for path, its in edits.items():
        before = as_recorded(folder / path, path, recorded[path])
        found[folder / path] = before, edited_text(before, its)
    return found


def as_recorded(place: Path, name: str, recorded: str) -> str:
    """Read a file with its line ends, and check that the places of edits hold in it.

    Raises:
        OSError: they do not, or it is no file of UTF-8 text; the message says why, and has the name.
    """
    try:
        text = place.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise OSError(f"{name} is not a file of UTF-8 text") from None
    ends = set(_ENDS.findall(text))
    if len(ends) > 1 or "\r" in ends:
        raise OSError(f"{name} has mixed line ends")
    if _lines_of(text) != _lines_of(recorded):
        raise OSError(f"{name} has changed since the program ran")
    return text


def _lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def edited_text(text: str, edits: Sequence[Edit]) -> str:
    """With the line ends that the text has, all alike: `as_recorded` refuses others."""
    if "\r\n" not in text:
        return edited(text, edits)
    return edited(text.replace("\r\n", "\n"), edits).replace("\n", "\r\n")


def diff(texts: Mapping[Path, tuple[str, str]]) -> str:
    """Write a unified diff; paths are relative to the working directory, where the files lie below it."""
    return "".join(line for path, (before, after) in texts.items() for line in _lines(path, before, after))


def _lines(path: Path, before: str, after: str) -> Iterator[str]:
    name = os.path.relpath(path)
    name = path.as_posix() if name.startswith("..") else Path(name).as_posix()
    for line in unified_diff(_split(before), _split(after), f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else line + _NO_NEWLINE


def _split(text: str) -> list[str]:
    """Lines with their ends; `str.splitlines` would cut at form feeds too."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def write(texts: Mapping[Path, tuple[str, str]]) -> None:
    """Write the files; each is replaced as a whole, with its mode.

    Raises:
        OSError: one cannot be written; those before it are.
    """
    for path, (_before, after) in texts.items():
        target = path.resolve()
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        beside.write_bytes(after.encode("utf-8"))
        beside.chmod(target.stat().st_mode)
        beside.replace(target)
