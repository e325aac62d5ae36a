"""A capability is claimed together with the tests that hold it, and those tests are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "capabilities.md"
ROWS = {*range(1, 29), *range(34, 38), *range(48, 60)}
"""Numbers of the capabilities that the page answers for."""

ROW = re.compile(r"^\| *(\d+) \| ([^|]+) \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CLAIMS = ("yes", "partly", "not yet")


def rows(text: str) -> dict[int, tuple[str, list[tuple[str, str]]]]:
    """Number -> what is claimed, and the tests named for it."""
    return {int(n): (claim.strip(), TEST.findall(held)) for n, _, claim, held in ROW.findall(text)}


def absent(tests: list[tuple[str, str]]) -> list[str]:
    """Those of the tests that are not there."""
    found = []
    for path, name in tests:
        file = ROOT / path
        functions = ast.walk(ast.parse(file.read_text())) if file.is_file() else ()
        if name not in {node.name for node in functions if isinstance(node, ast.FunctionDef)}:
            found.append(f"{path}::{name}")
    return found


def unheld(text: str) -> list[str]:
    """What is wrong with the claims of a page."""
    found = []
    for number, (claim, tests) in rows(text).items():
        word = next((word for word in CLAIMS if claim == word or claim.startswith(f"{word}:")), None)
        if word is None:
            found.append(f"{number}: {claim!r} is none of {', '.join(CLAIMS)}")
        elif (word == "not yet") == bool(tests):
            found.append(f"{number}: {claim!r} with {len(tests)} tests")
        found += [f"{number}: there is no {test}" for test in absent(tests)]
    return found


def test_every_claim_names_tests_that_are_there():
    assert unheld(PAGE.read_text()) == []


def test_every_capability_is_answered_for():
    assert set(rows(PAGE.read_text())) == ROWS


def test_a_claim_without_its_test_is_seen():
    page = (
        "| 1 | a | yes | `tests/laws/test_capabilities.py::test_gone` |\n| 2 | b | yes |  |\n"
        "| 3 | c | not yet | `tests/laws/test_capabilities.py::unheld` |\n| 4 | d | surely | `tests/gone.py::test` |\n"
    )
    assert unheld(page) == [
        "1: there is no tests/laws/test_capabilities.py::test_gone",
        "2: 'yes' with 0 tests",
        "3: 'not yet' with 1 tests",
        "4: 'surely' is none of yes, partly, not yet",
        "4: there is no tests/gone.py::test",
    ]
