"""What may be chosen about judging, and how a wrong choice is answered."""

import pytest

from backprobe.rules import RULES, BadOption, JudgeOptions, judge, kept_options, manual, options_from, ruleset
from backprobe.rules.framework.options import chosen_thresholds, threshold
from backprobe.rules.framework.rule import Rule

DECLARED = [rule.RULE for rule in RULES]
STEEP = Rule(
    name="too-steep", code="BP599", since="0.1", severity="warning", confidence="heuristic", fix="manual",
    needs=("stats",), thresholds={"ratio": 1000.0},
)  # fmt: skip


def test_settings_become_options() -> None:
    options = options_from(
        {
            "select": ["BP1", "inplace-on-saved"],
            "ignore": [],
            "severity": {"non-leaf-grad-read": "note"},
            "per-file-ignores": {"tests/*": ["BP101"]},
            "thresholds": {"too-steep.ratio": 50},
            "min-confidence": "likely",
        },
        [*DECLARED, STEEP],
    )
    assert options.select == ("BP1", "inplace-on-saved")
    assert options.severity == {"non-leaf-grad-read": "note"}
    assert options.per_file_ignores == {"tests/*": ("BP101",)}
    assert options.thresholds == {"too-steep.ratio": 50.0}
    wanted = [rule.code for rule in DECLARED if options.wants(rule)]
    assert wanted == [rule.code for rule in DECLARED if rule.code.startswith("BP1") or rule.code == "BP401"]
    assert len(wanted) < len(DECLARED)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"selct": []}, "`selct` is no setting of judging; did you mean `select`?"),
        ({"select": "BP101"}, "must be a list of rule names or codes"),
        ({"ignore": ["non-leaf-grad"]}, "there is no rule `non-leaf-grad`; did you mean `non-leaf-grad-read`?"),
        ({"severity": {"BP101": "fatal"}}, "'fatal' is no level; `BP101` may be error, warning or note"),
        ({"severity": ["BP101"]}, "must be a table"),
        ({"thresholds": {"too-steep.ration": 1}}, "did you mean `too-steep.ratio`?"),
        ({"thresholds": {"too-steep.ratio": "1"}}, "must be a finite number"),
        ({"thresholds": {"too-steep.ratio": float("inf")}}, "must be a finite number"),
        ({"thresholds": {"too-steep.ratio": True}}, "must be a finite number"),
        ({"min-confidence": "sure"}, "must be proven, likely or heuristic"),
        ({"per-file-ignores": {"*": "BP101"}}, "`per-file-ignores.*` must be a list"),
    ],
)
def test_a_setting_that_cannot_be_followed_is_named_with_what_is_near(settings, said) -> None:
    with pytest.raises(BadOption) as refused:
        options_from(settings, [*DECLARED, STEEP])
    assert said in str(refused.value)


def test_a_threshold_is_the_rules_own_unless_chosen() -> None:
    assert threshold(STEEP, "ratio") == 1000.0
    with chosen_thresholds({"too-steep.ratio": 5.0}):
        assert threshold(STEEP, "ratio") == 5.0
    assert threshold(STEEP, "ratio") == 1000.0
    with pytest.raises(KeyError):
        threshold(STEEP, "slope")


def test_severity_replaces_the_level_but_not_that_of_an_exception(captured) -> None:
    quiet = captured(manual("BP101").of("Example")[0].text)
    (as_note,) = judge(quiet, JudgeOptions(severity={"non-leaf-grad-read": "note"})).findings
    assert as_note.level == "note"
    raised = captured(manual("BP401").of("Example")[0].text)
    (still,) = judge(raised, JudgeOptions(severity={"BP401": "note"})).findings
    assert still.level == "error"


def test_settings_that_were_kept_are_the_options_that_they_were() -> None:
    settings = {"select": ["BP1"], "ignore": ["BP109"], "severity": {"BP101": "note"}, "min_confidence": "proven"}
    settings["per_file_ignores"] = {"tests/*": ["BP101"]}
    assert kept_options(settings) == options_from(settings, [module.RULE for module in RULES])
    assert kept_options(None) is None
    assert kept_options({"ignore": ["gone-since"]}) == JudgeOptions(ignore=("gone-since",))


def test_the_ruleset_of_options_begins_with_that_of_the_rules() -> None:
    assert ruleset() == ruleset(JudgeOptions())
    chosen = ruleset(JudgeOptions(ignore=("BP101",)))
    assert chosen.startswith(f"{ruleset()}_")
    assert chosen != ruleset(JudgeOptions(ignore=("BP102",)))


def test_files_and_confidence_leave_findings_out_and_change_the_ruleset(captured) -> None:
    record = captured(manual("BP325").of("Example")[0].text)
    (finding,) = judge(record).findings
    assert finding.confidence == "likely"
    for options in (
        JudgeOptions(per_file_ignores={"tr*.py": ("BP325",)}),
        JudgeOptions(min_confidence="proven"),
    ):
        judged = judge(record, options)
        assert judged.findings == ()
        assert judged.ruleset != judge(record).ruleset
    assert judge(record, JudgeOptions(per_file_ignores={"other.py": ("BP325",)})).findings == (finding,)
