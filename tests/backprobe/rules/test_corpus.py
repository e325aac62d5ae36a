"""The public corpus under real capture: the cases of our kinds are found on the right line, correct programs are left alone.

A program is read under a neutral name, `train.py`: folder names and sidecars tell the answer.
"""

import json
import tomllib
from pathlib import Path

import pytest

from backprobe.rules import Finding, judge

KINDS = tomllib.loads((Path(__file__).parents[2] / "corpus" / "kinds.toml").read_text())
LEVELS = {"error": 0, "warning": 1, "info": 2, "note": 2}


@pytest.fixture(scope="session")
def corpus() -> Path:
    return Path(__file__).parents[2] / "corpus" / "public"


def cases(corpus: Path) -> dict[str, dict]:
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(corpus.glob("cases/*/case.json"))}


def at_warning(findings: tuple[Finding, ...]) -> list[tuple[str, int, str]]:
    return [(one.rule.code, one.location.region.start_line, one.message) for one in findings if one.level != "note"]


def test_each_case_of_our_kinds_is_found_on_a_strict_line(corpus, captured) -> None:
    ours = {name: case for name, case in cases(corpus).items() if case["expected"]["kind"] in KINDS.values()}
    assert len(ours) >= 9
    missed = {}
    for name, case in ours.items():
        expected = case["expected"]
        findings = judge(captured((corpus / "cases" / name / "bad.py").read_text())).findings
        hits = [
            one
            for one in findings
            if KINDS.get(one.rule.name) == expected["kind"]
            and one.location.region.start_line in expected["lines"]
            and LEVELS[one.level] <= LEVELS[expected["severity"]]
        ]
        if len(hits) != 1 or not any(
            word in hits[0].message or word in str(hits[0].evidence) for word in expected["names"]
        ):
            missed[name] = (expected["lines"], at_warning(findings))
    assert missed == {}


def test_no_repaired_twin_and_no_clean_program_is_warned_of(corpus, captured) -> None:
    programs = sorted([*corpus.glob("cases/*/good.py"), *corpus.glob("clean/*.py")])
    assert len(programs) >= 72
    alarms = {}
    for path in programs:
        record = captured(path.read_text())
        assert record.end is not None, path
        assert record.end.exit_code == 0, path
        found = at_warning(judge(record).findings)
        if found:
            alarms[str(path.relative_to(corpus))] = found
    assert alarms == {}


FOLLOWS: dict[str, list[tuple[str, int]]] = {}
"""What our rules rightly say of mistakes that have a rule of their own still to come."""


def test_on_other_mistakes_the_rules_say_only_what_follows_from_them(corpus, captured) -> None:
    others = {name for name, case in cases(corpus).items() if case["expected"]["kind"] not in KINDS.values()}
    found = {}
    for name in sorted(others):
        findings = at_warning(judge(captured((corpus / "cases" / name / "bad.py").read_text())).findings)
        if findings:
            found[name] = [(code, line) for code, line, _message in findings]
    assert found == FOLLOWS
