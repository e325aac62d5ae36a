"""Judging has a bound: a record that is made to be slow costs its author findings, and no worker its thread."""

import time

import pytest
from msgspec import structs

from backprobe.record import SCHEMA_VERSION, Environment, Header, Record, Source
from backprobe.rules import WHY_NO_TIME, WHY_SLOW, judge
from backprobe.rules.analysis.source import syntax
from workers.judging_budget import broken_off, judged_in_time

SLOW = "if 1:\n    x = 1\nelse:  # backprobe: ignore[non-leaf-grad-read]\n    x = 2\n" * 4_500
"""No statement's head covers an `else`: each comment looks through all statements before it. Seconds, whole."""


def of_source(text: str) -> Record:
    header = Header(
        schema_version=SCHEMA_VERSION, backprobe_version="0", tier="full", entry="service",
        started_at="2026-01-01T00:00:00Z", environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    return Record(header=header, sources=(Source(source=0, path="main.py", sha256="", text=text),))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little time for a rule, and for all."""
    for name, seconds in (("RULE", 0.2), ("NEXT", 0.1), ("ALL", 0.4), ("LAST", 0.2), ("LOOK", 0.01)):
        monkeypatch.setattr(f"workers.judging_budget.{name}_SECONDS", seconds)


def test_a_record_that_is_slow_for_the_rules_is_left_in_time_and_that_is_said(hasty) -> None:
    record = of_source(SLOW)
    began = time.thread_time()
    judgement, whys = judged_in_time(record)
    assert time.thread_time() - began < 10  # by this thread's own clock, which stands while others run
    assert broken_off(judgement)
    assert {rule.why for rule in judgement.not_run} <= {WHY_SLOW, WHY_NO_TIME}
    assert (judgement.findings, whys) == ((), {})


def test_an_ordinary_record_is_judged_as_ever() -> None:
    record = of_source("x = 1  # backprobe: ignore\n")
    judgement, _ = judged_in_time(record)
    assert judgement == judge(record)
    assert [finding.rule.code for finding in judgement.findings] == ["BP909"]
    assert not broken_off(judgement)


def test_nothing_is_raised_in_a_thread_that_has_judged(monkeypatch) -> None:
    for name in ("RULE", "NEXT", "LAST", "LOOK"):
        monkeypatch.setattr(f"workers.judging_budget.{name}_SECONDS", 0.0005)
    record = of_source("x = 1  # backprobe: ignore\n")
    whole = judge(record)
    ended = 0
    for number in range(300):
        monkeypatch.setattr("workers.judging_budget.ALL_SECONDS", 0.0005 * (number % 20))
        judgement, _ = judged_in_time(record)
        ended += broken_off(judgement)
        assert judgement == whole or broken_off(judgement)
        assert sum(range(2000)) == 1_999_000  # where an exception that comes late would arrive
    assert ended


def test_sources_without_end_get_no_trees_and_those_before_them_keep_theirs() -> None:
    words = "x;" * (syntax.MOST_WORDS // 2)  # as many as there may be: the second of two has none
    record = of_source("y = 1\n")
    longer = tuple(
        Source(source=number, path=f"{number}.py", sha256="", text=text)
        for number, text in enumerate(("y = 1\n", words, "\n" * len(words), "z = 2\n"))
    )
    assert set(syntax.trees(record)) == {0}
    assert set(syntax.trees(structs.replace(record, sources=longer))) == {0, 3}
    assert not broken_off(judged_in_time(structs.replace(record, sources=longer))[0])
