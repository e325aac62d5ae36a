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
from backprobe.cli.audit.programs import Program, shown
from backprobe.cli.audit.remote_trials import RemoteTrials, Sent, StoredFinding
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


def audited(client: Client, asked: RemoteAudit, progress: Progress) -> AuditReport:
    """Begin the audit, or find the one that the same job began before; wait for its end.

    Raises:
        UsageError: a program cannot be sent.
        KeyboardInterrupt: after what was begun is canceled.
    """
    lines = [_item(client, one, asked.policy) for one in asked.programs]
    head: dict[str, Any] = {"name": asked.policy.name, "labels": dict(asked.labels)}
    head |= {name: value for name, value in (("baseline", asked.baseline), ("project", asked.project)) if value}
    if asked.policy.is_given:
        head["policy"] = _policy(client, asked.policy)
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in (head, *lines))
    key = uuid.uuid4().hex if asked.again else hashlib.sha256(content).hexdigest()
    begun = _begun(client, content, key)
    while begun["status"] == "canceled":  # of a job before that was ended: its next key, the same for every retry
        key = hashlib.sha256(f"{key} {begun['id']}".encode()).hexdigest()
        begun = _begun(client, content, key)
    audit = begun["id"]
    try:
        while begun["finished_at"] is None:
            progress(begun["items"]["total"] - begun["items"]["running"], begun["items"]["total"])
            begun = client.call("GET", f"/v1/audits/{audit}", headers={"Prefer": f"wait={_WAIT_SECONDS}"})
    except KeyboardInterrupt:
        client.call("POST", f"/v1/audits/{audit}/cancel")
        print(f"backprobe: audit {audit} is canceled, with what it had not begun", file=sys.stderr)
        raise
    sent = {one.name: line for one, line in zip(asked.programs, lines, strict=True) if "files" in line}
    return _report(client, begun, asked, sent)


def _begun(client: Client, content: bytes, key: str) -> dict[str, Any]:
    """The audit of this key: a new one, or the one that a request before has begun."""
    headers = {"Content-Type": _LINES, "Idempotency-Key": key}
    return client.call("POST", "/v1/audits", body=content, headers=headers)


def _policy(client: Client, policy: PolicyFile) -> str:
    """The policy of that name, with these rules: as it is, revised, or made."""
    known = next((one for one in client.items("/v1/policies") if one["name"] == policy.name), None)
    body = policy.body
    if known is None:
        return client.call("POST", "/v1/policies", body=body)["id"]
    if all(known.get(name) == value for name, value in body.items()):
        return known["id"]
    etag = {"If-Match": f'"{known["revision"]}"'}
    return client.call("PUT", f"/v1/policies/{known['id']}", body=body, headers=etag)["id"]


def _item(client: Client, one: Program, policy: PolicyFile) -> dict[str, Any]:
    """A program as `POST /v1/audits` takes it."""
    if one.run is not None:
        return {"custom_id": one.name, "run": one.run}
    if one.path is None:
        raise ValueError(f"{one.name} is neither a file nor a run")
    if one.is_record:
        return {"custom_id": one.name, "run": client.upload(one.path.read_bytes()).id}
    settings, defaults = one.settings, policy.defaults
    told: dict[str, Any] = {"custom_id": one.name, "entry": shown(one.path), "arguments": list(settings.arguments)}
    told["files"] = [{"path": shown(path), "text": _text(path)} for path in _files(one, policy)]
    given = {name: getattr(defaults, name) for name in _CARRIED}
    given |= {name: value for name in _CARRIED if (value := getattr(settings, name)) is not None}
    capture = {name: given.pop(name) for name in ("tier", "every")}
    told |= {name: value for name, value in given.items() if value is not None}
    told["capture"] = {name: value for name, value in capture.items() if value is not None}
    told["limits"] = {**defaults.limits, **settings.limits}
    return told if policy.isolation is None else told | {"isolation": policy.isolation}


def _files(one: Program, policy: PolicyFile) -> list[Path]:
    """The script, the project's modules that it imports, and the files that the policy names for it.

    Whoever may change the project says what is sent: nothing of the machine that sends it, be it by a symbolic link.
    """
    script = one.path or Path()
    roots = (script.parent, Path.cwd(), policy.folder)
    found = dict.fromkeys(imported_files(script, roots))
    for pattern in one.settings.files:
        matching = [path for path in sorted(policy.folder.glob(pattern)) if path.is_file()]
        if not matching:
            raise UsageError(f"{one.name}: no file is `{pattern}`, seen from {policy.folder}")
        found |= dict.fromkeys(matching)
    for path in found:
        if not any(path.resolve().is_relative_to(root.resolve()) for root in roots):
            raise UsageError(f"{one.name}: `{shown(path)}` leads out of the project, and is not sent")
    if len(found) > MOST_FILES:
        raise UsageError(f"{one.name} has {len(found)} files; {MOST_FILES} of one program is the most that is sent")
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
    """What came of an audit.

    Args:
        sent: Bodies of programs from here, by name.
    """
    audit = told["id"]
    stored: defaultdict[str, list[StoredFinding]] = defaultdict(list)
    for one in client.items(f"/v1/audits/{audit}/findings", limit=1000):
        stored[one["run"]].append(StoredFinding(id=one["id"], finding=msgspec.convert(one, Finding)))
    base = client.url
    runs = {one.id: one for one in client.runs(audit=audit, limit=1000)}
    rows = list(client.items(f"/v1/audits/{audit}/items", limit=1000))
    findings = {run: [one.finding for one in its] for run, its in stored.items()}
    if asked.taken is not None:
        ours = {one["run"]: Sent(name=name, body=sent[name]) for one in rows if (name := one["custom_id"]) in sent}
        findings = RemoteTrials(client, asked.taken).tried(stored, runs, ours)
    known = None if told["baseline"] is None else _known(client, audit)
    judged = (asked.policy.rules, known)
    items = tuple(_audited(one, runs.get(one["run"]), findings, base, judged) for one in rows)
    counted = told["findings"] if told["baseline"] is not None else None
    return AuditReport(
        name=asked.policy.name,
        word=told["verdict"] or "canceled",
        items=items,
        url=f"{base}{told['links']['self']}",
        audit=audit,
        **(counted or {}),
    )


def _audited(
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
            error=_ended_by(row),
            problem=None if problem is None else f"{problem['code']}: {problem['detail']}",
            rules=judged[0],
            known=judged[1],
            verdict=told["verdict"],
        ),
    )


def _known(client: Client, audit: str) -> frozenset[str]:
    """Fingerprints of an audit's findings that its baseline has."""
    return frozenset(
        one["fingerprint"] for one in client.items(f"/v1/audits/{audit}/findings", new="false", limit=1000)
    )


def _ended_by(row: Run | None) -> ProgramError | None:
    """What ended the run before its program's end; None: nothing did."""
    error = None if row is None else row.told.get("error")
    if error is None:
        return None
    kind = error["type"] or error["code"]
    return ProgramError(kind=kind, message=error["message"], path=error["path"], line=error["line"])


def _worst_first(findings: Sequence[Finding]) -> Iterator[Finding]:
    for level in LEVELS:
        yield from (one for one in findings if one.level == level)
