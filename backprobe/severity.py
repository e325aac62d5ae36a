"""How bad a finding is and how sure its rule is, wherever that is declared, stored, asked for or shown."""

from __future__ import annotations

from typing import Final, Literal

Level = Literal["error", "warning", "note"]
"""How bad: an error raised, or no gradient can be right; a warning is silently wrong; a note is waste or doubt."""

LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note")
"""Worst first."""

Confidence = Literal["proven", "likely", "heuristic"]
"""How sure: from the record alone; with one assumption about intent, which is stated; by a threshold, stated too."""

CONFIDENCES: Final[tuple[Confidence, ...]] = ("proven", "likely", "heuristic")
"""Surest first."""
