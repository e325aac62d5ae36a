"""Fixes of an audit's programs, tried one program after the other, and the confirmed safe ones as one patch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.trials.patch import confirmed_safe, diff, edited_text, overlap
from backprobe.cli.trials.trial_runs import Started, Trials, environment_now

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Edit, Judgement
    from backprobe.tiers import Tier


class AuditFixes:
    """What is tried and taken, program by program; a file that several programs run is edited once."""

    def __init__(self) -> None:
        self._taken: dict[Path, list[Edit]] = {}

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
                self._take(started.files, fix.edits)
        return found

    def _take(self, folder: Path, edits: tuple[Edit, ...]) -> None:
        """Keep the edits of a fix, unless another program's fix changes the same place otherwise."""
        places = [(folder / edit.path, edit) for edit in edits]
        if all(_stands_alone(self._taken.get(path, ()), edit) for path, edit in places):
            for path, edit in places:
                kept = self._taken.setdefault(path, [])
                if _change(edit) not in map(_change, kept):
                    kept.append(edit)

    def patch(self) -> str:
        """All that was taken, as a unified diff.

        Raises:
            OSError: a file cannot be read any more.
        """
        texts: dict[Path, tuple[str, str]] = {}
        for path, edits in sorted(self._taken.items()):
            before = path.read_bytes().decode("utf-8")
            texts[path] = before, edited_text(before, edits)
        return diff(texts)


def _change(edit: Edit) -> tuple[object, str]:
    return edit.region, edit.text


def _stands_alone(kept: tuple[Edit, ...] | list[Edit], edit: Edit) -> bool:
    return not any(overlap(one, edit) and _change(one) != _change(edit) for one in kept)


def _tell(number: int, total: int, what: str) -> None:
    print(f"backprobe: trying fixes, run {number} of {total}: {what}", file=sys.stderr, flush=True)
