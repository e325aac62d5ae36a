"""JUnit's XML: a suite is a run, a case is a finding; what was not judged is never a case that passed.

The dialect is the common one of CI servers: `testsuites > testsuite > testcase > failure | error | skipped`.
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
    """The document.

    Args:
        runs: Each becomes a suite.
        fail_on: Findings at least as bad as this are failures; others are cases that pass, with their text.
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
        SubElement(program, "error", type=_clean(run.ending), message=_clean(f"the program ended: {run.ending}"))
    judged = SubElement(suite, "testcase", classname=_clean(run.name), name=f"{run.rules_judged} rules judged")
    if run.ruleset is None:
        SubElement(judged, "skipped", message="no rule has judged this run")
    for finding in run.findings:
        _case(suite, run, finding, failing)
    suite.set("tests", str(len(suite)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in suite)))


def _case(suite: Element, run: Reported, finding: Finding, failing: Sequence[str]) -> None:
    place, rule = finding.location, finding.rule
    line = place.region.start_line
    path = place.path if run.unnamed is None else f"unnamed {run.unnamed}"
    case = SubElement(suite, "testcase", classname=_clean(path), name=_clean(f"{rule.code} {rule.name} at line {line}"))
    if run.unnamed is None:
        case.set("file", _clean(place.path))
    case.set("line", str(line))
    text = _clean(f"{path}:{line}: {finding.message}\n{place.text}", lines=True)
    if finding.suppressed is not None:
        SubElement(case, "skipped", message=_clean(f"suppressed: {finding.suppressed.reason or 'no reason given'}"))
    elif finding.level in failing:
        first = finding.message.split("\n")[0]
        SubElement(case, "failure", type=f"{rule.code} {finding.level}", message=_clean(first)).text = text
    else:
        SubElement(case, "system-out").text = text


def _clean(text: str, *, lines: bool = False) -> str:
    return _NO_XML.sub("\ufffd", plain(text, keep_newlines=lines))
