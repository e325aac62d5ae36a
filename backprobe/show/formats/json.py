"""Record and findings as JSON for machines: shape `backprobe.report/1`, findings in the shape `backprobe.finding/1`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec

from backprobe.record.rows.series import steps_looked_at
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import finding_json
from backprobe.rules.framework.tables import shared_tables
from backprobe.show.backward_calls import call_rows
from backprobe.show.formats.terminal_report import summary
from backprobe.show.tensor_table import TensorRow, tensor_rows

if TYPE_CHECKING:
    from backprobe.record import GradientCheck, Record
    from backprobe.rules.framework.judge import Judgement

SCHEMA: Final = "backprobe.report/1"


def render(record: Record, judgement: Judgement, *, script: str) -> str:
    """Render the report, indented. Numbers that JSON has no word for are strings: "NaN", "Infinity", "-Infinity"."""
    return dumps(report(record, judgement, script=script))


def dumps(told: dict[str, Any]) -> str:
    """Write a report as text."""
    return json.dumps(told, indent=2, allow_nan=False)


def report(record: Record, judgement: Judgement, *, script: str) -> dict[str, Any]:
    """Build the same report of plain values."""
    with shared_tables(record):
        return _finite(_report(record, judgement, script))


def _report(record: Record, judgement: Judgement, script: str) -> dict[str, Any]:
    end, (looked_at, made) = record.end, steps_looked_at(record.steps)
    checks = {"gradient_checks": [_check(row) for row in record.gradient_checks]} if record.gradient_checks else {}
    return {
        "schema": SCHEMA,
        "backprobe_version": record.header.backprobe_version,
        "torch": record.header.environment.torch,
        "tier": record.header.tier,
        "script": script,
        "ending": None if end is None else end.ending,
        "exit_code": None if end is None else end.exit_code,
        "exception": _exception(record),
        "truncated": record.truncated,
        "truncations": [
            {"what": row.what, "why": row.why, "limit": row.limit, "seen": row.seen} for row in record.truncations
        ],
        "steps": {"looked_at": looked_at, "made": made},
        "summary": summary(record, judgement),
        "ruleset": judgement.ruleset,
        "rules_judged": judgement.rules_judged,
        "checks": [msgspec.structs.asdict(check) for check in judgement.checks],
        "not_run": [asdict(rule) for rule in judgement.not_run],
        "tensors": [_tensor(row) for row in tensor_rows(record)],
        "backward_calls": [asdict(row) for row in call_rows(record)],
        **checks,
        "findings": [finding_json(finding, ruleset=judgement.ruleset) for finding in judgement.findings],
    }


def _exception(record: Record) -> dict[str, Any] | None:
    """Describe the exception that ended the program, and the user's statement that raised it."""
    end = record.end
    raised = None if end is None else next((row for row in record.raised if row.n == end.exception), None)
    if raised is None:
        return None
    index = lookup(record)
    site = None if raised.site is None else index.sites[raised.site]
    return {
        "type": raised.type,
        "message": raised.message,
        "path": None if site is None else index.sources[site.source].path,
        "line": None if site is None else site.line,
    }


def _check(row: GradientCheck) -> dict[str, Any]:
    return msgspec.structs.asdict(row) | {"cuts": [msgspec.structs.asdict(cut) for cut in row.cuts]}


def _tensor(row: TensorRow) -> dict[str, Any]:
    shown = asdict(row)
    why = shown.pop("why")
    shown["why_none"] = why and {"verdict": why["verdict"], "line": why["line"], "text": why["text"]}
    return shown


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
