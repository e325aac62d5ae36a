"""Every manual is run, both ways, by the laws that plug-ins are tested by; Backprobe's rules keep them all, and two more."""

import pytest

from backprobe.rules import RULES
from backprobe.rules.testing import example, judge_program, laws, wants_check
from tests.backprobe.rules.gold import read_gold, render_finding

GOLD = read_gold()

test_rule = laws(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.RULE.name)
def test_the_finding_of_an_example_reads_as_its_gold_text(rule, captured) -> None:
    """`python -m tests.backprobe.rules.gold` writes the gold texts again."""
    source, _line = example(rule)
    _end, (finding,) = judge_program(RULES, source, check=wants_check(rule))
    places = [(other.location.path, other.location.region) for other in (finding, *finding.related)]
    assert len(set(places)) == len(places), "one place is shown twice"
    assert render_finding(captured(source, check=wants_check(rule)), finding) == GOLD[rule.RULE.code]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.RULE.name)
def test_findings_stay_when_the_layout_and_the_place_of_an_example_change(rule) -> None:
    """With a comment and blank lines above, and moved into a function."""
    source, _line = example(rule)
    head, body = source.split("\n\n", 1)
    inside = "\n".join(f"    {line}" if line.strip() else line for line in body.rstrip().split("\n"))
    moved = f"# a comment\n\n{head}\n\n\n\ndef main():\n{inside}\n\nmain()\n"
    places = [
        [(finding.rule.code, finding.location.text.strip()) for finding in judge_program(RULES, text, check=False)[1]]
        for text in (source, moved)
    ]
    assert places[0] == places[1], moved
