"""Hits and near misses beyond the manuals, under real capture; and that no rule breaks on a record that lacks a fact."""

import ast
import re

import pytest
from msgspec.structs import replace

from backprobe.record import Record
from backprobe.rules import RULES, judge
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.framework.tables import shared_tables
from backprobe.rules.testing import example, wants_check
from tests.backprobe.rules.programs import PROGRAMS
from tests.mutation.lacking import lacking

EVERY = 5
"""Of the programs of a rule, the first and every fifth behind it are judged without each fact."""


def marks(source: str) -> list[tuple[str, int]]:
    lines = enumerate(source.split("\n"), 1)
    return sorted((code, number) for number, text in lines for code in re.findall(r"# <- (BP\d+)$", text.rstrip()))


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_is_found_at_its_marks_and_nowhere_else(source, captured) -> None:
    record = captured(source)
    assert record.end is not None
    findings = judge(record).findings
    assert [finding.message for finding in findings if finding.rule.code == "BP902"] == []
    loud = [finding for finding in findings if finding.level != "note"]
    assert sorted((finding.rule.code, finding.location.region.start_line) for finding in loud) == marks(source)
    for fix in (fix for finding in loud for fix in finding.fixes if fix.edits):
        mended = edited(source, fix.edits)
        ast.parse(mended)
        again = captured(mended)
        assert again.end is not None
        assert again.end.exit_code in {record.end.exit_code, 0}, mended
        assert [finding.rule.code for finding in judge(again).findings if finding.level != "note"] == [], mended


def test_where_no_values_are_recorded_a_write_through_data_is_told_by_its_statement(captured) -> None:
    record = captured(PROGRAMS["parameters-not-in-optimizer: written in place through .data"], tier="grad")
    judged = judge(record)
    assert judged.findings == ()
    need_values = {rule.RULE.name for rule in RULES if "stats" in rule.RULE.needs}
    assert {row.name for row in judged.not_run} == need_values
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


def test_the_function_of_a_hook_is_found_where_its_path_is_written_whole(captured) -> None:
    """A program that is started by its path has such paths in its record."""
    (rule,) = [rule for rule in RULES if rule.RULE.code == "BP250"]
    record = captured(example(rule)[0])
    hooks = tuple(replace(hook, path=f"/home/user/{hook.path}") for hook in record.hooks)
    assert [finding.rule.code for finding in judge(replace(record, hooks=hooks)).findings] == ["BP250"]


class TablesRead:
    """A record that notes which of its tables are read."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.names: set[str] = set()

    def __getattr__(self, name: str) -> object:
        self.names.add(name)
        return getattr(self._record, name)


def find_tables(rule: RuleModule, record: Record) -> set[str]:
    """Find the tables of a record that a rule reads: what it says cannot depend on the others."""
    watched = TablesRead(record)
    with shared_tables(watched):
        list(rule.check(watched))
    return watched.names


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.RULE.name)
def test_a_rule_breaks_on_no_record_that_lacks_a_fact(rule, captured) -> None:
    """One of a run that was cut, of a lower tier, of code without a file."""
    broken: list[str] = []
    beyond = [text for title, text in PROGRAMS.items() if title.startswith(f"{rule.RULE.name}: ")]
    for text in (example(rule)[0], *beyond[::EVERY]):
        record = captured(text, check=wants_check(rule))
        for variant in lacking(record, find_tables(rule, record)):
            with shared_tables(variant.record):
                try:
                    list(rule.check(variant.record))
                except Exception as error:
                    broken.append(f"{variant.about}: {type(error).__name__} {error}")
    assert broken == []
