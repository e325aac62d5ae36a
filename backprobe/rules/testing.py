"""The laws of rules as pytest tests, for rules of one's own; Backprobe's own rules are tested by the same functions.

    # tests/test_rules.py
    from my_rules import RULES
    from backprobe.rules.testing import laws

    test_rules = laws(RULES)

Programs of the manuals are run under capture in a process of their own, which needs torch; judging them does not. They
are not confined: a manual is a program of yours.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec

from backprobe.record import End, dumps, loads
from backprobe.rules.edits.text_edits import edited
from backprobe.rules.framework.facts import FACTS
from backprobe.rules.framework.finding import Finding
from backprobe.rules.framework.judge import judge
from backprobe.rules.framework.manual import MARK, TITLES, Manual, parse
from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.manual_programs import NAME, programs
from backprobe.rules.registry import RULES

IMPURE: Final = frozenset(
    {
        "asyncio",
        "datetime",
        "io",
        "multiprocessing",
        "numpy",
        "os",
        "pathlib",
        "random",
        "requests",
        "secrets",
        "shutil",
    }
    | {
        "socket",
        "sqlalchemy",
        "sqlite3",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "torch",
        "urllib",
        "uuid",
    }
)
"""Modules that no rule imports: it reads no file, clock, network, environment or torch."""

TORN: Final = (
    "bindings",
    "edges",
    "inplace_events",
    "node_passes",
    "saved",
    "sites",
    "snapshots",
    "sources",
    "tensor_nodes",
)
"""Tables that are taken out of a record, one at a time, to see that a rule only ever says less."""

Law = Callable[[RuleModule, Sequence[RuleModule]], None]


def laws(rules: Sequence[RuleModule]) -> Callable[[Law, RuleModule], None]:
    """A pytest test with one case for each rule and law; assign it to a name that begins with `test`."""
    import pytest

    cases = [pytest.param(law, one, id=f"{one.RULE.name}: {law.__name__}") for one in rules for law in LAWS]

    @pytest.mark.parametrize(("law", "rule"), cases)
    def test(law: Law, rule: RuleModule) -> None:
        law(rule, rules)

    return test


def judge_program(rules: Sequence[RuleModule], source: str, *, check: bool) -> tuple[End | None, tuple[Finding, ...]]:
    """Run a program and judge its record with Backprobe's rules and these: how the program ended, and the findings.

    The laws of a rule share the answer. An assertion fails if a rule breaks: a broken rule is not silent.
    """
    end, findings = _judge_once(tuple(rules), source, check)
    broken = [finding.message for finding in findings if finding.rule.code == "BP902"]
    assert broken == [], f"{broken}, at\n{source}"
    return end, findings


@cache
def _judge_once(
    rules: tuple[RuleModule, ...],
    source: str,
    check: bool,  # noqa: FBT001 - the key of the cache
) -> tuple[End | None, tuple[Finding, ...]]:
    record = programs().captured(source, check=check)
    foreign = [rule for rule in rules if rule not in RULES]
    return record.end, judge(record, rules=[*RULES, *foreign] if foreign else None).findings


def loud(findings: Sequence[Finding]) -> list[tuple[str, int]]:
    """Name and line of what is at warning or above."""
    return [(one.rule.name, one.location.region.start_line) for one in findings if one.level != "note"]


def wants_check(rule: RuleModule) -> bool:
    """Its programs run with their gradients checked."""
    return "check" in rule.RULE.needs


def pages(rule: RuleModule) -> Manual:
    """A rule's manual."""
    return parse(rule.RULE, rule.__doc__ or "")


def example(rule: RuleModule) -> tuple[str, int]:
    """The Example of a rule's manual, and the line that its finding stands at."""
    (section,) = pages(rule).of("Example")
    marked = [line for line, text in enumerate(section.text.split("\n"), 1) if text.rstrip().endswith(MARK)]
    assert len(marked) == 1, f"one line of the Example ends with `{MARK}`"
    return section.text, marked[0]


def its_declaration_holds(rule: RuleModule, rules: Sequence[RuleModule]) -> None:
    """Name, code, file, facts and other rules that a rule names are as they must be."""
    declared = rule.RULE
    names = {one.RULE.name for one in (*RULES, *rules)}
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", declared.name)
    assert not declared.name.startswith(("no-", "avoid-", "check-")), "a name says what is wrong, not what to do"
    assert re.fullmatch(r"[A-Z]{2,4}\d{3}", declared.code)
    assert Path(str(getattr(rule, "__file__", ""))).stem == declared.name.replace("-", "_")
    assert [one.RULE.code for one in rules].count(declared.code) == 1
    assert declared.needs
    assert set(declared.needs) <= FACTS
    assert set(declared.explains) | set(declared.refines) <= names - {declared.name}


def its_manual_is_whole(rule: RuleModule, _rules: Sequence[RuleModule]) -> None:
    """All sections in their order; at least one near miss, three for a heuristic at warning or above."""
    titles = [section.title for section in pages(rule).sections]
    assert list(dict.fromkeys(titles)) == list(TITLES)
    assert all(TITLES.index(left) <= TITLES.index(right) for left, right in pairwise(titles))
    loud_guess = rule.RULE.confidence == "heuristic" and rule.RULE.severity != "note"
    assert titles.count("Near miss") >= (3 if loud_guess else 1)


def it_imports_nothing_impure(rule: RuleModule, _rules: Sequence[RuleModule]) -> None:
    """A rule reads the record and nothing else."""
    for node in ast.walk(ast.parse(Path(str(getattr(rule, "__file__", ""))).read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] not in IMPURE, name
            assert not name.startswith("backprobe") or name.startswith(("backprobe.record", "backprobe.rules")), name


def its_example_is_found(rule: RuleModule, rules: Sequence[RuleModule]) -> None:
    """Once, at its mark, as declared, and by no other rule at warning or above."""
    source, line = example(rule)
    _end, findings = judge_program(rules, source, check=wants_check(rule))
    if rule.RULE.severity == "note":
        own = [one for one in findings if one.rule.name == rule.RULE.name]
        assert [one.location.region.start_line for one in own] == [line]
        assert loud(findings) == []
    else:
        assert loud(findings) == [(rule.RULE.name, line)]
        own = [one for one in findings if one.level != "note"]
    assert (own[0].level, own[0].confidence) == (rule.RULE.severity, rule.RULE.confidence)
    assert own[0].location.text == source.split("\n")[line - 1]


def what_is_right_is_left_alone(rule: RuleModule, rules: Sequence[RuleModule]) -> None:
    """Use instead and every near miss run to their end, and no rule warns of them; a rule of notes says nothing."""
    for section in pages(rule).sections:
        if section.title in {"Use instead", "Near miss"}:
            end, findings = judge_program(rules, section.text, check=wants_check(rule))
            assert end is not None, section.text
            assert end.exit_code == 0, section.text
            assert loud(findings) == [], section.text
            if rule.RULE.severity == "note":
                assert rule.RULE.name not in {one.rule.name for one in findings}, section.text


def its_fixes_mend(rule: RuleModule, rules: Sequence[RuleModule]) -> None:
    """Every fix with edits, applied to the Example, parses, runs and is silent; a declared one is there."""
    source, _line = example(rule)
    _end, findings = judge_program(rules, source, check=wants_check(rule))
    own = [finding for finding in findings if finding.rule.name == rule.RULE.name]
    offered = [fix for one in own for fix in one.fixes if fix.edits]
    assert offered or rule.RULE.fix == "manual"
    for fix in offered:
        assert {edit.path for edit in fix.edits} == {NAME}
        mended = edited(source, fix.edits)
        ast.parse(mended)
        end, findings = judge_program(rules, mended, check=wants_check(rule))
        assert end is not None, mended
        assert end.exit_code == 0, mended
        assert loud(findings) == [], mended


def it_is_pure(rule: RuleModule, rules: Sequence[RuleModule]) -> None:
    """Judging again, in another order and from a stored copy, gives equal findings."""
    source, _line = example(rule)
    _end, first = judge_program(rules, source, check=wants_check(rule))
    stored = loads(dumps(programs().captured(source, check=wants_check(rule))))
    every = [*RULES, *(one for one in rules if one not in RULES)]
    assert judge(stored, rules=every[::-1]).findings == first


def a_torn_record_breaks_nothing_else(rule: RuleModule, _rules: Sequence[RuleModule]) -> None:
    """With a table taken out the rule judges, is not run, or breaks inside its fence; a lower tier takes facts away."""
    record: Any = programs().captured(example(rule)[0], check=wants_check(rule))
    for table in TORN:
        judged = judge(msgspec.structs.replace(record, **{table: ()}), rules=[rule])
        assert judged.rules_judged + len(judged.not_run) + _broken(judged.findings) == 1, table
    bare = msgspec.structs.replace(record, header=msgspec.structs.replace(record.header, tier="state"))
    judged = judge(bare, rules=[rule])
    assert judged.rules_judged + len(judged.not_run) + _broken(judged.findings) == 1


def _broken(findings: Sequence[Finding]) -> int:
    return sum(one.rule.code == "BP902" for one in findings)


LAWS: Final[tuple[Law, ...]] = (
    its_declaration_holds,
    its_manual_is_whole,
    it_imports_nothing_impure,
    its_example_is_found,
    what_is_right_is_left_alone,
    its_fixes_mend,
    it_is_pure,
    a_torn_record_breaks_nothing_else,
)
