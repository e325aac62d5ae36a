"""What a local engine or a service answers, as results: their paths are still as they were told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Final

import msgspec

from backprobe.language_server.runs.results import Call, Failure, Gradless, Result, Tensor, Unreadable
from backprobe.rules.framework.finding import Finding, Trial
from backprobe.severity import LEVELS
from backprobe.show.amounts import number


def from_report(report: Mapping[str, Any]) -> Result:
    """Read a report of `backprobe run --format json`.

    Raises:
        Unreadable: it is none.
    """
    try:
        return Result(
            entry=report["script"],
            texts={},
            findings=findings_of(report["findings"]),
            tensors=tuple(map(_tensor_of_report, filter(_is_placed, report["tensors"]))),
            calls=tuple(
                Call(path=row["path"], line=row["line"], kept_bytes=max(0, row["held_bytes"] - row["freed_bytes"]))
                for row in filter(_is_placed, report["backward_calls"])
            ),
            failure=_failure_of_report(report),
            summary=str(report["summary"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.ValidationError) as error:
        raise Unreadable(f"the report of the run: {type(error).__name__}: {error}") from None


def _is_placed(row: Mapping[str, Any]) -> bool:
    return row["path"] is not None and row["line"] is not None


def findings_of(told: Iterable[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """Read findings from JSON, `backprobe.finding/1`, with their trials, without those that a comment suppresses."""
    found = (_with_trials(msgspec.convert(row, Finding), row.get("trials") or ()) for row in told)
    return tuple(finding for finding in found if finding.suppressed is None)


def _with_trials(finding: Finding, trials: Iterable[Mapping[str, Any]]) -> Finding:
    """Add to each fix of a finding the newest verdict that a service has of it."""
    newest: dict[int, Trial] = {}
    for trial in trials:
        if trial["verdict"] is not None:
            newest.setdefault(
                trial["fix"], msgspec.convert({"verdict": trial["verdict"], "why": trial["why"] or ""}, Trial)
            )
    fixes = (
        msgspec.structs.replace(fix, trial=newest[at]) if at in newest else fix for at, fix in enumerate(finding.fixes)
    )
    return msgspec.structs.replace(finding, fixes=tuple(fixes)) if newest else finding


def _tensor_of_report(row: Mapping[str, Any]) -> Tensor:
    why = row["why_none"]
    return Tensor(
        name=row["name"],
        path=row["path"],
        line=row["line"],
        shape=None if row["shape"] is None else tuple(row["shape"]),
        dtype=row["dtype"],
        is_leaf=row["is_leaf"],
        requires_grad=row["requires_grad"],
        gradient=row["gradient"],
        arrived=row["arrived"],
        why=None if why is None else Gradless(verdict=why["verdict"], line=why["line"], text=why["text"]),
        times=row["times"],
    )


def _failure_of_report(report: Mapping[str, Any]) -> Failure | None:
    raised = report.get("exception")
    if raised is not None:
        line = raised["line"] or _line_in(raised["message"], report["script"])
        return Failure(message=f"{raised['type']}: {raised['message']}", path=raised["path"], line=line)
    if report["exit_code"] in (0, None):
        return None
    return Failure(message=f"the program ended with exit code {report['exit_code']}")


_SYNTAX_LINE: Final = re.compile(r"\(([^()]*), line (\d{1,9})\)$")


def _line_in(message: str, script: str) -> int | None:
    """Return the line that a SyntaxError of the script names in its text: it was raised before any line ran."""
    found = _SYNTAX_LINE.search(message)
    return int(found[2]) if found is not None and found[1] == PurePath(script).name else None


def from_service(
    run: Mapping[str, Any],
    *,
    findings: Iterable[Mapping[str, Any]],
    tensors: Iterable[Mapping[str, Any]],
    calls: Iterable[Mapping[str, Any]],
    page: str,
) -> Result:
    """Build the result of a run of the service.

    Args:
        run: As `GET /v1/runs/{id}` tells it, ended.
        findings, tensors, calls: As its lists tell them.
        page: The address of the run's page.

    Raises:
        Unreadable: they have another shape than ours.
    """
    try:
        return Result(
            entry=str(run["entry"]),
            texts={},
            findings=findings_of(findings),
            tensors=tuple(map(_tensor_of_service, filter(_is_shown, tensors))),
            calls=tuple(
                Call(path=row["path"], line=row["line"], kept_bytes=max(0, row["held_bytes"] - row["freed_bytes"]))
                for row in filter(_is_placed, calls)
            ),
            failure=_failure_of_service(run),
            summary=f"{run['status']}, {_count_findings(run['findings'])}",
            page=page,
        )
    except (KeyError, TypeError, ValueError, AttributeError, msgspec.ValidationError) as error:
        raise Unreadable(f"what the service says of the run: {type(error).__name__}: {error}") from None


def _is_shown(row: Mapping[str, Any]) -> bool:
    return _is_placed(row) and row["state"] is not None and (row["fqn"] or row["name"]) is not None


def _tensor_of_service(row: Mapping[str, Any]) -> Tensor:
    state, why = row["state"], row["why_none"]
    present = state["grad"] == "present"
    return Tensor(
        name=row["fqn"] or row["name"],
        path=row["path"],
        line=row["line"],
        shape=None if row["shape"] is None else tuple(row["shape"]),
        dtype=row["dtype"],
        is_leaf=state["is_leaf"],
        requires_grad=state["requires_grad"],
        gradient=_norm(row["grad_norm"]) if present else None,
        why=None if present or why is None else Gradless(verdict=why["verdict"], line=why["line"], text=why["text"]),
    )


def _norm(measured: float | str | None) -> str:
    return "present" if measured is None else f"norm {number(measured)}"


def _failure_of_service(run: Mapping[str, Any]) -> Failure | None:
    error = run["error"]
    if error is None:
        return None
    what = str(error.get("type") or error["code"])
    return Failure(message=f"{what}: {error['message']}", path=error.get("path"), line=error.get("line"))


def _count_findings(findings: Mapping[str, Any]) -> str:
    count = sum(findings.get(level) or 0 for level in LEVELS)
    return f"{count} finding{'' if count == 1 else 's'}"
