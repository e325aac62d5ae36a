"""Hits and near misses beyond the manuals, under real capture; and what people read of the manuals' own examples."""

import ast
import re
from pathlib import Path

import pytest

from backprobe.rules import RULES, judge, manual
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.testing import wants_check
from backprobe.show.formats.finding_text import finding_lines
from backprobe.show.terminal_style import Ink
from tests.backprobe.rules.programs import PROGRAMS

GOLD = Path(__file__).parent / "gold"


def marks(source: str) -> list[tuple[str, int]]:
    lines = enumerate(source.split("\n"), 1)
    return sorted((code, number) for number, text in lines for code in re.findall(r"# <- (BP\d+)$", text.rstrip()))


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_is_found_at_its_marks_and_nowhere_else(source, captured) -> None:
    record = captured(source)
    assert record.end is not None
    findings = judge(record).findings
    assert [one.message for one in findings if one.rule.code == "BP902"] == []
    loud = [one for one in findings if one.level != "note"]
    assert sorted((one.rule.code, one.location.region.start_line) for one in loud) == marks(source)
    for fix in (fix for one in loud for fix in one.fixes if fix.edits):
        mended = edited(source, fix.edits)
        ast.parse(mended)
        again = captured(mended)
        assert again.end is not None
        assert again.end.exit_code in {record.end.exit_code, 0}, mended
        assert [one.rule.code for one in judge(again).findings if one.level != "note"] == [], mended


def test_where_no_values_are_recorded_a_write_through_data_is_told_by_its_statement(captured) -> None:
    record = captured(PROGRAMS["parameters-not-in-optimizer: written in place through .data"], tier="grad")
    judged = judge(record)
    assert judged.findings == ()
    need_values = {one.RULE.name for one in RULES if "stats" in one.RULE.needs}
    assert {one.name for one in judged.not_run} == need_values
    assert judged.rules_judged == len(RULES) - len(need_values)


@pytest.mark.parametrize(
    "use", ["weight = 1 / (1 + g.norm())\nloss = (weight * image).mean()", "loss = (g * image).sum()"]
)
def test_a_gradient_that_only_scales_is_not_said_to_be_differentiated(use, captured) -> None:
    source = (
        "import torch\nw = torch.ones(3, requires_grad=True)\nimage = w * 2\n"
        f"(g,) = torch.autograd.grad(image.pow(2).sum(), image, retain_graph=True)\n{use}\nloss.backward()\n"
    )
    (finding,) = judge(captured(source)).findings
    assert finding.rule.code == "BP325"
    assert "is used as a constant in what is differentiated" in finding.message
    assert "differentiated again" not in finding.message


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.RULE.name)
def test_the_finding_of_an_example_reads_as_its_gold_file(one, captured) -> None:
    """To renew one: print what is compared here, read it, and save it."""
    code = one.RULE.code
    record = captured(manual(code).of("Example")[0].text, check=wants_check(one))
    (finding,) = judge(record).findings
    assert "\n".join(finding_lines(record, finding, Ink())) + "\n" == (GOLD / f"{code}.txt").read_text()
