"""Confirmed safe fixes of several programs, kept for one patch; a file that several programs run is edited once."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.trials.patch import as_recorded, diff, edited_text, overlap

if TYPE_CHECKING:
    from backprobe.rules import Edit


class TakenFixes:
    """What is handed out at the end, program by program.

    Attributes:
        count: Fixes in the patch that was made last.
    """

    def __init__(self) -> None:
        self.count = 0
        self._taken: list[list[tuple[Path, Edit]]] = []
        self._recorded: dict[Path, str] = {}

    def take(self, folder: Path, edits: tuple[Edit, ...], texts: Mapping[str, str]) -> None:
        """Keep a fix, unless another program's fix changes the same place otherwise, or had another text of a file.

        Args:
            folder: That the paths of the edits are seen from.
            texts: Of the files as they ran, by path: the places of the edits are in them.
        """
        places = [(folder / edit.path, edit) for edit in edits]
        kept = _by_path(self._taken)
        for path, edit in places:
            if self._recorded.get(path, texts[edit.path]) != texts[edit.path]:
                return
            if not _stands_alone(kept.get(path, ()), edit):
                return
        self._taken.append(places)
        self._recorded.update((path, texts[edit.path]) for path, edit in places)

    def patch(self) -> str:
        """All that was taken, as a unified diff; fixes of a file that has changed since are reported and left out."""
        texts: dict[Path, str] = {}
        for path, recorded in sorted(self._recorded.items()):
            try:
                texts[path] = as_recorded(path, os.path.relpath(path), recorded)
            except OSError as why:
                print(f"backprobe: {why}: its fixes are not in the patch", file=sys.stderr, flush=True)
        whole = [fix for fix in self._taken if all(path in texts for path, _edit in fix)]
        self.count = len(whole)
        edits = sorted(_by_path(whole).items())
        return diff({path: (texts[path], edited_text(texts[path], its)) for path, its in edits})


def _by_path(fixes: Sequence[Sequence[tuple[Path, Edit]]]) -> dict[Path, list[Edit]]:
    """Collect the edits of each file, equal ones once."""
    found: dict[Path, list[Edit]] = {}
    for fix in fixes:
        for path, edit in fix:
            its = found.setdefault(path, [])
            if _change(edit) not in map(_change, its):
                its.append(edit)
    return found


def _change(edit: Edit) -> tuple[object, str]:
    return edit.region, edit.text


def _stands_alone(kept: Sequence[Edit], edit: Edit) -> bool:
    return not any(overlap(taken, edit) and _change(taken) != _change(edit) for taken in kept)
