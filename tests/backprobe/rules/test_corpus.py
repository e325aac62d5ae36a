"""The public corpus under real capture: the cases of our kinds are found on the right line, correct programs are left alone.

A program is read under a neutral name, `train.py`: the name of its file gives the mistake away.
"""

import tomllib

import pytest

from backprobe.rules import Finding, judge
from tests.corpus.cases import CORPORA, Corpus, load_set

pytestmark = pytest.mark.usefixtures("sweep")

KINDS = tomllib.loads((CORPORA / "kinds.toml").read_text())
LEVELS = {"error": 0, "warning": 1, "note": 2}


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return load_set("public")


def at_warning(findings: tuple[Finding, ...]) -> list[tuple[str, int, str]]:
    return [
        (finding.rule.code, finding.location.region.start_line, finding.message)
        for finding in findings
        if finding.level != "note"
    ]


def test_each_case_of_our_kinds_is_found_on_a_strict_line(corpus, captured) -> None:
    ours = [case for case in corpus.cases if case.kind in KINDS.values()]
    assert len(ours) >= 9
    missed = {}
    for case in ours:
        findings = judge(captured(case.bad)).findings
        hits = [
            finding
            for finding in findings
            if KINDS.get(finding.rule.name) == case.kind
            and finding.location.region.start_line in case.lines
            and LEVELS[finding.level] <= LEVELS[case.severity]
        ]
        if len(hits) != 1 or not any(word in hits[0].message or word in str(hits[0].evidence) for word in case.names):
            missed[case.id] = (case.lines, at_warning(findings))
    assert missed == {}


def test_no_repaired_twin_and_no_clean_program_is_warned_of(corpus, captured) -> None:
    programs = {f"{case.id}, repaired": case.good for case in corpus.cases}
    programs |= {program.name: program.text for program in corpus.correct}
    assert len(programs) >= 72
    alarms = {}
    for name, text in programs.items():
        record = captured(text)
        assert record.end is not None, name
        assert record.end.exit_code == 0, name
        found = at_warning(judge(record).findings)
        if found:
            alarms[name] = found
    assert alarms == {}


FOLLOWS: dict[str, list[tuple[str, int]]] = {}
"""What our rules rightly say of mistakes that have a rule of their own still to come."""


def test_on_other_mistakes_the_rules_say_only_what_follows_from_them(corpus, captured) -> None:
    found = {}
    for case in corpus.cases:
        if case.kind in KINDS.values():
            continue
        findings = at_warning(judge(captured(case.bad)).findings)
        if findings:
            found[case.id] = [(code, line) for code, line, _message in findings]
    assert found == FOLLOWS
