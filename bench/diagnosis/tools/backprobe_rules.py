"""Backprobe: the program under capture, its record judged by all rules."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from backprobe.rules import judge
from bench.diagnosis.tool_report import ToolReport
from tests.corpus.cases import CORPORA
from tests.corpus.records import Records


class Rules:
    """All rules at their default options."""

    name = "Backprobe"

    def __init__(self) -> None:
        self._records = Records()
        self._kinds: dict[str, str] = tomllib.loads((CORPORA / "kinds.toml").read_text())

    def report(self, source: str) -> Sequence[ToolReport]:
        """Every finding that no comment suppresses, under the kind of its rule; a rule without a kind: its own name."""
        found = judge(self._records.of(source)).findings
        return [
            ToolReport(
                line=finding.location.region.start_line,
                kind=self._kinds.get(finding.rule.name, finding.rule.name),
                level=finding.level,
            )
            for finding in found
            if finding.suppressed is None
        ]

    def close(self) -> None:
        """End the process that captures programs."""
        self._records.__exit__()


def tool() -> Rules:
    """Backprobe as it is here."""
    return Rules()
