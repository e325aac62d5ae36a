"""Tries the fixes of a run's findings: once without any, then once for each fix, under the same seed and in turn.

1. No file of the user is written: the edited texts stand for the files in the process of the trial alone (`overlay`).
2. A trial has `TIMES` as long as the run took, and `MORE_SECONDS`; after that all of it is killed.
3. A fix is held against a second run without it, not against the run that was judged: what differs between two runs of
   the program as it is (a first run that left files behind, an input that was read, chance) is then not the fix's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.child_groups import wait_or_kill
from backprobe.cli.trials.patch import as_recorded
from backprobe.cli.trials.program_start import Started
from backprobe.cli.trials.trial_process import TrialRun
from backprobe.record import BadRecord, loads
from backprobe.rules import judge
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.finding import Trial
from backprobe.rules.trials import Failure, Shown, compared, shown

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Edit, Finding, Fix, Judgement, JudgeOptions

MOST_TRIALS: Final = 20
"""Fixes of one program that are tried; those of the worst findings come first."""

TIMES: Final = 5.0
MORE_SECONDS: Final = 60.0
"""For what a run does not tell of itself: the interpreter's start, torch's import, a machine that others load."""

_Overlay = tuple[tuple[str, str], ...]
"""Paths, as the record has them, and the texts that stand for them."""

Progress = Callable[[int, int, str], None]
"""Told which run begins, of how many, and what it is."""


def _again(before: Shown, finding: Finding) -> Finding:
    return next((same for same in before.findings if same.fingerprint == finding.fingerprint), finding)


def _with_verdicts(finding: Finding, verdicts: Mapping[tuple[str, int], Trial]) -> Finding:
    fixes = tuple(
        msgspec.structs.replace(fix, trial=verdicts[finding.fingerprint, at])
        if (finding.fingerprint, at) in verdicts
        else fix
        for at, fix in enumerate(finding.fixes)
    )
    return msgspec.structs.replace(finding, fixes=fixes)


def _difference(first: Shown, second: Shown) -> str:
    """Why trials tell nothing: the program as it is does not end as it did. "": it does."""
    if first.failure == second.failure:
        return ""
    now = "ends well" if second.failure is None else f"fails ({second.failure})"
    return f"the program did not end the same way twice: run again without a fix, it {now}"


class Trials:
    """The trials of one program's fixes; equal texts run once.

    Args:
        started: How the program was run. record: What came of it. judgement: Of that record.
        options: By which it was judged. progress: Told of each run that `try_fixes` makes.

    Attributes:
        texts: The texts that the record holds, by path.
    """

    def __init__(
        self, started: Started, record: Record, judgement: Judgement, options: JudgeOptions | None, progress: Progress
    ) -> None:
        self._started, self._options, self._progress = started, options, progress
        self.texts = {row.path: row.text for row in record.sources if row.text}
        self._first, self._judgement = shown(record, judgement), judgement
        self._known: dict[_Overlay, Shown] = {}
        self._due: list[_Overlay] = []

    def try_fixes(self) -> Judgement:
        """Try each fix that has edits, and return the judgement with the verdicts."""
        findings = [finding for finding in self._judgement.findings if finding.suppressed is None]
        fixes = [(finding, at) for finding in findings for at, fix in enumerate(finding.fixes) if fix.edits]
        self._plan([finding.fixes[at].edits for finding, at in fixes])
        verdicts = {(finding.fingerprint, at): self._trial(finding, finding.fixes[at].edits) for finding, at in fixes}
        return replace(
            self._judgement, findings=tuple(_with_verdicts(finding, verdicts) for finding in self._judgement.findings)
        )

    def together(self, fixes: Sequence[tuple[Finding, Fix]]) -> Trial:
        """Return the verdict on several confirmed fixes in one text: the first that is not `confirmed`, or that."""
        edits = tuple(edit for _finding, fix in fixes for edit in fix.edits)
        before, after = self._run_with_edits(()), self._run_with_edits(edits)
        trials = [compared(_again(before, finding), edits, before, after) for finding, _fix in fixes]
        return next((trial for trial in trials if trial.verdict != "confirmed"), Trial(verdict="confirmed"))

    def _plan(self, fixes: Sequence[Sequence[Edit]]) -> None:
        """Choose what is run: the first `MOST_TRIALS` texts that differ."""
        for edits in fixes:
            if (
                len(self._due) < MOST_TRIALS
                and not self._reason_against(edits)
                and self._overlay(edits) not in self._due
            ):
                self._due.append(self._overlay(edits))

    def _trial(self, finding: Finding, edits: Sequence[Edit]) -> Trial:
        if refused := self._reason_against(edits):
            return Trial(verdict="not-tried", why=refused)
        overlay = self._overlay(edits)
        if overlay not in self._due:
            return Trial(verdict="not-tried", why=f"{MOST_TRIALS} fixes of a program are tried, and no more")
        if not self._known:
            self._progress(1, len(self._due) + 1, "as it is")
        before = self._run_with_edits(())
        if differs := _difference(self._first, before):
            return Trial(verdict="not-tried", why=differs)
        if finding.fingerprint not in {known.fingerprint for known in before.findings}:
            return Trial(verdict="not-tried", why="the finding did not come back when the program ran again")
        if overlay not in self._known:
            place = finding.location
            what = f"{finding.rule.code} {place.path}:{place.region.start_line}"
            self._progress(self._due.index(overlay) + 2, len(self._due) + 1, what)
        return compared(_again(before, finding), edits, before, self._run_with_edits(edits))

    def _run_with_edits(self, edits: Sequence[Edit]) -> Shown:
        """Run the program with these edits, and return what it shows."""
        overlay = self._overlay(edits)
        if overlay not in self._known:
            self._known[overlay] = self._run(dict(overlay))
        return self._known[overlay]

    def _overlay(self, edits: Sequence[Edit]) -> _Overlay:
        paths = sorted({edit.path for edit in edits})
        return tuple((path, edited(self.texts[path], [edit for edit in edits if edit.path == path])) for path in paths)

    def _reason_against(self, edits: Sequence[Edit]) -> str:
        """Why a fix cannot be tried; "": it can."""
        for path in dict.fromkeys(edit.path for edit in edits):
            if path not in self.texts:
                return f"the record does not hold the text of {path}"
            try:
                as_recorded(self._started.files / path, path, self.texts[path])
            except OSError as why:
                return str(why)
        return ""

    def _run(self, overlay: Mapping[str, str]) -> Shown:
        started = self._started
        limit = TIMES * started.seconds + MORE_SECONDS
        with tempfile.TemporaryDirectory(prefix="backprobe-trial-") as made:
            place = Path(made, "record.bprec")
            asked = TrialRun(
                program=started.program,
                is_module=started.is_module,
                arguments=started.arguments,
                tier=started.tier,
                every=started.every,
                histograms=started.histograms,
                seed=0 if started.seed is None else started.seed,
                check=started.check,
                overlay={os.path.realpath(started.files / path): text for path, text in overlay.items()},
                record=str(place),
            )
            spec = Path(made, "trial.json")
            spec.write_bytes(msgspec.json.encode(asked))
            code = _await_exit(spec, started, limit)
            return self._read(place, code, limit)

    def _read(self, place: Path, code: int | None, limit: float) -> Shown:
        late = Failure(what=f"it did not end within {limit:.0f} s") if code is None else None
        try:
            record = loads(place.read_bytes())
        except (OSError, BadRecord):
            return Shown(findings=(), failure=late or Failure(what=f"exit code {code}"))
        found = shown(record, judge(record, self._options))
        return found if late is None else replace(found, failure=late)


def _await_exit(spec: Path, started: Started, limit: float) -> int | None:
    """Wait for the exit code; None if its time was over, and it was killed with all that it had started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "backprobe.cli.trials.trial_process", str(spec)],
        cwd=started.folder,
        env=dict(started.environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return wait_or_kill(process, limit)
