"""The findings of a run as other programs read them: SARIF, JUnit, GitHub's annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flask import Response, request

from backprobe.show.formats import github, junit, sarif
from backprobe.show.formats.program_report import ProgramError, Reported
from service.api.records.exports import MEDIA
from service.problems.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backprobe.rules import Finding
    from store.runs.model import RunRow

MOST: Final = sarif.MOST_RESULTS
RENDERED: Final = ("sarif", "junit", "github")


def program_error(run: RunRow) -> ProgramError | None:
    """Return what ended a run before its program's end; None if nothing did."""
    error = run.error
    if error is None:
        return None
    return ProgramError(kind=error.type or error.code, message=error.message, path=error.path, line=error.line)


def render_findings(run: RunRow, findings: Sequence[Finding], form: str, headers: Mapping[str, str]) -> Response:
    """Render the whole document: these formats are read as one, and a run has few findings.

    Raises:
        Problem: `too-much-asked`: more than `MOST` findings.
    """
    if len(findings) > MOST:
        raise Problem("too-much-asked", f"Run {run.id} has more than {MOST:,} findings; filter them, or take ndjson.")
    told = Reported(
        name=run.id,
        findings=tuple(findings),
        ended_well=run.status == "succeeded",
        ending=run.status,
        exit_code=run.outcome.exit_code,
        ruleset=run.findings.ruleset,
        rules_judged=run.findings.rules_judged,
        unnamed=run.unnamed,
        base_url=request.host_url.rstrip("/"),
        error=program_error(run),
    )
    if form == "sarif":
        text = sarif.render([told], name="unnamed" if run.unnamed else run.entry or run.id)
    elif form == "junit":
        text = junit.render([told])
    else:
        text = github.render([told]) + "\n"
    ending = {"sarif": "sarif", "junit": "xml", "github": "txt"}[form]
    sent = dict(headers) | {"Content-Disposition": f'attachment; filename="{run.id}-findings.{ending}"'}
    charset = "; charset=utf-8" if form != "sarif" else ""
    return Response(text.encode("utf-8", "backslashreplace"), 200, sent, content_type=MEDIA[form] + charset)
