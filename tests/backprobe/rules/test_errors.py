"""Each recorded error of autograd is found by its one rule at its cause, or is left alone for a reason."""

import json
from pathlib import Path

import msgspec
import pytest

from backprobe.record import End, Raised
from backprobe.rules import JudgeOptions, judge
from backprobe.rules.health.autograd_error_unexplained import NOT_AUTOGRAD, unexplained
from tests.backprobe.rules.error_programs import PROGRAMS, RULES, SILENT

MESSAGES: dict[str, str | None] = json.loads(Path(__file__).with_name("error_messages.json").read_text())["messages"]
"""Mistake -> what torch says of it; None for one that raises nothing."""


def test_every_recorded_error_has_a_program_and_one_verdict() -> None:
    assert set(PROGRAMS) == set(MESSAGES)
    assert set(RULES) | set(SILENT) == set(MESSAGES)
    assert not set(RULES) & set(SILENT)
    assert all(len(reason) > 20 for reason in SILENT.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_is_found_by_its_rule(name, captured) -> None:
    record = captured(PROGRAMS[name])
    assert record.end is not None
    message = MESSAGES[name]
    if message is None:
        assert record.end.ending == "ended"
    else:
        assert message[:60] in {row.message[:60] for row in record.raised}
    found = [finding.rule.code for finding in judge(record).findings]
    expected = RULES.get(name)
    assert found == ([] if expected is None else [expected])


@pytest.fixture
def odd(captured):
    """A record whose error no rule explains: saved tensors were asked for after they had been freed."""
    return captured(PROGRAMS["access_saved_after_free"])


def test_an_error_that_no_rule_explains_is_told_where_it_surfaced(odd) -> None:
    (finding,) = judge(odd).findings
    assert (finding.rule.code, finding.level, finding.location.region.start_line) == ("BP901", "error", 6)
    assert finding.message.startswith("RuntimeError from autograd: Trying to backward through the graph a second time")
    assert finding.evidence["family"] == "freed-graph"


def test_it_is_silent_where_another_finding_is_an_error_or_rules_were_left_out(odd) -> None:
    (finding,) = judge(odd).findings
    assert unexplained(odd, [finding]) == []
    assert unexplained(odd, [msgspec.structs.replace(finding, level="warning")]) == [
        msgspec.structs.replace(finding, fingerprint="")
    ]
    assert judge(odd, JudgeOptions(ignore=("BP301",))).findings == ()
    assert judge(odd, JudgeOptions(select=("BP1",))).findings == ()


def changed(record, **fields) -> tuple[Raised, ...]:
    return tuple(msgspec.structs.replace(row, **fields) for row in record.raised)


def test_it_speaks_of_autograd_and_of_how_the_program_ended_only(odd) -> None:
    end = End(ending="ended", exit_code=0)
    assert unexplained(msgspec.structs.replace(odd, end=end), []) == []
    assert unexplained(msgspec.structs.replace(odd, end=None), []) == []
    assert unexplained(msgspec.structs.replace(odd, raised=changed(odd, site=None)), []) == []
    for family in sorted(NOT_AUTOGRAD):
        assert unexplained(msgspec.structs.replace(odd, raised=changed(odd, family=family)), []) == []
    foreign = changed(odd, family=None, message="division by zero")
    assert unexplained(msgspec.structs.replace(odd, raised=foreign), []) == []
    older = changed(odd, family=None)
    assert len(unexplained(msgspec.structs.replace(odd, raised=older), [])) == 1
