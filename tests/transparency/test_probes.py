"""Questions that a program can ask about itself and torch: captured, every answer is the plain one.

1. `programs/probes.py` asks them, all in one process.
2. Each must be able to fail: under a torch mode or a careless tool in place of the taps its answer changes.
"""

from __future__ import annotations

import ast
import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import run

PROGRAM = Path(__file__).parent / "programs" / "probes.py"
CLUMSY = ("function-mode", "dispatch-mode", "hooked", "rewritten")
TIERS = ("state", "grad", "full")
CAPTURED = (*(f"captured-{tier}" for tier in TIERS), "captured-full by the twin")
MODES = ("plain", "plain again", *CAPTURED, *CLUMSY)

NAMES = [
    node.name
    for node in ast.parse(PROGRAM.read_text()).body
    if isinstance(node, ast.FunctionDef) and any(getattr(d, "id", "") == "probe" for d in node.decorator_list)
]


@dataclass(frozen=True)
class Answers:
    """What one start of the program said: an answer to each question, and the engine's own errors."""

    code: int
    said: dict[str, Any]
    own_errors: int
    own_error: str | None


@pytest.fixture(scope="module")
def answers() -> Callable[[str], Answers]:
    @functools.cache
    def run_probes(mode: str) -> Answers:
        core = "python" if mode.endswith("by the twin") else None
        (ran,) = run([(mode.split(maxsplit=1)[0], PROGRAM, [])], core)
        said = dict(json.loads(line) for line in ran["out"].splitlines() if line.startswith("["))
        return Answers(ran["code"], said, ran.get("own_errors", 0), ran.get("own_error"))

    return run_probes


def test_there_are_more_than_the_twenty_of_the_design() -> None:
    assert len(NAMES) == 53


@pytest.mark.parametrize("mode", MODES)
def test_the_program_answers_all_questions(mode: str, answers: Any) -> None:
    ran = answers(mode)
    assert set(ran.said) == set(NAMES) or mode in CLUMSY
    assert (ran.code, ran.own_errors) == (0, 0) or mode in CLUMSY, ran.own_error


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_is_the_plain_one(name: str, answers: Any) -> None:
    plain = answers("plain").said[name]
    assert not str(plain).startswith("raised "), "the question itself is wrong"
    assert answers("plain again").said[name] == plain, "two plain runs must agree"
    for mode in CAPTURED:
        assert answers(mode).said.get(name) == plain, mode


@pytest.mark.parametrize("name", NAMES)
def test_the_question_can_tell(name: str, answers: Any) -> None:
    plain = answers("plain").said[name]
    assert [mode for mode in CLUMSY if answers(mode).said.get(name, plain) != plain]
