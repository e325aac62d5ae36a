"""Backprobe: the program under capture, its record judged by all rules."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from backprobe.rules import judge
from bench.diagnosis.told import Told
from tests.corpus.cases import CORPORA
from tests.corpus.records import Records


class Rules:
    """All rules at their default options."""

    name = "Backprobe"

    def __init__(self) -> None:
        self._records = Records()
        self._kinds: dict[str, str] = tomllib.loads((CORPORA / "kinds.toml").read_text())

    def told(self, source: str) -> Sequence[Told]:
        """Every finding that no comment suppresses, under the kind of its rule; a rule without a kind: its own name."""
        found = judge(self._records.of(source)).findings
        return [
            Told(
                line=one.location.region.start_line, kind=self._kinds.get(one.rule.name, one.rule.name), level=one.level
            )
            for one in found
            if one.suppressed is None
        ]

    def close(self) -> None:
        """End the process that captures programs."""
        self._records.__exit__()


def tool() -> Rules:
    """Backprobe as it is here."""
    return Rules()
