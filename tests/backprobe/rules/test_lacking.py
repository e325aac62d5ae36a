"""No rule breaks on a record that lacks a fact: one of a run that was cut, of a lower tier, of code without a file."""

import pytest

from backprobe.rules import RULES
from backprobe.rules.framework.tables import shared_tables
from backprobe.rules.testing import example, wants_check
from tests.backprobe.rules.programs import PROGRAMS
from tests.mutation.lacking import lacking

EVERY = 5
"""Of the programs beyond the manuals so many share a case's place; each rule has its first one."""


def programs_of(name: str) -> list[str]:
    """Every fifth of a rule's programs beyond its manual, from the first."""
    return [text for title, text in PROGRAMS.items() if title.startswith(f"{name}: ")][::EVERY]


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.RULE.name)
def test_a_rule_breaks_on_no_record_that_lacks_a_fact(one, captured) -> None:
    broken: list[str] = []
    for text in (example(one)[0], *programs_of(one.RULE.name)):
        for variant in lacking(captured(text, check=wants_check(one))):
            with shared_tables(variant.record):
                try:
                    list(one.check(variant.record))
                except Exception as error:
                    broken.append(f"{variant.about}: {type(error).__name__} {error}")
    assert broken == []
