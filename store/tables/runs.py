"""The run, which is also the queue; its attempts and events; the workers."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import event

from backprobe.isolation import ISOLATION_LEVELS
from store.runs.states import POSTGRESQL_TRIGGERS, SQLITE_TRIGGERS, STATUSES, WAITING
from store.tables.base.metadata import METADATA
from store.tables.base.types import f8, flag, i2, i4, i8, identity, is_one_of, json, public_id, refers, text, time


def _quote_values(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


run: Final = sa.Table(
    "run",
    METADATA,
    identity(),
    public_id("run"),
    i2("part", "Months since 2020-01 of the time in public_id: the partition of its record."),
    refers("tenant_id", "tenant", "Whose it is."),
    refers("project_id", "project", "Where it belongs."),
    refers("snippet_id", "snippet", "What it runs; NULL: watched or uploaded.", null=True),
    text(
        "origin",
        "submitted: a snippet we ran. watched: a recorder sent it. uploaded: a finished record. trial: a snippet with "
        "a finding's fix in it.",
    ),
    refers("rerun_of_id", "run", "The run whose snippet it repeats; NULL: none.", null=True),
    text("custom_id", "The caller's own name for it; NULL: none.", null=True),
    json("labels", "The caller's labels, text by name."),
    text("created_by", "The actor: key:..., user:... or local."),
    time("created_at", "When it was accepted."),
    text("traceparent", "W3C trace context of the request; NULL: none.", null=True),
    i4("version", "Rises with every change a reader can see: the ETag."),
    text("queue", "cpu or gpu."),
    text("device_class", "A worker must offer this device; NULL: any.", null=True),
    text("min_isolation", "The least isolation level accepted; below it the run is refused, never downgraded."),
    i2("priority", "0 first to 9 last; a step is worth 60 s of waiting."),
    time("queued_at", "When it was last queued."),
    time(
        "rank_at", "Its place in the queue: queued_at + priority x 60 s, so that waiting raises it without an update."
    ),
    time("not_before", "No worker claims it earlier: the pause after a worker or its sandbox failed."),
    time("queue_deadline", "If nobody has claimed it by then, it is lost."),
    text("status", "See store/runs/states.py; kept by a trigger."),
    i2("attempt", "Claims so far: the fencing token. Every write of a worker demands that it is still its own."),
    i2("max_attempts", "Attempts that our own failures may use up."),
    text("lease_owner", "worker_node.id that holds it; NULL: not running.", null=True),
    time("lease_until", "Until then it is that worker's; NULL exactly if it is not running.", null=True),
    time("heartbeat_at", "When its worker last renewed the lease; NULL: never.", null=True),
    time("claimed_at", "When it was last claimed; NULL: never.", null=True),
    time("cancel_requested_at", "When its end was asked for; NULL: it was not.", null=True),
    i2("result_attempt", "Whose record rows are visible; NULL: none are.", null=True),
    json("arguments", "sys.argv[1:]."),
    json("limits", "By name, in the units of store/runs/limits.py."),
    json("capture", "What is captured: tier and sampling."),
    i8("seed", "For torch.manual_seed before the program; NULL: left alone.", null=True),
    time("started_at", "When its last attempt began; NULL: none has.", null=True),
    time("finished_at", "When it ended; NULL exactly while it is queued or running.", null=True),
    i4("exit_code", "Of the child; NULL: it did not exit.", null=True),
    i2("signal", "That killed the child; NULL: none did.", null=True),
    text("limit_hit", "Name of the limit that stopped it; NULL: none did.", null=True),
    text("error_code", "Kebab case: why it did not succeed; NULL: it did, or has not ended.", null=True),
    json("error", "whose, type, message, path, line; NULL as error_code.", null=True),
    json("isolation", "What it really ran under, attested from outside; NULL: it has not run.", null=True),
    f8("wall_seconds", "From the start of the program to its end; NULL: not measured.", null=True),
    f8("cpu_seconds", "User and system time of all its processes; NULL: not measured.", null=True),
    i8("max_rss_bytes", "Largest resident memory; NULL: not measured.", null=True),
    text("torch_version", "torch.__version__ in the child; NULL: not known.", null=True),
    text("record_state", "none; partial: it stopped early; whole; expired: it was kept and is gone."),
    text("tier", "Capture tier of its record; NULL: no record.", null=True),
    i4("tensors", "Tensors in the record."),
    i8("snapshots", "Snapshots in the record."),
    i4("nodes", "Autograd nodes in the record."),
    i4("backward_calls", "Backward calls in the record."),
    i8("record_bytes", "Bytes that the record takes here, indices apart."),
    i8("peak_held_bytes", "Most bytes that graphs held for backward at a call; NULL: no call.", null=True),
    flag("truncated", "The record says itself that something is missing."),
    i4("errors", "Findings of level error that are not suppressed."),
    i4("warnings", "Findings of level warning that are not suppressed."),
    i4("notes", "Findings of level note that are not suppressed."),
    i4("suppressed", "Findings that are suppressed."),
    text("ruleset", "Digest of the rules that judged it; NULL: not judged.", null=True),
    i4("rules_judged", "Rules that ran to their end."),
    i4("rules_not_run", "Rules that lacked a fact; not run is not passed."),
    time("judge_due_at", "When it is to be judged again; NULL: it is not.", null=True),
    i4("events", "seq of its last run_event; 0: none."),
    time("kept_until", "Its record is kept till then."),
    flag("pinned", "Its record is never expired."),
    json("rules", "Which rules judge it, and how, as the request said; NULL: all, as they stand.", null=True),
    text(
        "record_gone",
        "Why its record is gone: kept-until, database-full or deleted; NULL: it is there, or nobody noted why.",
        null=True,
    ),
    text("trial_of", "finding.public_id of the finding whose fix it tries; NULL: it is no trial.", null=True),
    i2("trial_fix", "Which of that finding's fixes, from 0; NULL: it is no trial.", null=True),
    text(
        "trial_verdict",
        "Of confirmed, changes-values, insufficient, breaks, not-tried; NULL: no trial, or not ended, or not judged.",
        null=True,
    ),
    text("trial_why", "What stands against the fix, or why no run tells; NULL as trial_verdict.", null=True),
    i2(
        "judge_attempts",
        "Judgings of its stored record that began and did not end: the process ended first. From 3 on it is not judged "
        "any more. 0: the last one ended, or none began.",
        default=0,
    ),
    is_one_of("origin", ("submitted", "watched", "uploaded", "trial")),
    is_one_of("queue", ("cpu", "gpu")),
    is_one_of("min_isolation", ISOLATION_LEVELS),
    is_one_of("status", STATUSES),
    is_one_of("record_state", ("none", "partial", "whole", "expired")),
    sa.CheckConstraint("priority between 0 and 9", name="priority"),
    sa.CheckConstraint("(status = 'running') = (lease_until is not null)", name="lease"),
    sa.CheckConstraint(f"(status in ({_quote_values(WAITING)})) = (finished_at is null)", name="finished"),
    sa.CheckConstraint("attempt <= max_attempts", name="attempts"),
    sa.CheckConstraint("result_attempt <= attempt", name="result_attempt"),
    comment="One execution of a snippet; while it is queued, its place in the queue.",
)


def _partial(name: str, *columns: Any, where: str | None = None) -> None:
    condition = None if where is None else sa.text(where)
    sa.Index(name, *columns, postgresql_where=condition, sqlite_where=condition)


_partial("run_queue", run.c.queue, run.c.tenant_id, run.c.rank_at, run.c.id, where="status = 'queued'")
_partial("run_busy", run.c.tenant_id, where="status = 'running'")
_partial("run_lease", run.c.lease_until, where="status = 'running'")
_partial("run_claims", run.c.tenant_id, run.c.claimed_at)
_partial("run_newest", run.c.tenant_id, run.c.created_at.desc(), run.c.id.desc())
_partial("run_of_project", run.c.project_id, run.c.created_at.desc(), run.c.id.desc())
_partial(
    "run_of_day",
    run.c.project_id,
    run.c.status,
    run.c.created_at,
    run.c.errors,
    run.c.warnings,
    run.c.notes,
    where="origin <> 'trial'",
)
_partial("run_of_snippet", run.c.snippet_id)
_partial("run_kept", run.c.kept_until, where="record_state in ('partial', 'whole')")
_partial("run_judge_due", run.c.judge_due_at, where="judge_due_at is not null")
_partial("run_judge_attempts", run.c.judge_attempts, where="judge_attempts > 0")
_partial("run_pinned", run.c.part, where="pinned")
_partial("run_of_trial", run.c.trial_of, where="trial_of is not null")
_partial("run_finished", run.c.finished_at, where="finished_at is not null")

for _statement in SQLITE_TRIGGERS:
    event.listen(run, "after_create", sa.DDL(_statement.replace("%", "%%")).execute_if(dialect="sqlite"))
for _statement in POSTGRESQL_TRIGGERS:
    event.listen(run, "after_create", sa.DDL(_statement.replace("%", "%%")).execute_if(dialect="postgresql"))

run_attempt: Final = sa.Table(
    "run_attempt",
    METADATA,
    refers("run_id", "run", "Which run."),
    i2("attempt", "Which attempt, from 1."),
    text("worker", "worker_node.id of who made it; that row may be gone."),
    time("started_at", "When it was claimed."),
    time("ended_at", "When it ended; NULL: it has not.", null=True),
    text("outcome", "finished, worker-lost, sandbox-broke, released, canceled; NULL: it has not ended.", null=True),
    json("detail", "More about its end; NULL: nothing.", null=True),
    json("isolation", "What it ran under; NULL: not known.", null=True),
    sa.PrimaryKeyConstraint("run_id", "attempt"),
    comment="One claim of a run by a worker, and how it ended.",
)
_partial("run_attempt_ended", run_attempt.c.ended_at, where="ended_at is not null")

run_event: Final = sa.Table(
    "run_event",
    METADATA,
    i2("part", "As in run."),
    i8("run_id", "Which run; no foreign key, because months are dropped whole."),
    i4("seq", "Counts the run's events from 1; the id in event streams."),
    time("at", "When."),
    text("kind", "queued, claimed, cancel-requested, requeued, status."),
    i2("attempt", "During which attempt; NULL: none.", null=True),
    json("payload", "A few facts, at most 4 KiB, never content of a record."),
    sa.PrimaryKeyConstraint("part", "run_id", "seq"),
    comment="What happened to a run, in order.",
)

worker_node: Final = sa.Table(
    "worker_node",
    METADATA,
    sa.Column("id", sa.Text(), primary_key=True, comment="host:pid:nonce of a worker process."),
    json("queues", "Queues it takes runs from."),
    json("levels", "Isolation levels that it really offers."),
    json("devices", "Device classes that it offers."),
    json("versions", "Of backprobe, torch, Python."),
    i2("slots", "Runs it can hold at once."),
    i2("busy", "Runs it holds."),
    time("started_at", "Its first beat."),
    time("heartbeat_at", "Its last beat: its health, not that a process is there."),
    flag("draining", "It takes no more runs."),
    json("probe", "What the sandbox's canary proved."),
    comment="A worker process, as long as it beats.",
)
