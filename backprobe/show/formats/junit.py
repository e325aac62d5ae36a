"""JUnit's XML: a suite is a run, a case is a finding; what was not judged is never a case that passed.

The dialect is the common one of CI servers: `testsuites > testsuite > testcase > failure | error | skipped`.
Of an audit, a failure or error is what fails it: a finding that only warns is a case that passes, with its text in
`system-out`; by a policy with `new-only`, one that the baseline has is skipped; and so is a program that could not be
judged where the policy lets that pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from backprobe.severity import LEVELS
from backprobe.show.formats.program_report import Reported
from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.rules import Finding

_NO_XML: Final = re.compile("[^\\t\\n\\r\\u0020-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""What XML 1.0 cannot hold (its production 2, Char)."""


def render(runs: Sequence[Reported], *, fail_on: str = "warning") -> str:
    """Render the document.

    Args:
        runs: Each becomes a suite.
        fail_on: Findings of a run at least as bad as this are failures; others are cases that pass, with their text.
            Those of an audit are failures as its policy says.
    """
    root = Element("testsuites", name="backprobe")
    for run in runs:
        _suite(root, run, LEVELS[: LEVELS.index(fail_on) + 1])
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, run: Reported, failing: Sequence[str]) -> None:
    suite = SubElement(root, "testsuite", name=_clean(run.name))
    program = SubElement(suite, "testcase", classname=_clean(run.name), name="the program ends well")
    if not run.ended_well:
        _broken(program, run)
    judged = SubElement(suite, "testcase", classname=_clean(run.name), name=f"{run.rules_judged} rules judged")
    if run.ended_well and run.is_broken:
        _broken(judged, run)
    elif run.ruleset is None:
        SubElement(judged, "skipped", message="no rule has judged this run")
    for finding in run.findings:
        _case(suite, run, finding, failing)
    suite.set("tests", str(len(suite)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in suite)))


def _broken(case: Element, run: Reported) -> None:
    """Add what ended the program, or why nobody judged it."""
    if run.is_excused:
        SubElement(case, "skipped", message=_clean(run.why))
        return
    error = run.error
    told = SubElement(case, "error", type=_clean(run.ending if error is None else error.kind), message=_clean(run.why))
    if error is not None and run.unnamed is None and error.path is not None and error.line is not None:
        case.set("file", _clean(error.path))
        case.set("line", str(error.line))
    if error is not None:
        told.text = _clean(f"{error.kind}: {error.message}", lines=True)


def _case(suite: Element, run: Reported, finding: Finding, failing: Sequence[str]) -> None:
    place, rule = finding.location, finding.rule
    line = place.region.start_line
    path = place.path if run.unnamed is None else f"snippet {run.unnamed}"
    case = SubElement(suite, "testcase", classname=_clean(path), name=_clean(f"{rule.code} {rule.name} at line {line}"))
    if run.unnamed is None:
        case.set("file", _clean(place.path))
    case.set("line", str(line))
    text = _clean(f"{path}:{line}: {finding.message}\n{place.text}", lines=True)
    if finding.suppressed is not None:
        SubElement(case, "skipped", message=_clean(f"suppressed: {finding.suppressed.reason or 'no reason given'}"))
    elif run.rules is not None and run.rules.new_only and run.is_known(finding):
        SubElement(case, "skipped", message="known to the baseline").text = text
    elif run.effect(finding) == "fail" or (run.rules is None and finding.level in failing):
        first = finding.message.split("\n")[0]
        SubElement(case, "failure", type=f"{rule.code} {finding.level}", message=_clean(first)).text = text
    else:
        SubElement(case, "system-out").text = text


def _clean(text: str, *, lines: bool = False) -> str:
    return _NO_XML.sub("\ufffd", plain(text, keep_newlines=lines))
