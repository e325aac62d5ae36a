"""Fixes of an audit's programs, tried one program after the other, and the confirmed safe ones as one patch."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.trials.patch import as_recorded, confirmed_safe, diff, edited_text, overlap
from backprobe.cli.trials.program_start import Started, environment_now
from backprobe.cli.trials.trial_runs import Trials

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Edit, Judgement
    from backprobe.tiers import Tier


class AuditFixes:
    """What is tried and taken, program by program; a file that several programs run is edited once."""

    def __init__(self) -> None:
        self._taken: list[list[tuple[Path, Edit]]] = []
        self._recorded: dict[Path, str] = {}

    def tried(
        self,
        script: Path,
        arguments: tuple[str, ...],
        tier: Tier,
        every: int | None,
        seconds: float,
        record: Record,
        judgement: Judgement,
    ) -> Judgement:
        """The judgement with what came of each fix; the confirmed safe ones are kept for the patch.

        Args:
            seconds: That the program's run took.
        """
        started = Started(
            program=str(script),
            arguments=arguments,
            files=script.resolve().parent,
            folder=Path.cwd(),
            environment=environment_now(),
            tier=tier,
            every=every,
            seconds=seconds,
        )
        trials = Trials(started, record, judgement, None, _tell)
        found = trials.tried()
        fixes = confirmed_safe(found)
        if len(fixes) < 2 or trials.together(fixes).verdict == "confirmed":
            for _finding, fix in fixes:
                self._take(started.files, fix.edits, trials.texts)
        return found

    def _take(self, folder: Path, edits: tuple[Edit, ...], texts: Mapping[str, str]) -> None:
        """Keep a fix, unless another program's fix changes the same place otherwise, or had another text of a file."""
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
        """All that was taken, as a unified diff; fixes of a file that has changed since are told and left out."""
        texts: dict[Path, str] = {}
        for path, recorded in sorted(self._recorded.items()):
            try:
                texts[path] = as_recorded(path, os.path.relpath(path), recorded)
            except OSError as why:
                print(f"backprobe: {why}: its fixes are not in the patch", file=sys.stderr, flush=True)
        whole = [fix for fix in self._taken if all(path in texts for path, _edit in fix)]
        edits = sorted(_by_path(whole).items())
        return diff({path: (texts[path], edited_text(texts[path], its)) for path, its in edits})


def _by_path(fixes: Sequence[Sequence[tuple[Path, Edit]]]) -> dict[Path, list[Edit]]:
    """The edits of each file, equal ones once."""
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
    return not any(overlap(one, edit) and _change(one) != _change(edit) for one in kept)


def _tell(number: int, total: int, what: str) -> None:
    print(f"backprobe: trying fixes, run {number} of {total}: {what}", file=sys.stderr, flush=True)
