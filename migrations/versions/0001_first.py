# ruff: noqa: E501, S608 - comments of columns are sentences on one line; the SQL is made of our own words
"""Everything: tenants and programs, runs and the queue, the record's tables, findings; a default tenant and project.

Frozen. It imports nothing of ours, so that it makes the same tables for ever.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
I2, I4, I8 = sa.SmallInteger(), sa.Integer(), sa.BigInteger()
F4, F8 = sa.REAL(), sa.Double()
TEXT, BOOL, BYTES = sa.Text(), sa.Boolean(), sa.LargeBinary()
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.String().with_variant(TIMESTAMP(timezone=True, precision=3), "postgresql")

SQLITE_TRIGGERS = (
    """CREATE TRIGGER run_status_moves BEFORE UPDATE OF status ON run
WHEN old.status <> new.status AND old.status || '>' || new.status NOT IN ('queued>running', 'queued>canceled', 'queued>lost', 'running>succeeded', 'running>failed', 'running>exceeded', 'running>canceled', 'running>queued', 'running>lost')
BEGIN SELECT RAISE(ABORT, 'run.status: no such move'); END""",
    """CREATE TRIGGER run_attempt_rises BEFORE UPDATE OF attempt ON run
WHEN new.attempt < old.attempt
BEGIN SELECT RAISE(ABORT, 'run.attempt never falls'); END""",
)

POSTGRESQL_TRIGGERS = (
    """CREATE FUNCTION run_keeps_its_life() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF old.status <> new.status AND old.status || '>' || new.status NOT IN ('queued>running', 'queued>canceled', 'queued>lost', 'running>succeeded', 'running>failed', 'running>exceeded', 'running>canceled', 'running>queued', 'running>lost') THEN
    RAISE EXCEPTION 'run.status: no such move, % to %', old.status, new.status USING ERRCODE = 'check_violation';
  END IF;
  IF new.attempt < old.attempt THEN
    RAISE EXCEPTION 'run.attempt never falls' USING ERRCODE = 'check_violation';
  END IF;
  RETURN new;
END $body$""",
    """CREATE TRIGGER run_keeps_its_life BEFORE UPDATE OF status, attempt ON run
FOR EACH ROW WHEN (old.status <> new.status OR new.attempt < old.attempt)
EXECUTE FUNCTION run_keeps_its_life()""",
)

EXTERNAL = (
    "moments",
    "flags",
    "grad_fn",
    "why",
    "grad_dtype",
    "why_site",
    "why_call",
    "version",
    "grad_id",
    "grad_version",
    "value_norm",
    "value_sum",
    "value_min",
    "value_max",
    "grad_norm",
    "grad_sum",
    "grad_min",
    "grad_max",
    "value_nan",
    "value_inf",
    "value_zeros",
    "value_counted",
    "grad_nan",
    "grad_inf",
    "grad_zeros",
    "grad_counted",
    "held_bytes",
    "overview",
)
"""Byte columns that PostgreSQL must not try to compress."""

TABLES = (
    "run_attempt",
    "finding",
    "snippet_file",
    "run",
    "snippet",
    "project",
    "worker_node",
    "tensor",
    "tenant",
    "snapshot_chunk",
    "small_value",
    "site",
    "saved",
    "run_event",
    "retention",
    "record",
    "optimizer_event",
    "optimizer",
    "node_pass",
    "node",
    "moment",
    "module_call",
    "module",
    "leaf_grad",
    "inplace_event",
    "edge",
    "binding",
    "backward_call",
)
"""In the order in which they can be dropped."""


def upgrade() -> None:
    """Make it all."""
    for make in (_who, _runs, _program, _tensors, _graph):
        make()
    sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in SQLITE_TRIGGERS if sqlite else POSTGRESQL_TRIGGERS:
        op.execute(sa.text(statement))
    if not sqlite:
        for column in EXTERNAL:
            op.execute(sa.text(f"ALTER TABLE snapshot_chunk ALTER COLUMN {column} SET STORAGE EXTERNAL"))
    now = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')" if sqlite else "clock_timestamp()"
    op.execute(
        sa.text(
            "INSERT INTO tenant (public_id, name, max_queued, max_running, weight, max_record_bytes, keep_days, created_at)"
            f" VALUES ('tnt_default', 'default', 10000, 1000, 1, 107374182400, 30, {now})".replace(":", "\\:")
        )
    )
    op.execute(
        sa.text(
            "INSERT INTO project (public_id, tenant_id, name, settings, created_at)"
            f" SELECT 'prj_default', id, 'default', '{{}}', {now} FROM tenant".replace(":", "\\:")
        )
    )


def downgrade() -> None:
    """Drop it all."""
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name != "sqlite":
        op.execute(sa.text("DROP FUNCTION run_keeps_its_life()"))


def _partial(name: str, table: str, columns: Sequence[Any], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, postgresql_where=condition, sqlite_where=condition)


def _who() -> None:
    op.create_table(
        "tenant",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column(
            "public_id",
            TEXT,
            nullable=False,
            comment="What the API shows: tnt_ and a UUIDv7 in base32, or a fixed word.",
        ),
        sa.Column("name", TEXT, nullable=False, comment="For people."),
        sa.Column("max_queued", I4, nullable=False, comment="Runs that may be queued at once; more are refused."),
        sa.Column(
            "max_running",
            I4,
            nullable=False,
            comment="Runs that should run at once; a share, which simultaneous claims may pass by a few.",
        ),
        sa.Column(
            "weight", I4, nullable=False, comment="Share in the claim: twice the weight, twice the runs when all wait."
        ),
        sa.Column("max_record_bytes", I8, nullable=False, comment="Bytes of records kept."),
        sa.Column("keep_days", I4, nullable=False, comment="Days that a record is kept after its run has ended."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was made."),
        sa.Column("disabled_at", TIME, comment="When it was shut; NULL: it is open."),
        sa.PrimaryKeyConstraint("id", name="pk_tenant"),
        sa.UniqueConstraint("public_id", name="uq_tenant_public_id"),
        comment="A customer; tenants see nothing of each other. Embedded there is one, `default`.",
    )
    op.create_table(
        "project",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column(
            "public_id",
            TEXT,
            nullable=False,
            comment="What the API shows: prj_ and a UUIDv7 in base32, or a fixed word.",
        ),
        sa.Column(
            "tenant_id",
            I8,
            sa.ForeignKey("tenant.id", name="fk_project_tenant_id"),
            nullable=False,
            comment="Whose it is.",
        ),
        sa.Column("name", TEXT, nullable=False, comment="For people; unique in its tenant."),
        sa.Column("settings", JSON, nullable=False, comment="The keys of [tool.backprobe] that hold for its runs."),
        sa.Column("keep_days", I4, comment="Days that a record is kept; NULL: as the tenant says."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was made."),
        sa.Column("archived_at", TIME, comment="When it was put away; NULL: in use."),
        sa.PrimaryKeyConstraint("id", name="pk_project"),
        sa.UniqueConstraint("public_id", name="uq_project_public_id"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_project_tenant_id_name"),
        comment="Runs that belong together; it holds their settings and their findings' states.",
    )
    op.create_table(
        "snippet",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column(
            "public_id",
            TEXT,
            nullable=False,
            comment="What the API shows: snp_ and a UUIDv7 in base32, or a fixed word.",
        ),
        sa.Column(
            "tenant_id",
            I8,
            sa.ForeignKey("tenant.id", name="fk_snippet_tenant_id"),
            nullable=False,
            comment="Whose it is.",
        ),
        sa.Column(
            "sha256",
            BYTES,
            nullable=False,
            comment="Over entry, paths and contents; the same program is stored once per tenant.",
        ),
        sa.Column("entry", TEXT, nullable=False, comment="Path of the file that is run."),
        sa.Column("files", I2, nullable=False, comment="How many files."),
        sa.Column("size_bytes", I8, nullable=False, comment="Bytes of all files."),
        sa.Column("created_at", TIME, nullable=False, comment="When it first came."),
        sa.PrimaryKeyConstraint("id", name="pk_snippet"),
        sa.UniqueConstraint("public_id", name="uq_snippet_public_id"),
        sa.UniqueConstraint("tenant_id", "sha256", name="uq_snippet_tenant_id_sha256"),
        comment="A program as submitted: one file or several with an entry. Never changed.",
    )
    op.create_table(
        "snippet_file",
        sa.Column(
            "snippet_id",
            I8,
            sa.ForeignKey("snippet.id", name="fk_snippet_file_snippet_id"),
            nullable=False,
            comment="Which snippet.",
        ),
        sa.Column(
            "n", I2, nullable=False, comment="Its place among the snippet's files, from 0, in order of the path."
        ),
        sa.Column("path", TEXT, nullable=False, comment="Relative POSIX path."),
        sa.Column("sha256", BYTES, nullable=False, comment="Of the bytes."),
        sa.Column("is_text", BOOL, nullable=False, comment="It is UTF-8 text; else a file that the program reads."),
        sa.Column("body", BYTES, nullable=False, comment="The bytes."),
        sa.PrimaryKeyConstraint("snippet_id", "n", name="pk_snippet_file"),
        sa.UniqueConstraint("snippet_id", "path", name="uq_snippet_file_snippet_id_path"),
        comment="One file of a snippet.",
    )


def _runs() -> None:
    op.create_table(
        "run",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column(
            "public_id",
            TEXT,
            nullable=False,
            comment="What the API shows: run_ and a UUIDv7 in base32, or a fixed word.",
        ),
        sa.Column(
            "part",
            I2,
            nullable=False,
            comment="Months since 2020-01 of the time in public_id: the partition of its record.",
        ),
        sa.Column(
            "tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_run_tenant_id"), nullable=False, comment="Whose it is."
        ),
        sa.Column(
            "project_id",
            I8,
            sa.ForeignKey("project.id", name="fk_run_project_id"),
            nullable=False,
            comment="Where it belongs.",
        ),
        sa.Column(
            "snippet_id",
            I8,
            sa.ForeignKey("snippet.id", name="fk_run_snippet_id"),
            comment="What it runs; NULL: watched or uploaded.",
        ),
        sa.Column(
            "origin",
            TEXT,
            nullable=False,
            comment="submitted: a snippet we ran. watched: a recorder sent it. uploaded: a finished record.",
        ),
        sa.Column(
            "rerun_of_id",
            I8,
            sa.ForeignKey("run.id", name="fk_run_rerun_of_id"),
            comment="The run whose snippet it repeats; NULL: none.",
        ),
        sa.Column("custom_id", TEXT, comment="The caller's own name for it; NULL: none."),
        sa.Column("labels", JSON, nullable=False, comment="The caller's labels, text by name."),
        sa.Column("created_by", TEXT, nullable=False, comment="The actor: key:..., user:... or local."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was accepted."),
        sa.Column("traceparent", TEXT, comment="W3C trace context of the request; NULL: none."),
        sa.Column("version", I4, nullable=False, comment="Rises with every change a reader can see: the ETag."),
        sa.Column("queue", TEXT, nullable=False, comment="cpu or gpu."),
        sa.Column("device_class", TEXT, comment="A worker must offer this device; NULL: any."),
        sa.Column(
            "min_isolation",
            TEXT,
            nullable=False,
            comment="The least isolation level accepted; below it the run is refused, never downgraded.",
        ),
        sa.Column("priority", I2, nullable=False, comment="0 first to 9 last; a step is worth 60 s of waiting."),
        sa.Column("queued_at", TIME, nullable=False, comment="When it was last queued."),
        sa.Column(
            "rank_at",
            TIME,
            nullable=False,
            comment="Its place in the queue: queued_at + priority x 60 s, so that waiting raises it without an update.",
        ),
        sa.Column(
            "not_before", TIME, nullable=False, comment="It is not claimed earlier: the pause after a failure of ours."
        ),
        sa.Column("queue_deadline", TIME, nullable=False, comment="If nobody has claimed it by then, it is lost."),
        sa.Column("status", TEXT, nullable=False, comment="See store/runs/states.py; kept by a trigger."),
        sa.Column(
            "attempt",
            I2,
            nullable=False,
            comment="Claims so far: the fencing token. Every write of a worker demands that it is still its own.",
        ),
        sa.Column("max_attempts", I2, nullable=False, comment="Attempts that our own failures may use up."),
        sa.Column("lease_owner", TEXT, comment="worker_node.id that holds it; NULL: not running."),
        sa.Column("lease_until", TIME, comment="Until then it is that worker's; NULL exactly if it is not running."),
        sa.Column("heartbeat_at", TIME, comment="When its worker last renewed the lease; NULL: never."),
        sa.Column("claimed_at", TIME, comment="When it was last claimed; NULL: never."),
        sa.Column("cancel_requested_at", TIME, comment="When its end was asked for; NULL: it was not."),
        sa.Column("result_attempt", I2, comment="Whose record rows are visible; NULL: none are."),
        sa.Column("arguments", JSON, nullable=False, comment="sys.argv[1:]."),
        sa.Column("limits", JSON, nullable=False, comment="By name, in the units of store/runs/limits.py."),
        sa.Column("capture", JSON, nullable=False, comment="What is captured: tier and sampling."),
        sa.Column("seed", I8, comment="For torch.manual_seed before the program; NULL: left alone."),
        sa.Column("started_at", TIME, comment="When its last attempt began; NULL: none has."),
        sa.Column("finished_at", TIME, comment="When it ended; NULL exactly while it is queued or running."),
        sa.Column("exit_code", I4, comment="Of the child; NULL: it did not exit."),
        sa.Column("signal", I2, comment="That killed the child; NULL: none did."),
        sa.Column("limit_hit", TEXT, comment="Name of the limit that stopped it; NULL: none did."),
        sa.Column("error_code", TEXT, comment="Kebab case: why it did not succeed; NULL: it did, or has not ended."),
        sa.Column("error", JSON, comment="whose, type, message, path, line; NULL as error_code."),
        sa.Column("isolation", JSON, comment="What it really ran under, attested from outside; NULL: it has not run."),
        sa.Column("wall_seconds", F8, comment="From the start of the program to its end; NULL: not measured."),
        sa.Column("cpu_seconds", F8, comment="User and system time of all its processes; NULL: not measured."),
        sa.Column("max_rss_bytes", I8, comment="Largest resident memory; NULL: not measured."),
        sa.Column("torch_version", TEXT, comment="torch.__version__ in the child; NULL: not known."),
        sa.Column(
            "record_state",
            TEXT,
            nullable=False,
            comment="none; partial: it stopped early; whole; expired: it was kept and is gone.",
        ),
        sa.Column("tier", TEXT, comment="Capture tier of its record; NULL: no record."),
        sa.Column("tensors", I4, nullable=False, comment="Tensors in the record."),
        sa.Column("snapshots", I8, nullable=False, comment="Snapshots in the record."),
        sa.Column("nodes", I4, nullable=False, comment="Autograd nodes in the record."),
        sa.Column("backward_calls", I4, nullable=False, comment="Backward calls in the record."),
        sa.Column("record_bytes", I8, nullable=False, comment="Bytes that the record takes here, indices apart."),
        sa.Column("peak_held_bytes", I8, comment="Most bytes that graphs held for backward at a call; NULL: no call."),
        sa.Column("truncated", BOOL, nullable=False, comment="The record says itself that something is missing."),
        sa.Column("errors", I4, nullable=False, comment="Findings of level error that are not suppressed."),
        sa.Column("warnings", I4, nullable=False, comment="Findings of level warning that are not suppressed."),
        sa.Column("notes", I4, nullable=False, comment="Findings of level note that are not suppressed."),
        sa.Column("suppressed", I4, nullable=False, comment="Findings that are suppressed."),
        sa.Column("ruleset", TEXT, comment="Digest of the rules that judged it; NULL: not judged."),
        sa.Column("rules_judged", I4, nullable=False, comment="Rules that ran to their end."),
        sa.Column("rules_not_run", I4, nullable=False, comment="Rules that lacked a fact; not run is not passed."),
        sa.Column("judge_due_at", TIME, comment="When it is to be judged again; NULL: it is not."),
        sa.Column("events", I4, nullable=False, comment="seq of its last run_event; 0: none."),
        sa.Column("kept_until", TIME, nullable=False, comment="Its record is kept till then."),
        sa.Column("pinned", BOOL, nullable=False, comment="Its record is never expired."),
        sa.CheckConstraint("attempt <= max_attempts", name=op.f("ck_run_attempts")),
        sa.CheckConstraint("(status in ('queued', 'running')) = (finished_at is null)", name=op.f("ck_run_finished")),
        sa.CheckConstraint("(status = 'running') = (lease_until is not null)", name=op.f("ck_run_lease")),
        sa.CheckConstraint(
            "min_isolation in ('none', 'process', 'namespace', 'gvisor')", name=op.f("ck_run_min_isolation")
        ),
        sa.CheckConstraint("origin in ('submitted', 'watched', 'uploaded')", name=op.f("ck_run_origin")),
        sa.CheckConstraint("priority between 0 and 9", name=op.f("ck_run_priority")),
        sa.CheckConstraint("queue in ('cpu', 'gpu')", name=op.f("ck_run_queue")),
        sa.CheckConstraint("record_state in ('none', 'partial', 'whole', 'expired')", name=op.f("ck_run_record_state")),
        sa.CheckConstraint("result_attempt <= attempt", name=op.f("ck_run_result_attempt")),
        sa.CheckConstraint(
            "status in ('queued', 'running', 'succeeded', 'failed', 'exceeded', 'canceled', 'lost')",
            name=op.f("ck_run_status"),
        ),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
        sa.UniqueConstraint("public_id", name="uq_run_public_id"),
        comment="One execution of a snippet; while it is queued, its place in the queue.",
    )
    _partial("run_busy", "run", ["tenant_id"], "status = 'running'")
    op.create_index("run_claims", "run", ["tenant_id", "claimed_at"])
    _partial("run_judge_due", "run", ["judge_due_at"], "judge_due_at is not null")
    _partial("run_kept", "run", ["kept_until"], "record_state in ('partial', 'whole')")
    _partial("run_lease", "run", ["lease_until"], "status = 'running'")
    op.create_index("run_newest", "run", ["tenant_id", sa.text("created_at DESC"), sa.text("id DESC")])
    op.create_index("run_of_project", "run", ["project_id", sa.text("created_at DESC"), sa.text("id DESC")])
    op.create_index("run_of_snippet", "run", ["snippet_id"])
    _partial("run_queue", "run", ["queue", "tenant_id", "rank_at", "id"], "status = 'queued'")
    op.create_table(
        "run_attempt",
        sa.Column(
            "run_id", I8, sa.ForeignKey("run.id", name="fk_run_attempt_run_id"), nullable=False, comment="Which run."
        ),
        sa.Column("attempt", I2, nullable=False, comment="Which attempt, from 1."),
        sa.Column("worker", TEXT, nullable=False, comment="worker_node.id of who made it; that row may be gone."),
        sa.Column("started_at", TIME, nullable=False, comment="When it was claimed."),
        sa.Column("ended_at", TIME, comment="When it ended; NULL: it has not."),
        sa.Column(
            "outcome", TEXT, comment="finished, worker-lost, sandbox-broke, released, canceled; NULL: it has not ended."
        ),
        sa.Column("detail", JSON, comment="More about its end; NULL: nothing."),
        sa.Column("isolation", JSON, comment="What it ran under; NULL: not known."),
        sa.PrimaryKeyConstraint("run_id", "attempt", name="pk_run_attempt"),
        comment="One claim of a run by a worker, and how it ended.",
    )
    op.create_table(
        "run_event",
        sa.Column("part", I2, nullable=False, comment="As in run."),
        sa.Column("run_id", I8, nullable=False, comment="Which run; no foreign key, because months are dropped whole."),
        sa.Column("seq", I4, nullable=False, comment="Counts the run's events from 1; the id in event streams."),
        sa.Column("at", TIME, nullable=False, comment="When."),
        sa.Column("kind", TEXT, nullable=False, comment="queued, claimed, cancel-requested, requeued, status."),
        sa.Column("attempt", I2, comment="During which attempt; NULL: none."),
        sa.Column("payload", JSON, nullable=False, comment="A few facts, at most 4 KiB, never content of a record."),
        sa.PrimaryKeyConstraint("part", "run_id", "seq", name="pk_run_event"),
        comment="What happened to a run, in order.",
    )
    op.create_table(
        "worker_node",
        sa.Column("id", TEXT, nullable=False, comment="host:pid:nonce of a worker process."),
        sa.Column("queues", JSON, nullable=False, comment="Queues it takes runs from."),
        sa.Column("levels", JSON, nullable=False, comment="Isolation levels that it really offers."),
        sa.Column("devices", JSON, nullable=False, comment="Device classes that it offers."),
        sa.Column("versions", JSON, nullable=False, comment="Of backprobe, torch, Python."),
        sa.Column("slots", I2, nullable=False, comment="Runs it can hold at once."),
        sa.Column("busy", I2, nullable=False, comment="Runs it holds."),
        sa.Column("started_at", TIME, nullable=False, comment="Its first beat."),
        sa.Column(
            "heartbeat_at", TIME, nullable=False, comment="Its last beat: its health, not that a process is there."
        ),
        sa.Column("draining", BOOL, nullable=False, comment="It takes no more runs."),
        sa.Column("probe", JSON, nullable=False, comment="What the sandbox's canary proved."),
        sa.PrimaryKeyConstraint("id", name="pk_worker_node"),
        comment="A worker process, as long as it beats.",
    )
    op.create_table(
        "finding",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column(
            "public_id", TEXT, nullable=False, comment="What the API shows: f_ and a UUIDv7 in base32, or a fixed word."
        ),
        sa.Column(
            "run_id", I8, sa.ForeignKey("run.id", name="fk_finding_run_id"), nullable=False, comment="About which run."
        ),
        sa.Column("attempt", I2, nullable=False, comment="About which attempt's record."),
        sa.Column(
            "tenant_id",
            I8,
            sa.ForeignKey("tenant.id", name="fk_finding_tenant_id"),
            nullable=False,
            comment="Whose it is.",
        ),
        sa.Column(
            "project_id",
            I8,
            sa.ForeignKey("project.id", name="fk_finding_project_id"),
            nullable=False,
            comment="Where it belongs.",
        ),
        sa.Column(
            "n", I4, nullable=False, comment="Its place in the judgement: worst first, then in order of the source."
        ),
        sa.Column("fingerprint", TEXT, nullable=False, comment="Identity across runs and edits elsewhere."),
        sa.Column("rule", TEXT, nullable=False, comment="Name of the rule, kebab case."),
        sa.Column("code", TEXT, nullable=False, comment="Code of the rule, BP101."),
        sa.Column("ruleset", TEXT, nullable=False, comment="Digest of the rules that said so."),
        sa.Column("level", TEXT, nullable=False, comment="How bad: error, warning or note."),
        sa.Column("confidence", TEXT, nullable=False, comment="How sure: proven, likely or heuristic."),
        sa.Column("message", TEXT, nullable=False, comment="What was seen, why it matters, what to change."),
        sa.Column("path", TEXT, nullable=False, comment="File of its location, relative POSIX."),
        sa.Column("line", I4, nullable=False, comment="First line of its location, 1-based."),
        sa.Column("location", JSON, nullable=False, comment="path, region, text, function."),
        sa.Column("related", JSON, nullable=False, comment="Other places of the story, in order."),
        sa.Column("stacks", JSON, nullable=False, comment="Call stacks, each with its part in the story."),
        sa.Column("evidence", JSON, nullable=False, comment="The facts that carry the verdict."),
        sa.Column("fixes", JSON, nullable=False, comment="What to change."),
        sa.Column("consequences", JSON, nullable=False, comment="Findings of other rules that follow from this one."),
        sa.Column("suppressed", JSON, comment="Why it is not to be shown; NULL: it is shown."),
        sa.Column("tensor", I4, comment="The tensor it is about; NULL: none."),
        sa.Column("call", I4, comment="The backward call it is about; NULL: none."),
        sa.Column("moment", I4, comment="The moment it is about; NULL: none."),
        sa.Column("count", I4, nullable=False, comment="How often the same was found."),
        sa.Column("first_step", I4, comment="Optimizer steps finished at the first; NULL: not known."),
        sa.Column("last_step", I4, comment="Optimizer steps finished at the last; NULL: not known."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was stored."),
        sa.Column("gone_at", TIME, comment="When newer rules no longer said so; NULL: they still do."),
        sa.Column("gone_ruleset", TEXT, comment="Those rules; NULL as gone_at."),
        sa.CheckConstraint("confidence in ('proven', 'likely', 'heuristic')", name=op.f("ck_finding_confidence")),
        sa.CheckConstraint("level in ('error', 'warning', 'note')", name=op.f("ck_finding_level")),
        sa.PrimaryKeyConstraint("id", name="pk_finding"),
        sa.UniqueConstraint("public_id", name="uq_finding_public_id"),
        comment="A rule's verdict at a source line of one run.",
    )
    op.create_index("finding_of_rule", "finding", ["tenant_id", "rule", sa.text("created_at DESC"), "run_id"])
    op.create_index("finding_of_run", "finding", ["run_id", "attempt", "level", "line"])


def _program() -> None:
    op.create_table(
        "record",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("schema_version", I4, comment="Version of the record's format; NULL: not even its header came."),
        sa.Column("backprobe_version", TEXT, comment="Version that captured; NULL as schema_version."),
        sa.Column("tier", TEXT, comment="state, grad, full or deep; NULL as schema_version."),
        sa.Column("entry", TEXT, comment="run, watch, notebook or service; NULL as schema_version."),
        sa.Column("started_at", TEXT, comment="UTC, ISO 8601, as the child wrote it; NULL as schema_version."),
        sa.Column("duration_ns", I8, comment="From start to end; NULL: it did not reach its end."),
        sa.Column("own_ns", I8, comment="Of that, ours; NULL: it did not reach its end."),
        sa.Column("own_errors", I8, comment="Errors of ours that capture swallowed; NULL: it did not reach its end."),
        sa.Column("own_error", TEXT, comment="Text of the first of those; NULL: none."),
        sa.Column(
            "reached_end",
            BOOL,
            nullable=False,
            comment="The end frame came: the record is whole as far as its caps allow.",
        ),
        sa.Column(
            "ending",
            TEXT,
            comment="ended, raised or exited, in the program's own words; NULL: it did not reach its end.",
        ),
        sa.Column(
            "exit_code", I8, comment="What the interpreter would have exited with; NULL: it did not reach its end."
        ),
        sa.Column("exception", I4, comment="n of the uncaught exception in exceptions; NULL: none."),
        sa.Column("tap", TEXT, comment="Which build of the taps ran: python or c; NULL as schema_version."),
        sa.Column("environment", JSON, comment="Versions, devices, modes and variables; NULL as schema_version."),
        sa.Column("threads", JSON, nullable=False, comment="Threads in which something was recorded."),
        sa.Column("sources", JSON, nullable=False, comment="The user's files as they were compiled."),
        sa.Column("hooks", JSON, nullable=False, comment="Hooks that the program registered; always empty so far."),
        sa.Column("exceptions", JSON, nullable=False, comment="Exceptions, caught ones too, with their frames."),
        sa.Column("warnings", JSON, nullable=False, comment="Warnings as the program's filters showed them."),
        sa.Column("streams", JSON, nullable=False, comment="stdout and stderr: tail and total_bytes, from the pipe."),
        sa.Column("truncations", JSON, nullable=False, comment="What was left out, and why."),
        sa.Column(
            "fallbacks", JSON, nullable=False, comment="Instruments that were installed in another way than planned."
        ),
        sa.Column("deviations", JSON, nullable=False, comment="What the program could notice of being recorded."),
        sa.Column(
            "growth",
            JSON,
            nullable=False,
            comment="Live nodes and bytes per backward call of a site; always empty so far.",
        ),
        sa.Column("grad_reads", JSON, nullable=False, comment="Where the program read .grad, and whether it was None."),
        sa.Column("tensor_notes", JSON, nullable=False, comment="What is not recorded of a tensor, and why."),
        sa.Column(
            "grad_fns", JSON, nullable=False, comment="Names of nodes; snapshot_chunk.grad_fn counts them from 1."
        ),
        sa.Column(
            "rules_not_run", JSON, nullable=False, comment="Rules that lacked a fact to judge it: code, name, why."
        ),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", name="pk_record"),
        comment="The head of a record, and what nobody filters by.",
    )
    op.create_table(
        "site",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("site", I4, nullable=False, comment="Its number in the record."),
        sa.Column("file", I4, nullable=False, comment="Number of its file in record.sources."),
        sa.Column("path", TEXT, nullable=False, comment="Of that file, relative POSIX."),
        sa.Column("line", I4, nullable=False, comment="First line, 1-based."),
        sa.Column("end_line", I4, nullable=False, comment="Last line."),
        sa.Column("col", I4, nullable=False, comment="First column, 1-based, in code points."),
        sa.Column("end_col", I4, nullable=False, comment="Column after the last."),
        sa.Column(
            "function", TEXT, nullable=False, comment="Qualified name of the enclosing function; <module> at top level."
        ),
        sa.Column("loop_line", I4, comment="First line of the innermost enclosing loop in that function; NULL: none."),
        sa.Column(
            "kind",
            TEXT,
            nullable=False,
            comment="assign, return, call, inplace, for, enter, grad-read, statement or module.",
        ),
        sa.Column("targets", JSON, nullable=False, comment="Names it binds."),
        sa.Column("reads", JSON, nullable=False, comment="Names it reads."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "site", name="pk_site"),
        comment="A statement or expression of the user's files.",
        sqlite_with_rowid=False,
    )
    op.create_index("site_path_line", "site", ["part", "run_id", "attempt", "path", "line"])
    op.create_table(
        "moment",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("moment", I4, nullable=False, comment="Its number: the order in the run."),
        sa.Column("kind", TEXT, nullable=False, comment="What had just happened, or was about to."),
        sa.Column("k", I4, nullable=False, comment="Counts the moments of its kind that carry a number; else 0."),
        sa.Column("site", I4, comment="Where; NULL: at no statement."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("module_call", I4, comment="Innermost module call open; NULL: none."),
        sa.Column("step", I4, nullable=False, comment="Optimizer steps finished before it."),
        sa.Column("time_ns", I8, nullable=False, comment="Since the start of the record."),
        sa.Column("grad_mode", BOOL, nullable=False, comment="Autograd was on."),
        sa.Column("inference_mode", BOOL, nullable=False, comment="Under inference_mode."),
        sa.Column("autocast", TEXT, comment="dtype per device; NULL: off."),
        sa.CheckConstraint(
            "kind in ('after-statement', 'before-backward', 'after-backward', 'optimizer-step', 'end')",
            name=op.f("ck_moment_kind"),
        ),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "moment", name="pk_moment"),
        comment="A point in the run at which state was taken.",
        sqlite_with_rowid=False,
    )
    op.create_index("moment_kind_k", "moment", ["part", "run_id", "attempt", "kind", "k"])
    op.create_table(
        "module",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("module", I4, nullable=False, comment="Its number."),
        sa.Column("class", TEXT, nullable=False, comment="Class name."),
        sa.Column("binding", TEXT, comment="Name it was bound to, for a root module; NULL: none."),
        sa.Column("fqn", TEXT, comment="Path below that; NULL: a root."),
        sa.Column("site", I4, comment="Where it was first seen; NULL: not known."),
        sa.Column("user_code", BOOL, nullable=False, comment="Its class is defined in the user's files."),
        sa.Column("training", BOOL, nullable=False, comment="In training mode when first seen."),
        sa.Column("parameters", JSON, nullable=False, comment="Its own: name, tensor, requires_grad."),
        sa.Column("buffers", JSON, nullable=False, comment="Its own, likewise."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "module", name="pk_module"),
        comment="An nn.Module of the program.",
    )
    op.create_table(
        "module_call",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("module_call", I4, nullable=False, comment="Its number."),
        sa.Column("module", I4, nullable=False, comment="Whose call."),
        sa.Column("k", I4, nullable=False, comment="Counts the module's calls from 0."),
        sa.Column("parent", I4, comment="The call in which it was made; NULL: none."),
        sa.Column("site", I4, comment="Where it was called; NULL: not known."),
        sa.Column("chain", TEXT, nullable=False, comment="Calls it was made in, outermost first: h.3.attn#0."),
        sa.Column("lo", I8, nullable=False, comment="Autograd sequence number at enter."),
        sa.Column("hi", I8, nullable=False, comment="At leave: its nodes are those in [lo, hi)."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("training", BOOL, nullable=False, comment="In training mode."),
        sa.Column("grad_mode", BOOL, nullable=False, comment="Autograd was on."),
        sa.Column("recompute", BOOL, nullable=False, comment="A checkpoint's second forward."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "module_call", name="pk_module_call"),
        comment="The k-th call of a module.",
        sqlite_with_rowid=False,
    )
    op.create_index("module_call_chain", "module_call", ["part", "run_id", "attempt", "chain"])


def _tensors() -> None:
    op.create_table(
        "tensor",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("tensor", I4, nullable=False, comment="Its number: the identity through the run."),
        sa.Column("name", TEXT, comment="The last name it was bound to; NULL: it never had one."),
        sa.Column("fqn", TEXT, comment="state_dict key with the module's name in front; NULL: none."),
        sa.Column("role", TEXT, comment="parameter, buffer or optimizer-only; NULL: none of them."),
        sa.Column("shape", JSON, comment="Sizes; NULL: strided nested, it has none."),
        sa.Column("stride", JSON, comment="In elements; NULL: torch defines none."),
        sa.Column("storage_offset", I8, comment="In elements; NULL: torch defines none."),
        sa.Column("dtype", TEXT, nullable=False, comment="torch.float32, ..."),
        sa.Column("layout", TEXT, nullable=False, comment="torch.strided, ..."),
        sa.Column("device", TEXT, nullable=False, comment="cpu, cuda:0, ..."),
        sa.Column("class", TEXT, nullable=False, comment="Tensor, Parameter or the subclass."),
        sa.Column(
            "special",
            TEXT,
            comment="Why statistics or elements may be missing: sparse-coo, fake, ...; NULL: nothing special.",
        ),
        sa.Column("numel", I8, nullable=False, comment="Elements."),
        sa.Column("size_bytes", I8, nullable=False, comment="numel x element size."),
        sa.Column("storage", I4, comment="Tensors with the same number share memory; NULL: sparse, mkldnn."),
        sa.Column("storage_bytes", I8, comment="Of that memory; NULL as storage."),
        sa.Column("view_of", I4, comment="The tensor that is its _base; NULL: no view."),
        sa.Column("created_by", TEXT, nullable=False, comment="op, user, library or unknown."),
        sa.Column("created_how", TEXT, nullable=False, comment="The node's name, or the call in the statement."),
        sa.Column("proof", TEXT, nullable=False, comment="How that is known: seen, range, source, unknown."),
        sa.Column("site", I4, comment="Where it was first seen; NULL: at no statement."),
        sa.Column("line", I4, comment="First line of that site; NULL as site."),
        sa.Column("moment", I4, nullable=False, comment="When it was first seen."),
        sa.Column("node", I4, comment="The node whose output it is; NULL: none, or not walked."),
        sa.Column("output_nr", I4, comment="Which output; NULL as node."),
        sa.Column("node_proof", TEXT, comment="How node is known; NULL as node."),
        sa.Column("died", I4, comment="First moment at which it was gone; NULL: alive at the end, or not known."),
        sa.Column("last_moment", I4, comment="Of its last snapshot, whose state follows; NULL: it has none."),
        sa.Column("is_leaf", BOOL, comment="Last state; NULL: no snapshot."),
        sa.Column("requires_grad", BOOL, comment="Last state; NULL: no snapshot."),
        sa.Column("retains_grad", BOOL, comment="Last state; NULL: no snapshot."),
        sa.Column("grad_fn", TEXT, comment="Last state: name of its node; NULL: none, or not read."),
        sa.Column("version", I4, comment="Last state: _version; NULL: not known."),
        sa.Column(
            "grad", TEXT, comment="Last state: none, present, or not-read (torch would warn); NULL: no snapshot."
        ),
        sa.Column("why_none", TEXT, comment="Verdict: why it has no gradient; NULL: it has one, or nobody judged."),
        sa.Column("why_text", TEXT, comment="The verdict in a sentence; NULL as why_none."),
        sa.Column("why_site", I4, comment="The statement that decided it; NULL: none did."),
        sa.Column("why_line", I4, comment="First line of that statement; NULL: none did."),
        sa.Column("why_call", I4, comment="The backward call that decided it; NULL: none did."),
        sa.Column("grad_norm", F4, comment="Last one measured; NULL: never."),
        sa.Column("value_norm", F4, comment="Last one measured; NULL: never."),
        sa.Column(
            "nonfinite", I8, nullable=False, comment="Most NaN and infinities seen at once in it and its gradient."
        ),
        sa.Column("grad_ever", BOOL, nullable=False, comment="A snapshot saw a gradient."),
        sa.Column(
            "held_bytes", I8, nullable=False, comment="What the graph behind it held for backward when last looked at."
        ),
        sa.CheckConstraint("grad in ('none', 'present', 'not-read')", name=op.f("ck_tensor_grad")),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "tensor", name="pk_tensor"),
        comment="One tensor of a run, and its last state: what a person asks first.",
    )
    op.create_index("tensor_grad_norm", "tensor", ["part", "run_id", "attempt", sa.text("grad_norm DESC")])
    op.create_index("tensor_line_tensor", "tensor", ["part", "run_id", "attempt", "line", "tensor"])
    op.create_index("tensor_name", "tensor", ["part", "run_id", "attempt", "name"])
    _partial(
        "tensor_without_grad", "tensor", ["part", "run_id", "attempt", "tensor"], "requires_grad and grad <> 'present'"
    )
    op.create_table(
        "binding",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("binding", I4, nullable=False, comment="Its number, in order of time."),
        sa.Column("tensor", I4, nullable=False, comment="What the name came to hold."),
        sa.Column("name", TEXT, nullable=False, comment="As written: x, self.h, losses[-1]."),
        sa.Column("site", I4, nullable=False, comment="Where."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column("function", TEXT, nullable=False, comment="In which function; <module> at top level."),
        sa.Column("version", I4, comment="_version then; NULL: inference mode."),
        sa.Column("replaces", I4, comment="Tensor that the name held before in this function; NULL: none."),
        sa.Column("parents", JSON, nullable=False, comment="Tensors it was computed from."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "binding", name="pk_binding"),
        comment="A name that came to hold a tensor.",
        sqlite_with_rowid=False,
    )
    op.create_index("binding_name", "binding", ["part", "run_id", "attempt", "name"])
    op.create_index("binding_tensor", "binding", ["part", "run_id", "attempt", "tensor"])
    op.create_table(
        "small_value",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("tensor", I4, nullable=False, comment="Whose elements."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column(
            "of",
            TEXT,
            nullable=False,
            comment="value, grad, or arrived: the gradient that reached it in a backward call.",
        ),
        sa.Column("dtype", TEXT, nullable=False, comment="Of the elements, without torch. in front."),
        sa.Column("shape", JSON, nullable=False, comment="Of the elements."),
        sa.Column("elements", BYTES, nullable=False, comment="At most 64, little-endian, row-major."),
        sa.CheckConstraint("of in ('value', 'grad', 'arrived')", name=op.f("ck_small_value_of")),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "tensor", "moment", "of", name="pk_small_value"),
        comment="The elements of a tensor of at most 64, or of its gradient.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "leaf_grad",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("n", I4, nullable=False, comment="Its number, in order of time."),
        sa.Column("tensor", I4, nullable=False, comment="Whose .grad."),
        sa.Column("call", I4, comment="In which backward call; NULL: outside any."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column(
            "kind",
            TEXT,
            nullable=False,
            comment="populate, accumulate, accumulate-new-tensor, modified-in-place, assigned, set-none, untouched.",
        ),
        sa.Column("grad_before", I4, comment="Identity of .grad before; NULL: None."),
        sa.Column("grad_after", I4, comment="Identity of .grad after; NULL: None."),
        sa.Column("version_before", I4, comment="_version of .grad before; NULL: None."),
        sa.Column("version_after", I4, comment="_version of .grad after; NULL: None."),
        sa.Column("site", I4, comment="Where; NULL: at no statement."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "n", name="pk_leaf_grad"),
        comment="A change of one leaf's .grad.",
        sqlite_with_rowid=False,
    )
    op.create_index("leaf_grad_tensor_moment", "leaf_grad", ["part", "run_id", "attempt", "tensor", "moment"])
    op.create_table(
        "inplace_event",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("n", I4, nullable=False, comment="Its number, in order of time."),
        sa.Column("tensor", I4, nullable=False, comment="Which tensor."),
        sa.Column("site", I4, comment="Which statement changed it; NULL: not known."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column("version_before", I4, nullable=False, comment="_version before."),
        sa.Column("version_after", I4, nullable=False, comment="_version after."),
        sa.Column("done_by", TEXT, nullable=False, comment="statement, optimizer, backward or unknown."),
        sa.Column("optimizer", I4, comment="Which optimizer; NULL: none."),
        sa.CheckConstraint(
            "done_by in ('statement', 'optimizer', 'backward', 'unknown')", name=op.f("ck_inplace_event_done_by")
        ),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "n", name="pk_inplace_event"),
        comment="A change in place: a tensor's _version rose.",
        sqlite_with_rowid=False,
    )
    op.create_index("inplace_event_tensor", "inplace_event", ["part", "run_id", "attempt", "tensor"])
    op.create_table(
        "optimizer",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("optimizer", I4, nullable=False, comment="Its number."),
        sa.Column("class", TEXT, nullable=False, comment="Class name."),
        sa.Column("binding", TEXT, comment="Name it was bound to; NULL: none."),
        sa.Column("site", I4, comment="Where it was made; NULL: not known."),
        sa.Column("moment", I4, nullable=False, comment="When it was first seen."),
        sa.Column("groups", JSON, nullable=False, comment="Its parameter groups: learning_rate."),
        sa.Column(
            "tensors",
            JSON,
            nullable=False,
            comment="The tensors in them: tensor, group, stale, non_leaf, foreign, duplicated.",
        ),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "optimizer", name="pk_optimizer"),
        comment="A torch.optim.Optimizer.",
    )
    op.create_table(
        "optimizer_event",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("n", I4, nullable=False, comment="Its number, in order of time."),
        sa.Column("optimizer", I4, nullable=False, comment="Whose."),
        sa.Column("kind", TEXT, nullable=False, comment="step or zero_grad."),
        sa.Column("site", I4, comment="Where; NULL: not known."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column("set_to_none", BOOL, comment="Of zero_grad; NULL: a step."),
        sa.Column("with_grad", I4, nullable=False, comment="Tensors that had a gradient."),
        sa.Column("without_grad", I4, nullable=False, comment="Tensors that had none."),
        sa.Column("changed", I4, nullable=False, comment="Tensors whose version rose."),
        sa.Column("scale", F8, comment="Of a gradient scaler; NULL: none."),
        sa.CheckConstraint("kind in ('step', 'zero_grad')", name=op.f("ck_optimizer_event_kind")),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "n", name="pk_optimizer_event"),
        comment="A step or zero_grad of an optimizer.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "snapshot_chunk",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("tensor", I4, nullable=False, comment="Whose snapshots."),
        sa.Column("first_moment", I4, nullable=False, comment="Moment of the first."),
        sa.Column("last_moment", I4, nullable=False, comment="Moment of the last."),
        sa.Column("n", I2, nullable=False, comment="How many, 1 to 480."),
        sa.Column("moment_step", I2, nullable=False, comment="Distance of their moments; 0: see moments."),
        sa.Column("flags_and", I2, nullable=False, comment="Bits that all flags have."),
        sa.Column("flags_or", I2, nullable=False, comment="Bits that any flags have."),
        sa.Column("grad_norm_min", F4, comment="Least grad_norm that is a number; NULL: none is."),
        sa.Column(
            "grad_norm_max",
            F4,
            comment="Greatest grad_norm that is a number; NULL: none is. NaN would head every top list.",
        ),
        sa.Column("nan_total", I8, nullable=False, comment="NaN in values and gradients, summed."),
        sa.Column("inf_total", I8, nullable=False, comment="Infinities in values and gradients, summed."),
        sa.Column(
            "version_step",
            I2,
            nullable=False,
            comment="version[i] = version[0] + version_step x i; 0: version is constant or listed.",
        ),
        sa.Column(
            "moments", BYTES, comment="i4; moments of the snapshots. NULL: they are first_moment + moment_step x i."
        ),
        sa.Column(
            "flags",
            BYTES,
            comment="i2; bits 1 is_leaf, 2 requires_grad, 4 retains_grad, 8 has grad_fn, 16 grad none, 32 grad not-read, 64 value sampled, 128 grad_fn not read, 256 value measured, 512 gradient measured, 1024 gradient sampled. Absent: 0.",
        ),
        sa.Column(
            "grad_fn", BYTES, comment="i4; name of its node, counted from 1 in record.grad_fns; 0: none. Absent: 0."
        ),
        sa.Column(
            "why", BYTES, comment="i2; code of the verdict why there is no gradient; always absent so far. Absent: 0."
        ),
        sa.Column("grad_dtype", BYTES, comment="i2; code of the gradient's dtype; always absent so far. Absent: 0."),
        sa.Column("why_site", BYTES, comment="i4; statement that decided why; always absent so far. Absent: -1."),
        sa.Column("why_call", BYTES, comment="i4; backward call that decided why; always absent so far. Absent: -1."),
        sa.Column(
            "version", BYTES, comment="i4; _version, -1: not known; with version_step only the first. Absent: 0."
        ),
        sa.Column("grad_id", BYTES, comment="i4; identity of the tensor in .grad, -1: none. Absent: -1."),
        sa.Column("grad_version", BYTES, comment="i4; _version of the tensor in .grad, -1: none. Absent: -1."),
        sa.Column("value_norm", BYTES, comment="f4; L2 norm of the value. Absent: NaN 0x7fc00001, not defined."),
        sa.Column("value_sum", BYTES, comment="f4; sum of the value. Absent: NaN 0x7fc00001, not defined."),
        sa.Column("value_min", BYTES, comment="f4; least element of the value. Absent: NaN 0x7fc00001, not defined."),
        sa.Column(
            "value_max", BYTES, comment="f4; greatest element of the value. Absent: NaN 0x7fc00001, not defined."
        ),
        sa.Column("grad_norm", BYTES, comment="f4; L2 norm of the gradient. Absent: NaN 0x7fc00001, not defined."),
        sa.Column("grad_sum", BYTES, comment="f4; sum of the gradient. Absent: NaN 0x7fc00001, not defined."),
        sa.Column("grad_min", BYTES, comment="f4; least element of the gradient. Absent: NaN 0x7fc00001, not defined."),
        sa.Column(
            "grad_max", BYTES, comment="f4; greatest element of the gradient. Absent: NaN 0x7fc00001, not defined."
        ),
        sa.Column("value_nan", BYTES, comment="i8; NaN in the value. Absent: 0."),
        sa.Column("value_inf", BYTES, comment="i8; infinities in the value. Absent: 0."),
        sa.Column("value_zeros", BYTES, comment="i8; zeros in the value. Absent: 0."),
        sa.Column("value_counted", BYTES, comment="i8; elements looked at in the value. Absent: 0."),
        sa.Column("grad_nan", BYTES, comment="i8; NaN in the gradient. Absent: 0."),
        sa.Column("grad_inf", BYTES, comment="i8; infinities in the gradient. Absent: 0."),
        sa.Column("grad_zeros", BYTES, comment="i8; zeros in the gradient. Absent: 0."),
        sa.Column("grad_counted", BYTES, comment="i8; elements looked at in the gradient. Absent: 0."),
        sa.Column(
            "held_bytes", BYTES, comment="i8; bytes that the graph behind it held; always absent so far. Absent: 0."
        ),
        sa.Column(
            "overview",
            BYTES,
            comment="Highest grad_norm of each 16 snapshots, f4. NULL: no gradient norm in the chunk, or it is one such block.",
        ),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "tensor", "first_moment", name="pk_snapshot_chunk"),
        comment="Up to 480 snapshots of one tensor; the history behind the last state in tensor.",
    )
    op.create_index(
        "snapshot_chunk_grad_norm", "snapshot_chunk", ["part", "run_id", "attempt", sa.text("grad_norm_max DESC")]
    )
    _partial(
        "snapshot_chunk_nonfinite",
        "snapshot_chunk",
        ["part", "run_id", "attempt", "tensor"],
        "nan_total + inf_total > 0",
    )


def _graph() -> None:
    op.create_table(
        "node",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("node", I4, nullable=False, comment="Its number."),
        sa.Column("seq", I8, comment="Autograd sequence number; NULL: AccumulateGrad has none."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("type", TEXT, nullable=False, comment="AddmmBackward0, ..."),
        sa.Column("site", I4, comment="The statement that made it; NULL: not known."),
        sa.Column("proof", TEXT, nullable=False, comment="How that is known: seen, range, source, unknown."),
        sa.Column("module_call", I4, comment="Innermost module call open then; NULL: none."),
        sa.Column("born_in", TEXT, nullable=False, comment="forward, backward or recompute."),
        sa.Column("born_call", I4, comment="The create_graph call that made it; NULL: none."),
        sa.Column("grad_order", I2, nullable=False, comment="0: forward; else 1 + that of the nodes it derives."),
        sa.Column("outputs", JSON, nullable=False, comment="Its forward outputs: shape, dtype, device."),
        sa.Column("variable", I4, comment="Tensor: the leaf of an AccumulateGrad; NULL: not one."),
        sa.Column("custom", TEXT, comment="The user's autograd.Function; NULL: none."),
        sa.Column("custom_site", I4, comment="Where that is defined; NULL: not known."),
        sa.Column("first_seen", I4, nullable=False, comment="Moment of the walk that met it."),
        sa.Column("died", I4, comment="First moment at which it was gone; NULL: not known to be."),
        sa.Column("saved_bytes", I8, nullable=False, comment="Of what it saved for backward."),
        sa.Column("freed_by", I4, comment="Backward call that freed what it saved; NULL: none did."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "node", name="pk_node"),
        comment="A torch.autograd.graph.Node.",
    )
    op.create_index("node_first_seen", "node", ["part", "run_id", "attempt", "first_seen"])
    op.create_index("node_site", "node", ["part", "run_id", "attempt", "site"])
    op.create_table(
        "edge",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("node", I4, nullable=False, comment="From."),
        sa.Column("slot", I4, nullable=False, comment="Place in its next_functions."),
        sa.Column("to_node", I4, comment="To; NULL: no gradient is wanted there."),
        sa.Column("input_nr", I4, nullable=False, comment="Which input of to_node."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "node", "slot", name="pk_edge"),
        comment="node.next_functions[slot].",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "saved",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("node", I4, nullable=False, comment="Which node holds it."),
        sa.Column("n", I4, nullable=False, comment="Counts what the node holds from 0."),
        sa.Column("name", TEXT, nullable=False, comment="torch's name for it: self, result, tensors[2]."),
        sa.Column("tensor", I4, comment="The tensor it is; NULL: not one we know."),
        sa.Column("storage", I4, comment="Its memory; NULL: not known."),
        sa.Column("size_bytes", I8, comment="Of that memory; NULL: a hook's object is held instead."),
        sa.Column("shape", JSON, nullable=False, comment="Sizes."),
        sa.Column("dtype", TEXT, nullable=False, comment="Its dtype; empty: not known."),
        sa.Column("version", I4, comment="_version at the birth of the node; NULL: not known."),
        sa.Column("proof", TEXT, nullable=False, comment="How version is known: seen, range, source, unknown."),
        sa.Column("held_by", TEXT, nullable=False, comment="plain, or the class of a saved-tensor hook's object."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "node", "n", name="pk_saved"),
        comment="A tensor that a node holds for backward.",
        sqlite_with_rowid=False,
    )
    op.create_index("saved_tensor", "saved", ["part", "run_id", "attempt", "tensor"])
    op.create_table(
        "backward_call",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("call", I4, nullable=False, comment="Its number, in order."),
        sa.Column(
            "entry",
            TEXT,
            nullable=False,
            comment="Tensor.backward, autograd.backward, autograd.grad, functional, checkpoint or unseen.",
        ),
        sa.Column("site", I4, comment="Where; NULL: not known."),
        sa.Column("thread", I2, nullable=False, comment="n of record.threads."),
        sa.Column("parent", I4, comment="The call inside which it ran; NULL: none."),
        sa.Column("roots", JSON, nullable=False, comment="Where it began: tensor, name, shape, gradient_given."),
        sa.Column("inputs", JSON, comment="What it was asked for, likewise; NULL: all leaves."),
        sa.Column("retain_graph", BOOL, nullable=False, comment="As it took effect."),
        sa.Column("retain_graph_given", BOOL, comment="As written; NULL: defaulted."),
        sa.Column("create_graph", BOOL, nullable=False, comment="As it took effect."),
        sa.Column(
            "accumulate_grad", BOOL, nullable=False, comment="It stores gradients; autograd.grad returns them instead."
        ),
        sa.Column("allow_unused", BOOL, nullable=False, comment="As it took effect."),
        sa.Column(
            "returned", JSON, comment="Of autograd.grad: per input, whether a gradient came back; NULL: another entry."
        ),
        sa.Column("nodes_met", I4, nullable=False, comment="Walked before it."),
        sa.Column("nodes_run", I4, nullable=False, comment="Executed."),
        sa.Column("nodes_freed", I4, nullable=False, comment="Whose saved tensors it freed."),
        sa.Column("held_bytes", I8, nullable=False, comment="Distinct saved memory before it."),
        sa.Column("freed_bytes", I8, nullable=False, comment="Of the nodes that it freed."),
        sa.Column("duration_ns", I8, nullable=False, comment="How long it took."),
        sa.Column("own_ns", I8, nullable=False, comment="Of that, ours."),
        sa.Column("outcome", TEXT, nullable=False, comment="finished; raised; running: the record ends inside it."),
        sa.Column("exception", I4, comment="n in record.exceptions; NULL: it did not raise."),
        sa.Column("truncated", BOOL, nullable=False, comment="The walk was cut by a cap."),
        sa.Column("moment_before", I4, nullable=False, comment="Moment before-backward k."),
        sa.Column("moment_after", I4, comment="Moment after-backward k; NULL: the record ends inside it."),
        sa.CheckConstraint("outcome in ('running', 'finished', 'raised')", name=op.f("ck_backward_call_outcome")),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "call", name="pk_backward_call"),
        comment="One pass of the autograd engine.",
    )
    op.create_table(
        "node_pass",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("call", I4, nullable=False, comment="Which backward call."),
        sa.Column("node", I4, nullable=False, comment="Which node."),
        sa.Column("output_nr", I4, nullable=False, comment="Which forward output the gradient belongs to."),
        sa.Column("position", I4, comment="Order of execution; NULL: reached by the walk, not run."),
        sa.Column("freed", BOOL, nullable=False, comment="This call freed what it saved."),
        sa.Column("hole", BOOL, nullable=False, comment="No gradient arrived."),
        sa.Column("norm", F4, comment="L2 norm of the gradient that arrived; NULL: not measured or not defined."),
        sa.Column("sum", F4, comment="Its sum; NULL likewise."),
        sa.Column("min", F4, comment="Its least element; NULL likewise."),
        sa.Column("max", F4, comment="Its greatest element; NULL likewise."),
        sa.Column("nan", I8, comment="Elements that are NaN; NULL: not measured."),
        sa.Column("inf", I8, comment="Elements that are infinite; NULL: not measured."),
        sa.Column("zeros", I8, comment="Elements that are 0; NULL: not measured."),
        sa.Column("counted", I8, comment="Elements looked at; NULL: not measured."),
        sa.Column("stat_kind", TEXT, comment="exact or sampled; NULL: not measured."),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "call", "node", "output_nr", name="pk_node_pass"),
        comment="One node in one backward call.",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "retention",
        sa.Column("part", I2, nullable=False, comment="Months since 2020-01 of the time in the run's id."),
        sa.Column("run_id", I8, nullable=False, comment="run.id."),
        sa.Column(
            "attempt", I2, nullable=False, comment="The attempt whose rows these are; readers see run.result_attempt's."
        ),
        sa.Column("n", I4, nullable=False, comment="Its number, in order of root and moment."),
        sa.Column("root", I4, nullable=False, comment="The tensor whose graph it is."),
        sa.Column("name", TEXT, comment="Binding that the root had then; NULL: none."),
        sa.Column("call", I4, comment="After which call; NULL: at the end."),
        sa.Column("moment", I4, nullable=False, comment="When."),
        sa.Column(
            "state",
            TEXT,
            nullable=False,
            comment="held; freed; partly-freed; released: nothing was saved, or the nodes are gone.",
        ),
        sa.Column("freed_by", I4, comment="Call that freed it; NULL: none did."),
        sa.Column("held_nodes", I4, nullable=False, comment="Nodes that still held something."),
        sa.Column("held_bytes", I8, nullable=False, comment="How much."),
        sa.Column("since_step", I4, comment="Optimizer steps finished when it began to be held; NULL: not known."),
        sa.Column("site", I4, comment="Where the root was made; NULL: not known."),
        sa.Column(
            "holders", JSON, nullable=False, comment="Paths of Python names that keep it: losses[3], self.hidden."
        ),
        sa.Column("holder_search", TEXT, nullable=False, comment="done, not-asked or truncated."),
        sa.Column("why", TEXT, comment="What is odd about it; NULL: nothing."),
        sa.CheckConstraint("state in ('held', 'freed', 'partly-freed', 'released')", name=op.f("ck_retention_state")),
        sa.PrimaryKeyConstraint("part", "run_id", "attempt", "n", name="pk_retention"),
        comment="What a live root kept alive after a call or at the end.",
    )
    op.create_index("retention_root", "retention", ["part", "run_id", "attempt", "root"])
