"""What came of an audit, as every renderer takes it: judged on the service or here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from backprobe.rules import Finding, finding_json
from backprobe.rules.policy import WORST, Cell, Verdict
from backprobe.show.formats.program_report import Reported

Word = Literal["passed", "failed", "canceled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedItem:
    """One program.

    Attributes:
        verdict: None: it was not come to. cells: what rules say of it that do not pass.
        run: Of the service; None: it was judged here, or refused.
    """

    name: str
    verdict: Verdict | None
    cells: tuple[Cell, ...]
    reported: Reported
    run: str | None = None

    @property
    def problem(self) -> str | None:
        """Why it was refused or not judged, or what ended it before its end; None: nothing did."""
        told = self.reported
        if told.problem is not None or told.error is None:
            return told.problem or told.missing_calls
        return told.error.to_line


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """An audit.

    Attributes:
        name: Of its policy. url: its address; None: it was judged here. audit: its id on the service.
        new, known, gone: Findings by what the baseline had; each fingerprint counts once. None: there is no baseline.
            Gone are those of programs that were audited to their end again.
    """

    name: str
    word: Word
    items: Sequence[AuditedItem]
    url: str | None = None
    audit: str | None = None
    new: int | None = None
    known: int | None = None
    gone: int | None = None

    def counts(self) -> dict[str, int]:
        """Items by verdict, worst first; without those that nobody has."""
        said = [item.verdict or "not-run" for item in self.items]
        return {word: said.count(word) for word in WORST if word in said}

    @property
    def findings(self) -> list[tuple[AuditedItem, Finding]]:
        """Those that nobody suppressed, item by item."""
        return [
            (item, finding) for item in self.items for finding in item.reported.findings if finding.suppressed is None
        ]

    def json(self) -> dict[str, Any]:
        """As plain values; `schema` tells their shape."""
        return {
            "schema": "backprobe.audit/1",
            "name": self.name,
            "verdict": self.word,
            "audit": self.audit,
            "url": self.url,
            "items": [_item(item) for item in self.items],
            "counts": self.counts(),
            "findings": None if self.new is None else {"new": self.new, "known": self.known, "gone": self.gone},
        }


def _item(item: AuditedItem) -> dict[str, Any]:
    told = item.reported
    return {
        "name": item.name,
        "verdict": item.verdict,
        "run": item.run,
        "problem": item.problem,
        "ending": told.ending,
        "exit_code": told.exit_code,
        "rules_judged": told.rules_judged,
        "cells": [asdict(cell) for cell in item.cells],
        "findings": [
            finding_json(found, run=item.run, ruleset=told.ruleset)
            | ({} if told.known is None else {"known": told.is_known(found)})
            for found in told.findings
        ],
    }
