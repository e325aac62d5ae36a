"""SARIF 2.1.0: the findings of runs for code scanning, one SARIF run for all of them.

1. A path is relative to `%SRCROOT%`, percent-encoded, and the same in every upload; columns are Unicode code points.
   A program that was sent without the name of a file has no path: its place says so.
2. Every rule is listed, also the silent ones, to distinguish "clean" from "not judged"; only those that found
   something carry their manual.
3. The fingerprint is ours alone: `primaryLocationLineHash` is left to GitHub's upload action.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

import backprobe
from backprobe.rules.framework.manual import headlines, manual
from backprobe.severity import LEVELS
from backprobe.show.formats.manual_text import markdown
from backprobe.show.formats.manual_text import render as manual_text
from backprobe.show.formats.program_report import Reported
from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.rules import Finding, Fix, Location, Region, Rule

MOST_RESULTS: Final = 5000
"""What GitHub shows of one upload (docs.github.com, "SARIF support for code scanning")."""

UNNAMED: Final = "a program that was sent without the name of a file"

_PRECISION: Final = {"proven": "very-high", "likely": "high", "heuristic": "medium"}
_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(runs: Sequence[Reported], *, name: str) -> str:
    """Render the log, indented. Numbers that JSON has no word for are text.

    Args:
        runs: One or more, of one audit.
        name: Identity of the analysis across uploads: `backprobe/NAME/`.
    """
    return json.dumps(log(runs, name=name), indent=1, allow_nan=False)


def log(runs: Sequence[Reported], *, name: str) -> dict[str, Any]:
    """Build the same log of plain values."""
    results = sorted(
        ((run, finding) for run in runs for finding in run.findings), key=lambda pair: LEVELS.index(pair[1].level)
    )
    shown = results[:MOST_RESULTS]
    rules = headlines()
    places = {rule.code: at for at, (rule, _) in enumerate(rules)}
    said = {finding.rule.code for _, finding in shown}
    base = next((run.base_url for run in runs if run.base_url), None)
    driver = {
        "name": "Backprobe",
        "version": backprobe.__version__,
        "rules": [_descriptor(rule, headline, base, full=rule.code in said) for rule, headline in rules],
    }
    cut = len(results) - len(shown)
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"backprobe/{plain(name)}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The folder that the program was started in."}}},
        "invocations": [_invocation(run, cut) for run in runs],
        "results": [_result(owner, finding, places) for owner, finding in shown],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _descriptor(rule: Rule, headline: str, base: str | None, *, full: bool) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": headline},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"precision": _PRECISION[rule.confidence], "fix": rule.fix, "since": rule.since},
    }
    if base is not None:
        told["helpUri"] = f"{base}{rule.url}"
    if full:
        found = manual(rule.code)
        told["help"] = {"text": manual_text(found), "markdown": markdown(found)}
    return told


def _invocation(run: Reported, cut: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "executionSuccessful": run.ended_well,
        "properties": {"run": plain(run.name), "ending": run.ending, "rulesJudged": run.rules_judged},
    }
    if run.exit_code is not None:
        told["exitCode"] = run.exit_code
    notices = [_failure(run)] if run.is_broken else []
    if cut:
        text = f"{cut} findings are left out: the {MOST_RESULTS} worst are listed."
        notices.append({"level": "warning", "message": {"text": text}})
    return told | ({"toolExecutionNotifications": notices} if notices else {})


def _failure(run: Reported) -> dict[str, Any]:
    """Describe what ended the program, or why nobody judged it."""
    level = "warning" if run.is_excused else "error"
    told: dict[str, Any] = {"level": level, "message": {"text": _message(f"{run.name}: {run.why}")}}
    error = run.error
    if error is None:
        return told
    told["exception"] = {"kind": plain(error.kind), "message": plain(error.message, keep_newlines=True)}
    if error.path is not None and error.line is not None:
        place = {"artifactLocation": _artifact(error.path, run.unnamed), "region": {"startLine": max(1, error.line)}}
        told["locations"] = [{"physicalLocation": place}]
    return told


def _result(run: Reported, finding: Finding, places: Mapping[str, int]) -> dict[str, Any]:
    key, _, value = finding.fingerprint.rpartition(":")
    told: dict[str, Any] = {
        "ruleId": finding.rule.code,
        "level": finding.level,
        "message": {"text": _message(finding.message)},
        "locations": [{"physicalLocation": _place(finding.location, run.unnamed)}],
        "occurrenceCount": max(1, finding.occurrences.count),
        "properties": {
            "run": plain(run.name),
            "confidence": finding.confidence,
            "evidence": _finite(finding.evidence),
            "firstStep": finding.occurrences.first_step,
            "lastStep": finding.occurrences.last_step,
        },
    }
    if finding.rule.code in places:
        told["ruleIndex"] = places[finding.rule.code]
    if run.known is not None:
        told["baselineState"] = "unchanged" if run.is_known(finding) else "new"
    if value:
        told["partialFingerprints"] = {key: value}
    if finding.related:
        told["relatedLocations"] = [
            {
                "id": at,
                "message": {"text": _message(related.message)},
                "physicalLocation": _place(related.location, run.unnamed),
            }
            for at, related in enumerate(finding.related, start=1)
        ]
    told |= _stacks(finding, run.unnamed) | _fixes(finding, run.unnamed)
    if finding.suppressed is not None:
        kind = "inSource" if finding.suppressed.kind == "inSource" else "external"
        reason = finding.suppressed.reason
        told["suppressions"] = [{"kind": kind} | ({"justification": plain(reason)} if reason else {})]
    return told


def _message(text: str) -> str:
    """Escape a stranger's text for a message, in which `[text](place)` would be a link (SARIF 2.1.0, 3.11.6)."""
    return plain(text, keep_newlines=True).replace("](", "\\](")


def _stacks(finding: Finding, unnamed: str | None) -> dict[str, Any]:
    stacks = [
        {
            "message": {"text": stack.role},
            "frames": [
                {
                    "location": {
                        "physicalLocation": {
                            "artifactLocation": _artifact(frame.path, unnamed),
                            "region": {"startLine": max(1, frame.line)},
                        },
                        "logicalLocations": [{"fullyQualifiedName": plain(frame.function)}],
                    }
                }
                for frame in reversed(stack.frames)  # SARIF: innermost first
            ],
        }
        for stack in finding.stacks
    ]
    return {"stacks": stacks} if stacks else {}


def _fixes(finding: Finding, unnamed: str | None) -> dict[str, Any]:
    fixes = [_fix(fix, unnamed) for fix in finding.fixes if fix.edits]
    return {"fixes": fixes} if fixes else {}


def _fix(fix: Fix, unnamed: str | None) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.region), "insertedContent": {"text": edit.text}}
        changes.setdefault(edit.path, []).append(replacement)
    return {
        "description": {"text": _message(fix.title)},
        "artifactChanges": [
            {"artifactLocation": _artifact(path, unnamed), "replacements": replacements}
            for path, replacements in changes.items()
        ],
        "properties": {"safety": fix.safety, **_trial(fix)},
    }


def _trial(fix: Fix) -> dict[str, Any]:
    """Return the verdict of the fix's trial; empty if it was not tried."""
    trial = fix.trial
    return {} if trial is msgspec.UNSET else {"trial": trial.verdict, "trialWhy": plain(trial.why)}


def _place(location: Location, unnamed: str | None) -> dict[str, Any]:
    region = _region(location.region)
    if location.text:
        region["snippet"] = {"text": plain(location.text)}
    return {"artifactLocation": _artifact(location.path, unnamed), "region": region}


def _artifact(path: str, unnamed: str | None) -> dict[str, Any]:
    """Where a file is; of a program without one, whose frames in torch have absolute paths, which program it is."""
    posix = path.replace("\\", "/")
    if unnamed is not None and not posix.startswith("/"):
        return {"description": {"text": f"{UNNAMED} ({plain(unnamed)})"}}
    uri = quote(posix.encode("utf-8", "replace"))
    return {"uri": f"file://{uri}"} if posix.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _region(region: Region) -> dict[str, Any]:
    return {
        "startLine": max(1, region.start_line),
        "startColumn": max(1, region.start_col),
        "endLine": max(1, region.end_line),
        "endColumn": max(1, region.end_col),
    }


def _finite(evidence: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in evidence.items()}


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return plain(value) if isinstance(value, str) else value
