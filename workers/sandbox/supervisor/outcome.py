"""How a run ended: the facts of the supervisor, what the program says of itself, and the one table between them.

    fact                                                              status     reason
    the lockdown failed before `go`; the zygote was lost twice        lost       sandbox
    cancel was asked                                                  canceled   asked
    our clock, byte, row or process counter, or the memory of its     exceeded   wall, output, record, processes
    record's rows, stopped it
    its sentry took too much memory for its files, threads, locks     exceeded   memory
    its cgroup killed a process at its own limit of memory            exceeded   memory
    SIGXCPU, or SIGKILL not sent by us, near the limit of CPU time    exceeded   cpu
    SIGKILL not sent by us, at `process` or `namespace`, or a kill    lost       sandbox
    for want of memory below its own limit, unless it ended well
    it died on a signal                                               failed     signal
    a refused stream, or no end frame                                 failed     record
    the end frame says raised, and it is an allocator that did        exceeded   memory      told by the run
    the end frame says raised, or SystemExit other than 0             failed     exception   told by the run
    the end frame says ended, and the exit code is not 0              failed     exit
    the end frame says ended, exit code 0                             succeeded  ended       told by the run

The first line that holds wins. At `process` and `namespace` no program can send itself SIGKILL. So it came from
outside, mostly from the kernel for want of memory: the program is not to blame, and is run again. A refused stream that
passed its limit of bytes too was refused. After `go` no exit code means "ours". A program that failed because a thread,
a process or a byte on disk was refused could have gone on: it has failed, and its error names the limit.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from backprobe.isolation import IsolationLevel
from backprobe.record import BadRecord, End, Raised, Record
from store.runs.limits import Limits
from store.runs.model import EndStatus, RunError
from workers.sandbox.gvisor.sentry import SentryFacts
from workers.sandbox.levels.attestation import ChildFacts
from workers.sandbox.supervisor.foreign_kills import KILLED_FROM_OUTSIDE, was_killed_from_outside
from workers.sandbox.supervisor.limit_text import by_exception, isolation_hint, too_heavy, what_to_change

Stop = Literal[
    "wall",
    "output",
    "record_bytes",
    "record_rows",
    "record_weight",
    "refused",
    "canceled",
    "sandbox",
    "cpu",
    "processes",
    "memory",
]
"""Why the supervisor ended a child."""

CPU_SHARE: Final[dict[int, float]] = {signal.SIGXCPU: 0.5, signal.SIGKILL: 0.85}
"""Of the limit, the CPU time by which a signal is the kernel's. RLIMIT_CPU counts whole clock ticks, wait4 what really
ran: on a loaded virtual machine the kernel killed for a limit of 3, 10 and 20 s at 2.77, 9.03 and 18.38 s by wait4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the supervisor saw of one attempt.

    Attributes:
        exit_code, signal: How the process ended; both None if that was not seen.
        cpu_seconds, max_rss_bytes: As the kernel told the zygote; None if it was lost before it could say.
        lockdown_cpu_seconds: What went before `go`, and is not in `cpu_seconds`.
        stop: Why it was killed by us; None: it was not.
        broken: Which part of Backprobe broke, in words.
        stdout, stderr: Their last 64 KiB.
        seen: What the child was attested to be before it went; None at level `none`.
        devices: Names of those that it had; empty: the CPU only.
        oom_kills: Processes that were killed because the run's cgroup had reached its own limit of memory.
        foreign_kills: Processes of it that were killed for want of memory below that limit.
        refused_tasks: Tasks that its cgroup refused.
    """

    exit_code: int | None = None
    signal: int | None = None
    stop: Stop | None = None
    broken: str | None = None
    cpu_seconds: float | None = None
    lockdown_cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    max_rss_bytes: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    record_bytes: int = 0
    tries: int = 1
    seen: ChildFacts | SentryFacts | None = None
    devices: tuple[str, ...] = ()
    oom_kills: int = 0
    foreign_kills: int = 0
    refused_tasks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one attempt.

    Attributes:
        told_by: Whether the status rests on what the supervisor saw or on what the run says.
        limit_hit: Name of the limit in `store.runs.limits`.
        record: What capture saw; partial unless it has an end; None if not even its header came.
        record_rows: Rows received, replaced ones counted again.
        isolation: What the child really ran in.
    """

    status: EndStatus
    reason: str
    told_by: Literal["supervisor", "run"]
    facts: Facts
    error: RunError | None
    limit_hit: str | None = None
    record: Record | None = None
    record_rows: int = 0
    isolation: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A line of the table, filled in."""

    status: EndStatus
    reason: str
    told_by: Literal["supervisor", "run"] = "supervisor"
    error: RunError | None = None
    limit_hit: str | None = None


def verdict(
    facts: Facts,
    limits: Limits,
    record: Record | None,
    refused: BadRecord | None,
    *,
    canceled: bool,
    level: IsolationLevel = "none",
) -> Verdict:
    """Return the verdict of the first line of the table that holds; `level` explains what it refused."""
    if facts.broken is not None:
        return Verdict(
            status="lost", reason="sandbox", error=RunError(whose="ours", code="sandbox", message=facts.broken)
        )
    if canceled:
        error = RunError(whose="asked", code="canceled", message="The run was canceled while it ran.")
        return Verdict(status="canceled", reason="asked", error=error)
    limit_hit = _limit_hit(facts, limits)
    if limit_hit is not None:
        return _judge_exceeded_limit(limit_hit, limits, record, is_heavy=facts.stop == "record_weight")
    if was_killed_from_outside(facts, level):
        return Verdict(status="lost", reason="sandbox", error=KILLED_FROM_OUTSIDE)
    end = None if record is None else record.end
    if facts.signal is not None and facts.stop is None:
        found = _judge_death(facts.signal, record)
    elif refused is not None or record is None or end is None:
        found = _no_record(facts, record, refused)
    elif end.ending != "ended":
        found = _judge_recorded_end(record, end, limits, level)
    else:
        found = _judge_exit(facts)
    if facts.refused_tasks and found.status == "failed" and found.limit_hit is None:
        return _naming(found, "threads" if limits.processes == 1 else "processes", limits)
    return found


def _judge_exit(facts: Facts) -> Verdict:
    if facts.exit_code:
        message = f"The program ended, and its process then exited with code {facts.exit_code}."
        return Verdict(status="failed", reason="exit", error=RunError(whose="program", code="exited", message=message))
    return Verdict(status="succeeded", reason="ended", told_by="run")


def last_line(record: Record | None) -> tuple[str, int] | None:
    """Path and line of the last statement that the record knows to have ended."""
    if record is None:
        return None
    sites = {site.site: site for site in record.sites}
    paths = {source.source: source.path for source in record.sources}
    for moment in reversed(record.moments):
        site = None if moment.site is None else sites.get(moment.site)
        if site is not None:
            return paths[site.source], site.line
    return None


def _limit_hit(facts: Facts, limits: Limits) -> str | None:
    stopped = {
        "wall": "wall_seconds",
        "output": "output_bytes",
        "record_bytes": "record_bytes",
        "record_rows": "record_rows",
        "record_weight": "record_bytes",
        "cpu": "cpu_seconds",
        "processes": "processes",
        "memory": "memory_bytes",
    }
    if facts.stop in stopped:
        return stopped[facts.stop]
    if facts.oom_kills:
        return "memory_bytes"
    share = None if facts.signal is None or facts.stop is not None else CPU_SHARE.get(facts.signal)
    return "cpu_seconds" if share is not None and _count_cpu_seconds(facts) >= limits.cpu_seconds * share else None


def _count_cpu_seconds(facts: Facts) -> float:
    """CPU seconds as the kernel's limit counts them."""
    return (facts.cpu_seconds or 0.0) + facts.lockdown_cpu_seconds


def _judge_exceeded_limit(
    limit: str, limits: Limits, record: Record | None, raised: Raised | None = None, *, is_heavy: bool = False
) -> Verdict:
    """Build the verdict of a run that hit `limit`. `raised`: the run reported it; `is_heavy`: too many rows."""
    reason = limit.split("_", maxsplit=1)[0]
    where = _where(record, raised)
    seen = "" if where is None or raised is not None else f" The last statement that ended is in line {where[1]}."
    reached, change = what_to_change(limit, limits)
    if is_heavy:
        reached = too_heavy(limits)
    message = f"{reached}{seen} {change}"
    return Verdict(
        status="exceeded",
        reason=reason,
        told_by="supervisor" if raised is None else "run",
        error=_error("limit", limit.replace("_", "-"), message, where, raised),
        limit_hit=limit,
    )


def _naming(found: Verdict, limit: str, limits: Limits) -> Verdict:
    """Return the same verdict, whose error names the limit that made the program fail."""
    if found.error is None:
        return found
    message = f"{found.error.message} ({' '.join(what_to_change(limit, limits))})"
    return replace(found, error=replace(found.error, message=message), limit_hit=limit)


def _judge_death(number: int, record: Record | None) -> Verdict:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    message = f"The process died on {name}."
    return Verdict(
        status="failed", reason="signal", error=_error("program", "signal", message, last_line(record), type_=name)
    )


def _no_record(facts: Facts, record: Record | None, refused: BadRecord | None) -> Verdict:
    if refused is not None:
        code, message = "bad-record", f"What the run sent is no valid record ({refused.code})."
    else:
        code, message = (
            "no-end",
            f"The process exited with code {facts.exit_code} before the program had ended.",
        )
    return Verdict(status="failed", reason="record", error=_error("program", code, message, last_line(record)))


def _judge_recorded_end(record: Record, end: End, limits: Limits, level: IsolationLevel) -> Verdict:
    if end.ending == "exited" and end.exit_code == 0:
        return Verdict(status="succeeded", reason="ended", told_by="run")
    raised = next((row for row in record.raised if row.n == end.exception), None)
    limit = None if raised is None else by_exception(raised, limits.processes)
    if limit == "memory_bytes":
        return _judge_exceeded_limit(limit, limits, record, raised)
    if end.ending == "exited" or raised is None:
        code, message = "exited", f"The program exited with code {end.exit_code}."
    else:
        code, message = "raised", raised.message + isolation_hint(raised, level)
    error = _error("program", code, message, _where(record, raised), raised)
    found = Verdict(status="failed", reason="exception", told_by="run", error=error)
    return found if limit is None else _naming(found, limit, limits)


def _where(record: Record | None, raised: Raised | None) -> tuple[str, int] | None:
    if raised is None:
        return last_line(record)
    users = [frame for frame in raised.frames if frame.user]
    return (users[-1].path, users[-1].line) if users else None


def _error(
    whose: Literal["program", "limit"],
    code: str,
    message: str,
    where: tuple[str, int] | None,
    raised: Raised | None = None,
    *,
    type_: str | None = None,
) -> RunError:
    path, line = where or (None, None)
    return RunError(
        whose=whose, code=code, message=message, type=raised.type if raised else type_, path=path, line=line
    )
