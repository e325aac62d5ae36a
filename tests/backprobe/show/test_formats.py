"""SARIF, JUnit and GitHub's annotations: what other programs read."""

import json
import math
from xml.etree import ElementTree

import pytest

from backprobe.rules import Location, Region
from backprobe.rules.framework.finding import Stack, StackFrame, Suppression
from backprobe.rules.framework.manual import every_rule
from backprobe.rules.policy import Rules
from backprobe.show.formats import github, junit, sarif
from backprobe.show.formats.program_report import ProgramError, Reported, report_program
from tests.backprobe.show.records import TEXT, finding, judgement, two_leaves
from tests.backprobe.show.sarif_shape import LOG
from tests.support.json_schema import validator

HOSTILE = "]]>\x1b[31m\0\u202e<&::error::x\nnext%0A"


def reported_run(*findings, **more):
    facts = {"name": "train.py", "ended_well": True, "ending": "ended", "ruleset": "rs_0", "rules_judged": 5, **more}
    return Reported(findings=findings, **facts)


def log_of(*runs):
    log = json.loads(sarif.render(runs, name="nightly"))
    validator(LOG).validate(log)
    return log["runs"][0]


def full(**more):
    stack = Stack(role="backward", frames=(StackFrame(path="/lib/a b.py", line=3, function="f"),) * 2)
    return finding(stacks=(stack,), evidence={"binding": "w", "norm": math.nan}, **more)


def test_sarif_tells_the_whole_finding():
    run = log_of(report_program(two_leaves(), judgement(full()), script="train.py"))
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"]["snippet"]["text"] == TEXT.split("\n")[1]
    assert (place["region"]["startLine"], place["region"]["startColumn"], place["region"]["endColumn"]) == (2, 5, 37)
    assert result["occurrenceCount"] == 4
    assert result["partialFingerprints"] == {"backprobe/v1": "0123456789abcdef"}
    assert result["properties"]["evidence"] == {"binding": "w", "norm": "nan"}
    assert result["relatedLocations"][0]["message"]["text"] == "walked here"
    assert result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"] == "3.0"
    frame = result["stacks"][0]["frames"][0]["location"]["physicalLocation"]
    assert frame["artifactLocation"]["uri"] == "file:///lib/a%20b.py"
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["automationDetails"]["id"] == "backprobe/nightly/"


def test_every_rule_is_listed_so_that_clean_is_told_from_not_judged():
    driver = log_of(reported_run(finding()))["tool"]["driver"]
    assert {rule["id"] for rule in driver["rules"]} == {rule.code for rule in every_rule()}
    assert [rule["id"] for rule in driver["rules"] if "help" in rule] == ["BP101"]


def test_the_control_a_property_that_sarif_does_not_know_is_refused():
    log = json.loads(sarif.render([reported_run(finding())], name="x"))
    log["runs"][0]["results"][0]["bogus"] = 1
    assert list(validator(LOG).iter_errors(log))


def test_a_suppressed_finding_is_told_as_such():
    hidden = finding(suppressed=Suppression(kind="inSource", reason="only logged"))
    (result,) = log_of(reported_run(hidden))["results"]
    assert result["suppressions"] == [{"kind": "inSource", "justification": "only logged"}]
    suite = ElementTree.fromstring(junit.render([reported_run(hidden)]))
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert github.render([reported_run(hidden)]) == "backprobe: no finding"


def test_what_is_over_the_cap_is_counted_and_the_worst_stay(monkeypatch):
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    run = log_of(reported_run(finding(level="note"), finding(), finding(level="error")))
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    (notice,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notice["message"]["text"].startswith("1 findings are left out")


def test_a_run_that_did_not_end_well_is_an_error_in_each():
    bad = reported_run(ended_well=False, ending="lost", ruleset=None, exit_code=None)
    assert log_of(bad)["invocations"][0]["executionSuccessful"] is False
    suite = ElementTree.fromstring(junit.render([bad]))
    assert (suite.get("errors"), suite.get("skipped"), suite.get("tests")) == ("1", "1", "2")


@pytest.mark.parametrize(("fail_on", "failures"), [("error", "1"), ("warning", "2"), ("note", "3")])
def test_what_fails_in_junit_is_chosen(fail_on, failures):
    run = reported_run(finding(level="error"), finding(), finding(level="note"))
    assert ElementTree.fromstring(junit.render([run], fail_on=fail_on)).get("failures") == failures


def test_annotations_are_worst_first_and_the_rest_is_counted():
    run = reported_run(*(finding() for _ in range(12)), finding(level="error"))
    lines = github.render([run]).split("\n")
    assert lines[0].startswith(
        "::error file=train.py,line=2,endLine=2,col=5,endColumn=37,title=BP101 non-leaf-grad-read::"
    )
    assert len(lines) == 1 + 10 + 1
    assert lines[-1] == "backprobe: 1 error, 12 warnings; 2 of them are not annotated"


def test_a_strangers_text_stays_text():
    place = Location(
        path="a,b:c\n::error::.py", region=Region(start_line=1, start_col=1, end_line=1, end_col=2), text=HOSTILE
    )
    run = reported_run(
        finding(message=HOSTILE, location=place, suppressed=None), name=HOSTILE, ending=HOSTILE, ended_well=False
    )
    annotations = github.render([run]).split("\n")
    assert len(annotations) == 3
    assert annotations[0].startswith("::error title=the program did not end well::]]>\\x1b[31m")
    assert annotations[1].startswith("::warning file=a%2Cb%3Ac\\x0a%3A%3Aerror%3A%3A.py,line=1,")
    assert annotations[1].endswith("%0Anext%250A")
    ElementTree.fromstring(junit.render([run]))
    (result,) = log_of(run)["results"]
    assert "\x1b" not in result["message"]["text"]
    for text in (*annotations, junit.render([run])):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_strangers_text_makes_no_link_of_a_sarif_message():
    place = Location(path="a.py", region=Region(start_line=1, start_col=1, end_line=1, end_col=2), text="x")
    (result,) = log_of(reported_run(finding(message="`[here](https://evil.example)`", location=place)))["results"]
    assert result["message"]["text"] == "`[here\\](https://evil.example)`"


RAISED = {
    "ended_well": False,
    "ending": "raised",
    "exit_code": 1,
    "error": ProgramError(kind="ValueError", message="no rows\nat all", path="jobs/a.py", line=3),
}
EVERYTHING = Rules(fail=("*",), new_only=True)


def test_a_program_that_raised_is_told_with_its_exception_in_each():
    bad = reported_run(**RAISED)
    title = "title=the program did not end well"
    said = github.render([bad], verdict="gate failed: 1 error; 0 findings; audit aud_1").split("\n")
    assert said == [
        f"::error file=jobs/a.py,line=3,{title}::train.py: ValueError: no rows (jobs/a.py:3)",
        "backprobe: 1 error; gate failed: 1 error; 0 findings; audit aud_1",
    ]
    case = ElementTree.fromstring(junit.render([bad])).find("testsuite/testcase")
    error = None if case is None else case.find("error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == ("ValueError", "ValueError: no rows (jobs/a.py:3)")
    assert "at all" in (error.text or "")
    (notice,) = log_of(bad)["invocations"][0]["toolExecutionNotifications"]
    assert notice["exception"] == {"kind": "ValueError", "message": "no rows\nat all"}
    assert notice["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


def test_findings_of_an_audit_are_what_its_policy_says_and_not_what_their_level_says():
    fails = reported_run(finding(level="note"), rules=Rules(fail=("BP1",)), verdict="fail")
    warns = reported_run(finding(level="error"), rules=Rules(fail=()), verdict="warn")
    nothing = reported_run(finding(level="error"), rules=Rules(fail=(), warn=()), verdict="pass")
    levels = [github.render([run]).partition(" ")[0] for run in (fails, warns, nothing)]
    assert levels == ["::error", "::warning", "::notice"]
    failures = [ElementTree.fromstring(junit.render([run])).get("failures") for run in (fails, warns, nothing)]
    assert failures == ["1", "0", "0"]
    assert "<system-out>train.py:2" in junit.render([warns])


def test_what_the_baseline_has_is_told_as_known():
    known = reported_run(finding(), rules=EVERYTHING, known=frozenset({finding().fingerprint}), verdict="pass")
    new = reported_run(finding(), rules=EVERYTHING, known=frozenset(), verdict="fail")
    suites = [ElementTree.fromstring(junit.render([run])) for run in (known, new)]
    assert [(suite.get("failures"), suite.get("skipped")) for suite in suites] == [("0", "1"), ("1", "0")]
    assert [log_of(run)["results"][0]["baselineState"] for run in (known, new)] == ["unchanged", "new"]
    assert "baselineState" not in log_of(reported_run(finding(), rules=EVERYTHING, verdict="fail"))["results"][0]
    assert [github.render([run]).partition(" ")[0] for run in (known, new)] == ["::notice", "::error"]


def test_a_program_that_nobody_judged_fails_unless_the_policy_lets_that_pass():
    facts = {"ended_well": False, "ending": "refused", "ruleset": None, "problem": "no record", "verdict": "not-run"}
    strict, lenient = (reported_run(rules=Rules(not_run=word), **facts) for word in ("fail", "warn"))
    said = [github.render([run]).split("\n")[0] for run in (strict, lenient)]
    assert said == [
        f"::{word} file=train.py,line=1,title=the program was not judged::train.py: no record"
        for word in ("error", "warning")
    ]
    suites = [ElementTree.fromstring(junit.render([run])) for run in (strict, lenient)]
    assert [suite.get("errors") for suite in suites] == ["1", "0"]
    demanded = reported_run(rules=Rules(), verdict="not-run")
    assert ElementTree.fromstring(junit.render([demanded])).get("errors") == "1", "a rule that it demands was not run"
