"""An audit on the service: programs sent as one audit, waited for, and told as an `AuditReport`."""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from backprobe.cli.audit.policy_file import PolicyFile
from backprobe.cli.audit.programs import Program, relative_path
from backprobe.cli.audit.remote_trials import RemoteTrials, SentProgram, StoredFinding
from backprobe.cli.exit_codes import UsageError
from backprobe.imported_files import MOST_FILES, imported_files
from backprobe.rules import Finding
from backprobe.rules.policy import Cell, Rules
from backprobe.severity import LEVELS
from backprobe.show.audits.report import AuditedItem, AuditReport
from backprobe.show.formats.program_report import ProgramError, Reported

if TYPE_CHECKING:
    from backprobe.cli.trials.taken_fixes import TakenFixes
    from backprobe.client import Client, Run

_LINES: Final = "application/x-ndjson"
_WAIT_SECONDS: Final = 10
"""In one request, so that there is something to tell of now and then."""

_CARRIED: Final = ("device", "tier", "every", "seed")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteAudit:
    """What is asked of the service.

    Attributes:
        baseline: Public id of an audit whose findings are known. labels: of the audit.
        again: Begin another one where the same was audited before.
        taken: Where confirmed safe fixes go; None: no fix is tried.
    """

    programs: Sequence[Program]
    policy: PolicyFile
    baseline: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    project: str | None = None
    again: bool = False
    taken: TakenFixes | None = None


def run_remote_audit(client: Client, asked: RemoteAudit, progress: Progress) -> AuditReport:
    """Begin the audit, or find the one that the same job began before; wait for its end.

    Raises:
        UsageError: a program cannot be sent.
        KeyboardInterrupt: after what was begun is canceled.
    """
    lines = [_item(client, program, asked.policy) for program in asked.programs]
    head: dict[str, Any] = {"name": asked.policy.name, "labels": dict(asked.labels)}
    head |= {name: value for name, value in (("baseline", asked.baseline), ("project", asked.project)) if value}
    if asked.policy.is_given:
        head["policy"] = _policy(client, asked.policy)
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *lines))
    key = uuid.uuid4().hex if asked.again else hashlib.sha256(content).hexdigest()
    begun = _begin_audit(client, content, key)
    while begun["status"] == "canceled":  # of a job before that was ended: its next key, the same for every retry
        key = hashlib.sha256(f"{key} {begun['id']}".encode()).hexdigest()
        begun = _begin_audit(client, content, key)
    audit = begun["id"]
    try:
        while begun["finished_at"] is None:
            progress(begun["items"]["total"] - begun["items"]["running"], begun["items"]["total"])
            begun = client.call("GET", f"/v1/audits/{audit}", headers={"Prefer": f"wait={_WAIT_SECONDS}"})
    except KeyboardInterrupt:
        client.call("POST", f"/v1/audits/{audit}/cancel")
        print(f"backprobe: audit {audit} is canceled, with what it had not begun", file=sys.stderr)
        raise
    sent = {program.name: line for program, line in zip(asked.programs, lines, strict=True) if "files" in line}
    return _report(client, begun, asked, sent)


def _begin_audit(client: Client, content: bytes, key: str) -> dict[str, Any]:
    """Begin the audit of this key, or return the one that an earlier request has begun."""
    headers = {"Content-Type": _LINES, "Idempotency-Key": key}
    return client.call("POST", "/v1/audits", body=content, headers=headers)


def _policy(client: Client, policy: PolicyFile) -> str:
    """Make the policy of that name have these rules: keep it, revise it, or create it. Return its id."""
    known = next(
        (stored_policy for stored_policy in client.items("/v1/policies") if stored_policy["name"] == policy.name), None
    )
    body = policy.body
    if known is None:
        return client.call("POST", "/v1/policies", body=body)["id"]
    if all(known.get(name) == value for name, value in body.items()):
        return known["id"]
    etag = {"If-Match": f'"{known["revision"]}"'}
    return client.call("PUT", f"/v1/policies/{known['id']}", body=body, headers=etag)["id"]


def _item(client: Client, program: Program, policy: PolicyFile) -> dict[str, Any]:
    """Build the item of `POST /v1/audits` for a program."""
    if program.run is not None:
        return {"custom_id": program.name, "run": program.run}
    if program.path is None:
        raise ValueError(f"{program.name} is neither a file nor a run")
    if program.is_record:
        return {"custom_id": program.name, "run": client.upload(program.path.read_bytes()).id}
    settings, defaults = program.settings, policy.defaults
    told: dict[str, Any] = {
        "custom_id": program.name,
        "entry": relative_path(program.path),
        "arguments": list(settings.arguments),
    }
    told["files"] = [{"path": relative_path(path), "text": _text(path)} for path in _files(program, policy)]
    given = {name: getattr(defaults, name) for name in _CARRIED}
    given |= {name: value for name in _CARRIED if (value := getattr(settings, name)) is not None}
    capture = {name: given.pop(name) for name in ("tier", "every")}
    told |= {name: value for name, value in given.items() if value is not None}
    told["capture"] = {name: value for name, value in capture.items() if value is not None}
    told["limits"] = {**defaults.limits, **settings.limits}
    return told if policy.isolation is None else told | {"isolation": policy.isolation}


def _files(program: Program, policy: PolicyFile) -> list[Path]:
    """List the script, the project's modules that it imports, and the files that the policy names for it.

    Whoever may change the project says what is sent: nothing of the machine that sends it, be it by a symbolic link.
    """
    script = program.path or Path()
    roots = (script.parent, Path.cwd(), policy.folder)
    found = dict.fromkeys(imported_files(script, roots))
    for pattern in program.settings.files:
        matching = [path for path in sorted(policy.folder.glob(pattern)) if path.is_file()]
        if not matching:
            raise UsageError(f"{program.name}: no file is `{pattern}`, seen from {policy.folder}")
        found |= dict.fromkeys(matching)
    for path in found:
        if not any(path.resolve().is_relative_to(root.resolve()) for root in roots):
            raise UsageError(f"{program.name}: `{relative_path(path)}` leads out of the project, and is not sent")
    if len(found) > MOST_FILES:
        raise UsageError(f"{program.name} has {len(found)} files; at most {MOST_FILES} are sent for one program")
    return list(found)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        raise UsageError(f"cannot read `{path}`: {error.strerror or error}") from None
    except UnicodeDecodeError:
        hint = "the service takes text only; `--local` runs it here"
        raise UsageError(f"`{path}` is not UTF-8 text: {hint}") from None


def _report(
    client: Client, told: Mapping[str, Any], asked: RemoteAudit, sent: Mapping[str, Mapping[str, Any]]
) -> AuditReport:
    """Build the report of an audit.

    Args:
        sent: Bodies of programs from here, by name.
    """
    audit = told["id"]
    stored: defaultdict[str, list[StoredFinding]] = defaultdict(list)
    for row in client.items(f"/v1/audits/{audit}/findings", limit=1000):
        stored[row["run"]].append(StoredFinding(id=row["id"], finding=msgspec.convert(row, Finding)))
    base = client.url
    runs = {run.id: run for run in client.runs(audit=audit, limit=1000)}
    rows = list(client.items(f"/v1/audits/{audit}/items", limit=1000))
    findings = {run: [item.finding for item in its] for run, its in stored.items()}
    if asked.taken is not None:
        ours = {
            row["run"]: SentProgram(name=name, body=sent[name]) for row in rows if (name := row["custom_id"]) in sent
        }
        findings = RemoteTrials(client, asked.taken).try_fixes(stored, runs, ours)
    known = None if told["baseline"] is None else _baseline_fingerprints(client, audit)
    judged = (asked.policy.rules, known)
    items = tuple(_build_item(row, runs.get(row["run"]), findings, base, judged) for row in rows)
    counted = told["findings"] if told["baseline"] is not None else None
    return AuditReport(
        name=asked.policy.name,
        word=told["verdict"] or "canceled",
        items=items,
        url=f"{base}{told['links']['self']}",
        audit=audit,
        **(counted or {}),
    )


def _build_item(
    told: Mapping[str, Any],
    row: Run | None,
    findings: Mapping[str, Sequence[Finding]],
    base: str,
    judged: tuple[Rules, frozenset[str] | None],
) -> AuditedItem:
    run, problem = told["run"], told["problem"]
    counted: Mapping[str, Any] = {} if row is None else row.findings
    outcome = {} if row is None else row.told.get("outcome") or {}
    return AuditedItem(
        name=told["custom_id"] or f"(item {told['n']})",
        verdict=told["verdict"],
        cells=tuple(Cell(**cell) for cell in told["cells"]),
        run=run,
        reported=Reported(
            name=told["custom_id"] or f"(item {told['n']})",
            findings=tuple(_worst_first(findings.get(run, ()))),
            ended_well=told["status"] == "succeeded",
            ending=told["status"] or "refused",
            exit_code=outcome.get("exit_code"),
            ruleset=counted.get("ruleset"),
            rules_judged=counted.get("rules_judged") or 0,
            backward_calls=None if row is None else row.told["record"]["backward_calls"],
            base_url=base,
            error=_error_of_run(row),
            problem=None if problem is None else f"{problem['code']}: {problem['detail']}",
            rules=judged[0],
            known=judged[1],
            verdict=told["verdict"],
        ),
    )


def _baseline_fingerprints(client: Client, audit: str) -> frozenset[str]:
    """Fingerprints of an audit's findings that its baseline has."""
    return frozenset(
        row["fingerprint"] for row in client.items(f"/v1/audits/{audit}/findings", new="false", limit=1000)
    )


def _error_of_run(row: Run | None) -> ProgramError | None:
    """Return the error that the service reports for the run; None if it reports none."""
    error = None if row is None else row.told.get("error")
    if error is None:
        return None
    kind = error["type"] or error["code"]
    return ProgramError(kind=kind, message=error["message"], path=error["path"], line=error["line"])


def _worst_first(findings: Sequence[Finding]) -> Iterator[Finding]:
    for level in LEVELS:
        yield from (finding for finding in findings if finding.level == level)
