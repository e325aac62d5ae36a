"""Fixes of an audit's findings, tried by the service: each trial is a run of it, beside others.

    findings of a run        trials on the service                 after
    BP305, fix 0             POST /v1/findings/f_1/trials          confirmed, safe: into the patch
    BP210, fix 0             POST /v1/findings/f_2/trials          changes-values: told, not taken

Two or more fixes that are to go into one program run once more together, and none is taken if that run is not well.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from backprobe.cli.trials.patch import confirmed_safe
from backprobe.client.requests import ApiError
from backprobe.rules import Finding
from backprobe.rules.edits.text_edits import program_with
from backprobe.rules.framework.finding import Trial
from backprobe.rules.trials import Failure, Shown, compared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backprobe.cli.trials.taken_fixes import TakenFixes
    from backprobe.client import Client, Run
    from backprobe.rules import Fix

AT_ONCE: Final = 8
"""Trials that wait or run at a time: those of other people are not to wait behind a whole audit's."""

LABEL: Final = "fixes-of"
"""Of a run of a program with several fixes in it: the run that they are of."""

_WAIT_SECONDS: Final = 10
"""In one request, so that there is something to tell of now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """A finding as the service stores it, under its public id."""

    id: str
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class SentProgram:
    """A program of this folder as it was sent.

    Attributes:
        name: The item's. body: as `POST /v1/audits` took it, `files` among it.
    """

    name: str
    body: Mapping[str, Any]

    @property
    def submission(self) -> dict[str, Any]:
        """The same as `POST /v1/runs` takes it."""
        return {name: value for name, value in self.body.items() if name != "custom_id"}

    @property
    def texts(self) -> dict[str, str]:
        """Its files, by path."""
        return {file["path"]: file["text"] for file in self.body["files"]}


class RemoteTrials:
    """What is tried on the service, run by run.

    Args:
        taken: Where the confirmed safe fixes go.
    """

    def __init__(self, client: Client, taken: TakenFixes) -> None:
        self._client, self._taken = client, taken
        self._going: dict[tuple[str, int], str] = {}
        self._joint_run: str | None = None
        self._known: dict[tuple[str, int], Trial] = {}

    def try_fixes(
        self, findings: Mapping[str, Sequence[StoredFinding]], runs: Mapping[str, Run], sent: Mapping[str, SentProgram]
    ) -> dict[str, list[Finding]]:
        """Try the fixes of each run's findings and add the verdicts; keep the confirmed safe ones for the patch.

        Args:
            findings: By public id of their run. runs: those, by id. sent: what was sent from here, by the run's id.

        Raises:
            KeyboardInterrupt: after the trials that wait or run are canceled.
        """
        due = [(told, at) for of_run in findings.values() for told in of_run for at in _fixes_with_edits(told)]
        try:
            for number, (told, at) in enumerate(due, 1):
                while len(self._going) >= AT_ONCE:
                    self._wait()
                place = told.finding.location
                what = f"{told.finding.rule.code} {place.path}:{place.region.start_line}"
                print(f"backprobe: trying fixes, {number} of {len(due)}: {what}", file=sys.stderr, flush=True)
                self._begin(told.id, at)
            while self._going:
                self._wait()
            with_trials = {run: [self._with_trials(told) for told in of_run] for run, of_run in findings.items()}
            for run, found in with_trials.items():
                if run in sent:
                    self._take(runs[run], found, sent[run])
        except KeyboardInterrupt:
            for trial in (*self._going.values(), *([self._joint_run] if self._joint_run else [])):
                with suppress(ApiError):  # it has ended meanwhile
                    self._client.cancel(trial)
            raise
        return with_trials

    def _begin(self, finding: str, at: int) -> None:
        try:
            run = self._client.call("POST", f"/v1/findings/{finding}/trials", body={"fix": at})
        except ApiError as refused:
            self._known[finding, at] = Trial(verdict="not-tried", why=refused.detail or refused.code)
        else:
            self._going[finding, at] = run["id"]

    def _wait(self) -> None:
        """Wait for the trial that was begun first."""
        which = next(iter(self._going))
        run = self._client.run(self._going[which], wait=_WAIT_SECONDS)
        if run.ended:
            del self._going[which]
            told = run.told["trial"]
            verdict = told["verdict"] or "not-tried"
            self._known[which] = Trial(verdict=verdict, why=told["why"] or "")

    def _with_trials(self, told: StoredFinding) -> Finding:
        fixes = tuple(
            msgspec.structs.replace(fix, trial=self._known[told.id, at]) if (told.id, at) in self._known else fix
            for at, fix in enumerate(told.finding.fixes)
        )
        return msgspec.structs.replace(told.finding, fixes=fixes)

    def _take(self, run: Run, found: Sequence[Finding], sent: SentProgram) -> None:
        fixes = confirmed_safe(found)
        if len(fixes) > 1 and not self._confirm_together(run, found, fixes, sent):
            line = "its fixes are confirmed one by one, not together: none is in the patch"
            print(f"backprobe: {sent.name}: {line}", file=sys.stderr, flush=True)
            return
        for _finding, fix in fixes:
            self._taken.take(Path.cwd(), fix.edits, sent.texts)

    def _confirm_together(
        self, run: Run, found: Sequence[Finding], fixes: Sequence[tuple[Finding, Fix]], sent: SentProgram
    ) -> bool:
        """Run the program with all fixes; True: each of them is still confirmed."""
        edits = tuple(edit for _finding, fix in fixes for edit in fix.edits)
        texts = program_with(sent.texts, edits)
        files = [{"path": path, "text": text} for path, text in texts.items()]
        more = {"files": files, "labels": {LABEL: run.id}}
        edited = self._client.submit(**{**sent.submission, **more})
        self._joint_run = edited.id
        while not edited.ended:
            edited = self._client.run(edited.id, wait=_WAIT_SECONDS)
        self._joint_run = None
        after = _result_of_run(edited, tuple(msgspec.convert(row, Finding) for row in self._client.findings(edited.id)))
        with suppress(ApiError):  # a key that may not delete leaves it to expire
            self._client.call("DELETE", f"/v1/runs/{edited.id}")
        before = _result_of_run(run, tuple(found))
        return all(compared(finding, edits, before, after).verdict == "confirmed" for finding, _fix in fixes)


def _fixes_with_edits(told: StoredFinding) -> Iterator[int]:
    if told.finding.suppressed is None:
        yield from (at for at, fix in enumerate(told.finding.fixes) if fix.edits)


def _result_of_run(run: Run, findings: tuple[Finding, ...]) -> Shown:
    """Return what a run showed, without its first loss: each of its trials has compared that."""
    error = run.error
    failure = None
    if run.status != "succeeded":
        told: Mapping[str, Any] = error or {}
        what = told.get("type") or told.get("code") or run.status
        failure = Failure(what=what, path=told.get("path") or "", line=told.get("line") or 0)
    return Shown(findings=tuple(finding for finding in findings if finding.suppressed is None), failure=failure)
