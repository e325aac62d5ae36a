"""An audit on this machine, without a service: scripts run under capture, some at a time, or records judged."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backprobe.child_groups import wait_or_kill
from backprobe.cli.audit.baseline import Baseline
from backprobe.cli.audit.paths import from_here, path_from_here
from backprobe.cli.audit.policy_file import PolicyFile
from backprobe.cli.audit.programs import Program
from backprobe.cli.trials.audit_fixes import AuditFixes
from backprobe.rules.policy import Rules, found_of
from backprobe.show.audits.report import AuditedItem, AuditReport
from backprobe.show.formats.program_report import Reported, program_error, report_program

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import Judgement

WALL_SECONDS: Final = 120
"""Of one program, unless its policy says otherwise: what the service takes by default."""

_LAST_BYTES: Final = 2000
"""Of what a program that did not end well wrote to stderr."""

Progress = Callable[[int, int], None]


def run_local_audit(
    programs: Sequence[Program],
    policy: PolicyFile,
    baseline: Baseline | None,
    progress: Progress,
    fixes: AuditFixes | None = None,
    jobs: int = 1,
) -> AuditReport:
    """Run and judge them.

    Args:
        programs: Scripts and records.
        policy: Which findings fail.
        baseline: What was found before; None: nothing is known.
        progress: Told how many are done, and of how many.
        fixes: Tries the fixes of scripts; None: none are tried.
        jobs: Programs that run at a time; with `fixes` one.

    Raises:
        KeyboardInterrupt: after the programs that ran are ended and a line says so.
    """
    items: list[AuditedItem] = []
    base = None if baseline is None else baseline.all_fingerprints
    stop = threading.Event()
    audit = partial(_item, policy=policy, known=base, fixes=fixes, stop=stop)
    progress(0, len(programs))
    with ThreadPoolExecutor(1 if fixes is not None else jobs) as pool:
        try:
            for done, item in enumerate(pool.map(audit, programs), start=1):
                items.append(item)
                progress(done, len(programs))
        except KeyboardInterrupt:
            stop.set()
            pool.shutdown(cancel_futures=True)
            told = f"stopped by Ctrl-C with {len(items)} of {len(programs)} programs done; no report is written"
            print(f"{chr(10) if sys.stderr.isatty() else ''}backprobe: {told}", file=sys.stderr, flush=True)
            raise
    verdicts = [item.verdict for item in items]
    passed = policy.rules.passes({word: verdicts.count(word) for word in set(verdicts) if word is not None})
    report = AuditReport(name=policy.name, word="passed" if passed else "failed", items=items)
    if baseline is None:
        return report
    known, shown = baseline.all_fingerprints, frozenset(finding.fingerprint for _, finding in report.findings)
    audited = [item.name for item in items if item.reported.ended_well]
    return replace(
        report, new=len(shown - known), known=len(shown & known), gone=baseline.count_missing(audited, shown)
    )


def _item(
    program: Program,
    policy: PolicyFile,
    known: frozenset[str] | None,
    fixes: AuditFixes | None,
    stop: threading.Event,
) -> AuditedItem:
    if program.run is not None or program.path is None:
        return _refused_item(program.name, "a run of the service is judged there: leave --local out", policy.rules)
    if program.is_record:
        return _judge_program(program, _read(program.path), policy.rules, known, None)
    with tempfile.TemporaryDirectory(prefix="backprobe-audit-") as folder:
        record = Path(folder) / "record.bprec"
        began = time.monotonic()
        sources = None if fixes is not None else sources_of(program.path)  # a trial copies the script's folder alone
        why = _run(program, policy, record, sources, stop)
        seconds = time.monotonic() - began
        found = _read(record) if record.exists() else None

        def try_fixes(judgement: Judgement) -> Judgement:
            if fixes is None or found is None or program.path is None:
                return judgement
            settings = program.settings
            tier, every = settings.tier or policy.defaults.tier or "full", settings.every or policy.defaults.every
            return fixes.try_fixes(program.path, tuple(settings.arguments), tier, every, seconds, found, judgement)

        return _judge_program(program, found, policy.rules, known, why, try_fixes, sources)


def sources_of(script: Path) -> Path | None:
    """Return the working directory if the script lies below it: the repository's packages are the program's own."""
    here = Path.cwd()
    return here if script.resolve().is_relative_to(here.resolve()) else None


def _run(program: Program, policy: PolicyFile, record: Path, sources: Path | None, stop: threading.Event) -> str | None:
    """Run a script under capture; why it did not end well, None: it did."""
    settings, defaults = program.settings, policy.defaults
    command = [sys.executable, "-m", "backprobe", "run", "--exit-zero", "--format", "concise", "--save", str(record)]
    for option, value in (("tier", settings.tier or defaults.tier), ("every", settings.every or defaults.every)):
        command += [f"--{option}", str(value)] if value is not None else []
    command += ["--sources", str(sources)] if sources is not None else []
    command += [str(program.path), *settings.arguments]
    seconds = {**defaults.limits, **settings.limits}.get("wall_seconds", WALL_SECONDS)
    output = record.with_name("stderr")
    with output.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
        )
        code = wait_or_kill(process, seconds, stop)
    if code is None:
        return f"it was stopped after {seconds} s"
    if code == 0:
        return None
    return f"exit code {code}: {output.read_bytes()[-_LAST_BYTES:].decode(errors='replace').strip()}"


def _read(path: Path) -> Record | None:
    import backprobe
    from backprobe.record import BadRecord

    try:
        return backprobe.load(path)
    except (OSError, BadRecord):
        return None


def _judge_program(
    program: Program,
    record: Record | None,
    rules: Rules,
    known: frozenset[str] | None,
    why: str | None,
    tried: Callable[[Judgement], Judgement] = lambda judgement: judgement,
    sources: Path | None = None,
) -> AuditedItem:
    from backprobe.rules import judge

    name = program.name
    if record is None:
        return _refused_item(name, why or "it is no record that can be read", rules)
    judgement = tried(judge(record))
    error = program_error(record)
    if program.path is not None and not program.is_record:
        folder = program.path.parent if sources is None else sources
        judgement = replace(judgement, findings=tuple(from_here(found, folder) for found in judgement.findings))
        if error is not None and error.path is not None:
            error = replace(error, path=path_from_here(error.path, folder))
    told = report_program(record, judgement, script=name)
    found = [found_of(finding) for finding in judgement.findings if finding.suppressed is None]
    cells = rules.cells(found, known or (), [skipped.name for skipped in judgement.not_run])
    status = "succeeded" if told.ended_well else "failed"
    verdict = rules.verdict(status, cells, judged=True, backward_calls=len(record.backward_calls))
    told = replace(told, error=error, problem=why, rules=rules, known=known, verdict=verdict)
    return AuditedItem(name=name, verdict=verdict, cells=tuple(cells), reported=told)


def _refused_item(name: str, why: str, rules: Rules) -> AuditedItem:
    told = Reported(
        name=name,
        findings=(),
        ended_well=False,
        ending="refused",
        ruleset=None,
        rules_judged=0,
        problem=why,
        rules=rules,
        verdict="not-run",
    )
    return AuditedItem(name=name, verdict="not-run", cells=(), reported=told)
