"""Fixes of an audit's programs, tried here, one program after the other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.trials.patch import confirmed_safe
from backprobe.cli.trials.program_start import Started, environment_now
from backprobe.cli.trials.trial_runs import Trials

if TYPE_CHECKING:
    from backprobe.cli.trials.taken_fixes import TakenFixes
    from backprobe.record import Record
    from backprobe.rules import Judgement
    from backprobe.tiers import Tier


class AuditFixes:
    """What is tried here, program by program.

    Args:
        taken: Where the confirmed safe fixes go.
    """

    def __init__(self, taken: TakenFixes) -> None:
        self._taken = taken

    def try_fixes(
        self,
        script: Path,
        arguments: tuple[str, ...],
        tier: Tier,
        every: int | None,
        seconds: float,
        record: Record,
        judgement: Judgement,
    ) -> Judgement:
        """Try each fix and add its verdict to the judgement; keep the confirmed safe fixes for the patch.

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
        found = trials.try_fixes()
        fixes = confirmed_safe(found.findings)
        if len(fixes) < 2 or trials.together(fixes).verdict == "confirmed":
            for _finding, fix in fixes:
                self._taken.take(started.files, fix.edits, trials.texts)
        return found


def _tell(number: int, total: int, what: str) -> None:
    print(f"backprobe: trying fixes, run {number} of {total}: {what}", file=sys.stderr, flush=True)
