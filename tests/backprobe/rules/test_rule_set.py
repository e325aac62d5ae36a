"""Laws of the rules as a set, and of what judges with them."""

import ast
import types
from pathlib import Path

import msgspec
import pytest

import backprobe.rules
from backprobe.record import SCHEMA_VERSION, Environment, Header, Record, Source
from backprobe.rules import (
    RULES,
    WHY_NO_TIME,
    WHY_SLOW,
    Finding,
    JudgeOptions,
    JudgingTooLong,
    Location,
    Region,
    Rule,
    RuleTooSlow,
    UnknownRule,
    finding_json,
    judge,
    manual,
)
from backprobe.rules.framework.finding import RuleName, with_fingerprints
from backprobe.rules.framework.manual import every_rule
from backprobe.rules.testing import TORN, example

FOLDER = Path(backprobe.rules.__file__).parent
HUNDREDS = {
    "leaf": 1,
    "gradient": 2,
    "graph": 3,
    "inplace": 4,
    "numeric": 5,
    "mode": 6,
    "wiring": 7,
    "training": 8,
    "health": 9,
    "truth": 9,
    "invariants": 9,
}
OPENINGS = ("no-", "avoid-", "check-")


def empty(tier: str = "full") -> Record:
    header = Header(
        schema_version=SCHEMA_VERSION, backprobe_version="0", tier=tier, entry="run", started_at="2026-01-01T00:00:00Z",
        environment=Environment(python="3.11", platform="linux"),
    )  # fmt: skip
    return Record(header=header, sources=(Source(source=0, path="train.py", sha256="", text="x = 1\n"),))


def rule(name: str = "made-up", **more) -> Rule:
    fields = {"code": "BP999", "since": "0.1", "severity": "warning", "confidence": "proven", "fix": "manual", **more}
    return Rule(name=name, **fields)


def finding(line: int = 1, text: str = "x = 1", **more) -> Finding:
    fields = {
        "rule": RuleName(code="BP999", name="made-up", url="/rules/BP999"),
        "level": "warning",
        "confidence": "proven",
        "message": "m",
        "location": Location(
            path="train.py", region=Region(start_line=line, start_col=1, end_line=line, end_col=2), text=text
        ),
        "evidence": {"binding": "x"},
    }
    return Finding(**(fields | more))


def module(of: Rule, check) -> types.SimpleNamespace:
    return types.SimpleNamespace(RULE=of, check=check, __name__=of.name, __doc__="")


def test_names_and_codes_are_unique_and_registered_in_order() -> None:
    codes = [row.RULE.code for row in RULES]
    assert codes == sorted(set(codes))
    names = [row.name for row in every_rule()]
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith(OPENINGS)]


def test_a_rule_is_in_the_folder_of_its_family_and_has_a_code_of_its_hundred() -> None:
    for module in RULES:
        family = Path(module.__file__).parent
        assert family.parent == FOLDER, module.__file__
        assert module.RULE.code[2:3] == str(HUNDREDS[family.name]), module.__file__


def test_every_file_in_a_family_is_a_registered_rule() -> None:
    files = {path for family in HUNDREDS for path in (FOLDER / family).glob("[!_]*.py") if family != "health"}
    assert files == {Path(row.__file__) for row in RULES}


def test_rules_import_the_record_and_this_folder_only() -> None:
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += (
                [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            )
            for name in imported:
                assert name.split(".")[0] not in {"torch", "numpy", "os", "time", "socket", "random", "sqlalchemy"}, (
                    path
                )
                if name.startswith("backprobe."):  # the package alone says where it lies
                    assert name.startswith(("backprobe.record", "backprobe.rules", "backprobe.severity")), path


def test_an_unknown_rule_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownRule, match="Did you mean `inplace-on-saved`"):
        manual("inplace-on-save")
    with pytest.raises(UnknownRule, match="lists them all"):
        manual("zzzzzzzz")
    assert manual("bp101").rule.name == "non-leaf-grad-read"


def test_an_exception_in_a_rule_costs_that_rule_only() -> None:
    def broken(_record):
        raise ValueError("what the program printed")

    rules = [module(rule("broken", code="BP998"), broken), module(rule(), lambda _record: iter([finding()]))]
    judged = judge(empty(), rules=rules)
    assert [(row.rule.code, row.level) for row in judged.findings] == [("BP999", "warning"), ("BP902", "note")]
    assert judged.rules_judged == 1
    assert "broken" in judged.findings[1].message
    assert "ValueError" in judged.findings[1].message
    assert "printed" not in str(finding_json(judged.findings[1]))


@pytest.mark.parametrize("why", [RuleTooSlow, JudgingTooLong])
def test_a_rule_that_is_ended_from_outside_is_named_and_the_others_findings_stay(why) -> None:
    def slow(_record):
        yield finding()
        raise why

    rules = [
        module(rule("first", code="BP997"), lambda _record: iter([finding()])),
        module(rule("slow", code="BP998"), slow),
        module(rule(), lambda _record: iter(())),
    ]
    judged = judge(empty(), rules=rules)
    left = [("BP998", WHY_SLOW), *([("BP999", WHY_NO_TIME)] if why is JudgingTooLong else [])]
    assert [(row.code, row.why) for row in judged.not_run] == left
    assert (len(judged.findings), judged.rules_judged) == (1, 3 - len(left))


def test_a_rule_whose_facts_are_missing_is_not_run_and_that_is_said() -> None:
    rule_module = module(rule(needs=("snapshot", "saved")), lambda _record: iter([finding()]))
    judged = judge(empty("state"), rules=[rule_module])
    assert (judged.findings, judged.rules_judged) == ((), 0)
    assert [(row.code, row.why) for row in judged.not_run] == [
        ("BP999", "needs `saved`, which the tier `state` does not record")
    ]
    assert judge(empty("grad"), rules=[rule_module]).rules_judged == 1
    measured = module(rule(needs=("stats",)), lambda _record: iter(()))
    assert judge(empty("grad"), rules=[measured]).rules_judged == 0
    assert judge(empty("full"), rules=[measured]).rules_judged == 1


def test_equal_findings_are_one_with_their_count_and_steps() -> None:
    from backprobe.rules.framework.finding import Occurrences

    steps = [finding(occurrences=Occurrences(first_step=step, last_step=step)) for step in (3, 0, 7)]
    (merged,) = judge(empty(), rules=[module(rule(), lambda _record: iter(steps))]).findings
    assert merged.occurrences == Occurrences(count=3, first_step=0, last_step=7)


def test_findings_come_worst_first_then_in_order_of_the_source() -> None:
    mixed = [finding(3), finding(1, level="note"), finding(2, level="error"), finding(1)]
    judged = judge(empty(), rules=[module(rule(), lambda _record: iter(mixed))])
    assert [(row.level, row.location.region.start_line) for row in judged.findings] == [
        ("error", 2),
        ("warning", 1),
        ("warning", 3),
        ("note", 1),
    ]
    assert len(judged.at_least("warning")) == 3
    assert len(judged.at_least("error")) == 1


def test_options_select_and_ignore_by_name_or_code_and_change_the_ruleset() -> None:
    every = judge(empty())
    assert every.rules_judged == len(RULES)
    assert judge(empty(), JudgeOptions(select=("BP101", "inplace-on-saved"))).rules_judged == 2
    fewer = judge(empty(), JudgeOptions(ignore=("BP101",)))
    assert fewer.rules_judged == len(RULES) - 1
    assert every.ruleset == judge(empty()).ruleset != fewer.ruleset


def test_a_fingerprint_is_an_identity_that_survives_edits_elsewhere() -> None:
    (first,) = with_fingerprints([finding(1, "    x =  1")])
    (moved,) = with_fingerprints([finding(40, "x = 1 ", message="other", occurrences=finding().occurrences)])
    assert first.fingerprint == moved.fingerprint
    assert first.fingerprint.startswith("backprobe/v1:")
    assert len(first.fingerprint) == len("backprobe/v1:") + 16
    first_finding, two = with_fingerprints([finding(1), finding(2)])
    assert first_finding.fingerprint == first.fingerprint != two.fingerprint
    windows = msgspec.structs.replace(
        finding(), location=msgspec.structs.replace(finding().location, path="a\\train.py")
    )
    posix = msgspec.structs.replace(finding(), location=msgspec.structs.replace(finding().location, path="a/train.py"))
    assert with_fingerprints([windows])[0].fingerprint == with_fingerprints([posix])[0].fingerprint != first.fingerprint
    others = [
        finding(evidence={"binding": "y"}),
        finding(text="x = 2"),
        finding(rule=RuleName(code="BP999", name="other", url="")),
        msgspec.structs.replace(finding(), location=msgspec.structs.replace(finding().location, function="main")),
    ]
    assert len({reported.fingerprint for reported in with_fingerprints(others)} | {first.fingerprint}) == 5


def test_the_json_of_a_finding_is_the_shape_that_clients_read() -> None:
    shown = finding_json(finding(), id="f_1", run="run_1", ruleset="rs_1")
    assert list(shown)[:4] == ["schema", "id", "run", "ruleset"]
    assert set(shown) == {
        "schema", "id", "run", "ruleset", "fingerprint", "rule", "level", "confidence", "message", "location", "related",
        "stacks", "evidence", "fixes", "consequences", "occurrences", "suppressed",
    }  # fmt: skip
    assert shown["location"] == {
        "path": "train.py",
        "region": {"start_line": 1, "start_col": 1, "end_line": 1, "end_col": 2},
        "text": "x = 1",
    }
    assert "id" not in finding_json(finding())


def test_judging_twice_and_from_a_stored_copy_gives_equal_findings(captured) -> None:
    from backprobe.record import dumps, loads

    source = manual("BP401").of("Example")[0].text
    record = captured(source)
    assert judge(record).findings == judge(loads(dumps(record))).findings == judge(record, rules=RULES[::-1]).findings


@pytest.mark.parametrize("family", [family for family in HUNDREDS if family != "health"])
def test_all_rules_judge_a_torn_record_and_a_broken_one_stays_inside_its_fence(family, captured) -> None:
    """The Example of the rule of each family that folds most others under it: what judges with the rules reads it too."""
    rules = [module for module in RULES if Path(module.__file__).parent.name == family]
    record = captured(example(max(rules, key=lambda module: len(module.RULE.explains)))[0])
    for table in TORN:
        judged = judge(msgspec.structs.replace(record, **{table: ()}))
        broken = sum(finding.rule.code == "BP902" for finding in judged.findings)
        assert judged.rules_judged + len(judged.not_run) + broken == len(RULES), table
