"""The seed snippets and their claims, and the variants of a snippet whose raising statements are let pass."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sections import read_sections

SEEDS = Path(__file__).parents[2] / "seeds"
SNIPPETS = read_sections(SEEDS / "snippets.txt")
"""File name of a snippet -> its text."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a seed document about one variable at one line.

    Attributes:
        kind: value, raises, does_not_raise, warns, does_not_warn.
        attribute: "" if `variable` is a whole expression. holds: what plain torch showed.
    """

    id: str
    snippet: str
    kind: str
    variable: str
    attribute: str
    line: int
    expected: Any
    is_true: bool
    observed: Any


def claims() -> list[Claim]:
    """Every claim about a snippet that runs on a CPU."""
    table = json.loads((SEEDS / "claims.json").read_text())
    cpu = {snippet["file"] for snippet in table["snippets"] if snippet["device"] == "cpu"}
    return [
        Claim(
            row["id"], row["snippet"], row["kind"], row["variable"] or "", row["attribute"] or "",
            row["moment"]["after_line"], row["expected"], row["claim_is_true"], row["observed"],
        )
        for row in table["claims"]
        if row["snippet"] in cpu
    ]  # fmt: skip


def raising_lines(snippet: str, rows: list[Claim]) -> set[int]:
    """Last lines of the statements of a snippet that raise, by what plain torch showed."""
    mine = [row for row in rows if row.snippet == snippet and row.kind in ("raises", "does_not_raise")]
    return {row.line for row in mine if row.is_true == (row.kind == "raises")}


def text(snippet: str, suppressed: set[int]) -> str:
    """A snippet in which the statements that end at `suppressed` lines let their exception pass; lines stay the same."""
    source = SNIPPETS[snippet]
    lines = source.split("\n")
    for statement in ast.parse(source).body:
        if statement.end_lineno in suppressed:
            assert statement.lineno == statement.end_lineno, "a statement of one line"
            index = statement.lineno - 1
            lines[index] = f'with __import__("contextlib").suppress(Exception): {lines[index]}'
    return "\n".join(lines)
