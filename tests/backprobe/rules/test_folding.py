"""One cause, one finding: what follows is folded under its cause, and different causes stay apart."""

from backprobe.record import Environment, Header, Record, Source
from backprobe.rules import Finding, Location, Region, Rule
from backprobe.rules.framework.finding import RuleName, Subject
from backprobe.rules.framework.folding import folded

CAUSE = Rule(
    name="cause", code="BP601", since="0.1", severity="warning", confidence="proven", fix="manual", needs=("site",),
    explains=("effect", "later-effect"),
)  # fmt: skip
EFFECT = Rule(
    name="effect", code="BP202", since="0.1", severity="error", confidence="proven", fix="manual", needs=("site",),
    explains=("later-effect",),
)  # fmt: skip
LATER = Rule(name="later-effect", code="BP707", since="0.1", severity="warning", confidence="proven", fix="manual")
EXACT = Rule(
    name="exact", code="BP402", since="0.1", severity="error", confidence="proven", fix="manual", needs=("site",),
    refines=("effect",),
)  # fmt: skip
EVERY = (CAUSE, EFFECT, LATER, EXACT)


def record() -> Record:
    header = Header(
        schema_version=1, backprobe_version="0", tier="full", entry="run", started_at="2026-01-01T00:00:00Z",
        environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    return Record(header=header, sources=(Source(source=0, path="train.py", sha256="", text="x = 1\n" * 9),))


def build_finding(rule: Rule, line: int, *tensors: int, moment: int = 0) -> Finding:
    return Finding(
        rule=RuleName(code=rule.code, name=rule.name, url=rule.url),
        level=rule.severity,
        confidence=rule.confidence,
        message=f"{rule.name} at {line}",
        location=Location(
            path="train.py", region=Region(start_line=line, start_col=1, end_line=line, end_col=2), text="x = 1"
        ),
        evidence={"binding": "x"},
        subject=Subject(facts=tuple(("tensor", number) for number in tensors), moment=moment),
    )


def heads(findings: list[Finding]) -> list[tuple[str, str, list[str]]]:
    return [(finding.rule.name, finding.level, [row.rule for row in finding.consequences]) for finding in findings]


def test_what_follows_is_folded_under_its_cause_which_takes_the_worse_level() -> None:
    kept = folded(record(), [build_finding(CAUSE, 2, 5, moment=1), build_finding(EFFECT, 7, 5, moment=4)], EVERY)
    assert heads(kept) == [("cause", "error", ["effect"])]
    assert [row.location.region.start_line for row in kept[0].related] == [7]


def test_a_chain_ends_at_the_first_cause() -> None:
    found = [
        build_finding(LATER, 9, 5, moment=6),
        build_finding(EFFECT, 7, 5, moment=4),
        build_finding(CAUSE, 2, 5, moment=1),
    ]
    assert heads(folded(record(), found, EVERY)) == [("cause", "error", ["later-effect", "effect"])]


def test_findings_without_a_common_subject_stay_apart() -> None:
    found = [build_finding(CAUSE, 2, 5, moment=1), build_finding(EFFECT, 7, 6, moment=4)]
    assert heads(folded(record(), found, EVERY)) == [("cause", "warning", []), ("effect", "error", [])]


def test_what_came_before_the_cause_is_no_consequence_of_it() -> None:
    found = [build_finding(CAUSE, 2, 5, moment=9), build_finding(EFFECT, 7, 5, moment=4)]
    assert heads(folded(record(), found, EVERY)) == [("cause", "warning", []), ("effect", "error", [])]


def test_a_finding_without_a_subject_folds_nothing_and_is_not_folded() -> None:
    found = [build_finding(CAUSE, 2), build_finding(EFFECT, 7)]
    assert len(folded(record(), found, EVERY)) == 2


def test_of_two_rivals_over_one_fact_the_refining_one_stays() -> None:
    found = [build_finding(EFFECT, 7, 5, moment=4), build_finding(EXACT, 3, 5, moment=8)]
    assert heads(folded(record(), found, EVERY)) == [("exact", "error", ["effect"])]
    apart = [build_finding(EFFECT, 7, 5, moment=4), build_finding(EXACT, 3, 6, moment=8)]
    assert len(folded(record(), apart, EVERY)) == 2


def test_order_does_not_matter() -> None:
    found = [
        build_finding(CAUSE, 2, 5, moment=1),
        build_finding(EFFECT, 7, 5, moment=4),
        build_finding(LATER, 8, 6, moment=4),
    ]
    assert {str(sorted(map(str, heads(folded(record(), rows, EVERY))))) for rows in (found, found[::-1])} == {
        str(sorted(map(str, heads(folded(record(), found, EVERY)))))
    }
