"""What tools answer as values, beside the text: for a client that goes on with them by a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from backprobe.mcp_server.comparison import split
from backprobe.rules import finding_json

if TYPE_CHECKING:
    from backprobe.mcp_server.known_runs import KeptRun, Runs
    from backprobe.mcp_server.repairs import Repair
    from backprobe.rules import Finding

MOST_FINDINGS: Final = 50
"""In one answer, worst first; `findings_count` says how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer as text for a model, and the same as values that JSON has."""

    text: str
    values: dict[str, Any]


def list_runs(runs: Runs) -> dict[str, Any]:
    """List the runs of this session, newest first."""
    return {"runs": [_summary(run) for run in reversed(runs.kept.values())]}


def describe_run(run: KeptRun) -> dict[str, Any]:
    """Describe a run and its findings."""
    numbered = [{"number": number, **finding} for number, finding in enumerate(_short(run.findings), start=1)]
    return {**_summary(run), "findings": numbered}


def describe_finding(run: KeptRun, number: int) -> dict[str, Any]:
    """Describe one finding as a whole, `backprobe.finding/1`."""
    return {"number": number, "finding": finding_json(run.finding(number), run=run.name, ruleset=None)}


def compare_findings(before: KeptRun, after: KeptRun) -> dict[str, Any]:
    """Compare the findings of two runs."""
    found = split(before.findings, after.findings)
    return {"fixed": _short(found.fixed), "new": _short(found.new), "same": _short(found.same)}


def describe_repair(repair: Repair) -> dict[str, Any]:
    """Describe what an edit led to."""
    found = repair.found
    return {
        "verdict": repair.verdict,
        "safety": repair.fix.safety,
        "run": repair.after.name,
        "ended_well": repair.after.ended_well,
        "fixed": _short(found.fixed),
        "new": _short(found.new),
        "same": _short(found.same),
    }


def _summary(run: KeptRun) -> dict[str, Any]:
    return {
        "run": run.name,
        "ended_well": run.ended_well,
        "ending": run.ending,
        "findings_count": len(run.findings),
    }


def _short(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [
        {
            "code": finding.rule.code,
            "rule": finding.rule.name,
            "level": finding.level,
            "confidence": finding.confidence,
            "path": finding.location.path,
            "line": finding.location.region.start_line,
            "message": finding.message,
            "fixes_with_edits": sum(bool(fix.edits) for fix in finding.fixes),
        }
        for finding in findings[:MOST_FINDINGS]
    ]
