"""Every manual is run, both ways: the example is found, what is right is left alone; every fix makes it right."""

import ast

import pytest

from backprobe.rules import RULES, Edit, Finding, judge
from backprobe.rules.edits import edited
from backprobe.rules.manual import MARK, Section, manual

NAMES = [module.RULE.name for module in RULES]
RIGHT = [
    pytest.param(section.text, id=f"{name}: {section.about or section.title}")
    for name in NAMES
    for section in manual(name).sections
    if section.title in ("Use instead", "Near miss")
]


def example(name: str) -> Section:
    (section,) = manual(name).of("Example")
    return section


def marked(source: str) -> int:
    (line,) = [number for number, text in enumerate(source.split("\n"), 1) if text.rstrip().endswith(MARK)]
    return line


def loud(findings: tuple[Finding, ...]) -> list[tuple[str, int]]:
    return [(one.rule.name, one.location.region.start_line) for one in findings if one.level != "note"]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_found_once_at_its_mark_and_by_no_other_rule(name, captured) -> None:
    source = example(name).text
    findings = judge(captured(source)).findings
    assert loud(findings) == [(name, marked(source))]
    (finding,) = [one for one in findings if one.level != "note"]
    rule = manual(name).rule
    assert (finding.level, finding.confidence) == (rule.severity, rule.confidence)
    assert finding.location.text == source.split("\n")[marked(source) - 1]


@pytest.mark.parametrize("source", RIGHT)
def test_what_a_manual_calls_right_is_found_by_no_rule(source, captured) -> None:
    record = captured(source)
    assert record.end is not None
    assert record.end.exit_code == 0
    assert loud(judge(record).findings) == []


@pytest.mark.parametrize("name", NAMES)
def test_each_fix_of_an_example_parses_and_is_silent(name, captured) -> None:
    source = example(name).text
    (finding,) = [one for one in judge(captured(source)).findings if one.level != "note"]
    offered = [fix for fix in finding.fixes if fix.edits]
    assert offered or manual(name).rule.fix == "manual"
    for fix in offered:
        mended = applied(source, list(fix.edits))
        ast.parse(mended)
        again = captured(mended)
        assert again.end is not None
        assert again.end.exit_code == 0, mended
        assert loud(judge(again).findings) == [], mended


def applied(source: str, edits: list[Edit]) -> str:
    assert {edit.path for edit in edits} == {"train.py"}
    return edited(source, edits)
