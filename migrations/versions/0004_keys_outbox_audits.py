# ruff: noqa: E501 - comments of columns are sentences on one line
"""Keys, idempotency, the audit log; webhooks, outbox, deliveries; audits and policies; groups of findings.

Frozen. It imports nothing of ours. Code of the release before can write to this schema: no table that it knows changes.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
I2, I4, I8 = sa.SmallInteger(), sa.Integer(), sa.BigInteger()
TEXT, BOOL, BYTES = sa.Text(), sa.Boolean(), sa.LargeBinary()
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.String().with_variant(TIMESTAMP(timezone=True, precision=3), "postgresql")

TABLES = (
    "delivery_try",
    "idempotency",
    "frame",
    "finding_group",
    "delivery",
    "audit_verdict",
    "audit_item",
    "audit_cell",
    "webhook",
    "outbox",
    "audit",
    "api_key",
    "policy",
    "audit_log",
)
"""In the order in which they can be dropped."""

SQLITE_LOG = (
    """CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log: rows are only added'); END""",
    """CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
BEGIN SELECT RAISE(ABORT, 'audit_log: rows are only added'); END""",
)
POSTGRESQL_LOG = (
    """CREATE FUNCTION audit_log_stays() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'audit_log: rows are only added' USING ERRCODE = 'check_violation';
END $body$""",
    """CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE ON audit_log
FOR EACH ROW EXECUTE FUNCTION audit_log_stays()""",
)


def upgrade() -> None:
    """Make the tables, and let the audit log only grow."""
    for make in (_keys, _outward, _audits, _groups):
        make()
    for statement in SQLITE_LOG if op.get_bind().dialect.name == "sqlite" else POSTGRESQL_LOG:
        op.execute(sa.text(statement))


def downgrade() -> None:
    """Drop them."""
    op.drop_index("finding_of_group", "finding")
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name != "sqlite":
        op.execute(sa.text("DROP FUNCTION audit_log_stays()"))


def _partial(name: str, table: str, columns: Sequence[Any], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, postgresql_where=condition, sqlite_where=condition)


def _keys() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("public_id", TEXT, nullable=False, comment="What the API shows: key_ and a UUIDv7 in base32, or a fixed word."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_api_key_tenant_id"), nullable=False, comment="Whose it is."),
        sa.Column("project_id", I8, sa.ForeignKey("project.id", name="fk_api_key_project_id"), comment="It opens this project only; NULL: all of the tenant's."),
        sa.Column("name", TEXT, nullable=False, comment="For people."),
        sa.Column("prefix", TEXT, nullable=False, comment="The part of the key that is shown, and by which it is found."),
        sa.Column("hash", BYTES, nullable=False, comment="HMAC-SHA-256 of the whole key under the server's secret; the key itself is nowhere."),
        sa.Column("scopes", JSON, nullable=False, comment="What it allows: read, runs:write, ..., admin."),
        sa.Column("created_by", TEXT, nullable=False, comment="The actor that made it."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was made."),
        sa.Column("expires_at", TIME, comment="From then on it opens nothing; NULL: it does not expire."),
        sa.Column("last_used_at", TIME, comment="When it last opened something, to the minute; NULL: never."),
        sa.Column("revoked_at", TIME, comment="When it was taken back; NULL: it was not."),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sa.UniqueConstraint("prefix", name="uq_api_key_prefix"),
        sa.UniqueConstraint("public_id", name="uq_api_key_public_id"),
        comment="A key to the API.",
    )  # fmt: skip
    op.create_index("api_key_of_tenant", "api_key", ["tenant_id", sa.text("id DESC")])
    op.create_table(
        "idempotency",
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_idempotency_tenant_id"), nullable=False, comment="Whose request."),
        sa.Column("key", TEXT, nullable=False, comment="The caller's Idempotency-Key."),
        sa.Column("request_hash", BYTES, nullable=False, comment="Over method, path and body: the same key with another request is refused."),
        sa.Column("state", TEXT, nullable=False, comment="in-flight: not answered yet; done: the answer is here."),
        sa.Column("run_id", I8, sa.ForeignKey("run.id", name="fk_idempotency_run_id"), comment="The run that it made, which is shown as it now is; NULL: none."),
        sa.Column("status", I2, comment="HTTP status of the answer; NULL: in flight."),
        sa.Column("headers", JSON, comment="Headers of the answer worth repeating; NULL: in flight."),
        sa.Column("body", BYTES, comment="Body of the answer; NULL: in flight, or the run is the answer."),
        sa.Column("created_at", TIME, nullable=False, comment="When it first came."),
        sa.Column("expires_at", TIME, nullable=False, comment="From then on the key is free again."),
        sa.PrimaryKeyConstraint("tenant_id", "key", name="pk_idempotency"),
        sa.CheckConstraint("(state = 'done') = (status is not null)", name=op.f("ck_idempotency_answered")),
        sa.CheckConstraint("state in ('in-flight', 'done')", name=op.f("ck_idempotency_state")),
        comment="A request that must not take effect twice, and its answer.",
    )  # fmt: skip
    op.create_index("idempotency_expires", "idempotency", ["expires_at"])
    op.create_table(
        "audit_log",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("at", TIME, nullable=False, comment="When."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_audit_log_tenant_id"), comment="Whose affair; NULL: the operator's."),
        sa.Column("actor", TEXT, nullable=False, comment="Who: key:..., user:... or local."),
        sa.Column("action", TEXT, nullable=False, comment="What: run.submit, key.create, ..."),
        sa.Column("object", TEXT, nullable=False, comment="Public id of what it was done to."),
        sa.Column("request_id", TEXT, nullable=False, comment="Of the request."),
        sa.Column("address", TEXT, comment="Where the request came from; NULL: not over the network."),
        sa.Column("detail", JSON, comment="More, never content; NULL: nothing."),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
        comment="Every write that somebody asked for. A trigger refuses changes and deletions.",
    )  # fmt: skip
    op.create_index("audit_log_of_tenant", "audit_log", ["tenant_id", sa.text("id DESC")])
    op.create_table(
        "frame",
        sa.Column("run_id", I8, sa.ForeignKey("run.id", name="fk_frame_run_id"), nullable=False, comment="Of which watched run."),
        sa.Column("n", I4, nullable=False, comment="Its number, from 0."),
        sa.Column("sha256", BYTES, nullable=False, comment="Of its bytes: the same number with other bytes is refused."),
        sa.Column("size_bytes", I8, nullable=False, comment="How many bytes."),
        sa.Column("at", TIME, nullable=False, comment="When it came."),
        sa.PrimaryKeyConstraint("run_id", "n", name="pk_frame"),
        comment="A frame that a recorder sent; its rows lie in the record's tables.",
    )  # fmt: skip


def _outward() -> None:
    op.create_table(
        "webhook",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("public_id", TEXT, nullable=False, comment="What the API shows: wh_ and a UUIDv7 in base32, or a fixed word."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_webhook_tenant_id"), nullable=False, comment="Whose it is."),
        sa.Column("project_id", I8, sa.ForeignKey("project.id", name="fk_webhook_project_id"), comment="Events of this project only; NULL: all of the tenant's."),
        sa.Column("url", TEXT, nullable=False, comment="Where events are posted."),
        sa.Column("events", JSON, nullable=False, comment="Kinds that it wants: run.ended, audit.judged, finding.new, finding.returned."),
        sa.Column("secret", BYTES, nullable=False, comment="Signs deliveries; sealed by the service, never in the clear."),
        sa.Column("old_secret", BYTES, comment="Signs them too until old_until; NULL: none."),
        sa.Column("old_until", TIME, comment="When the old secret ends; NULL: there is none."),
        sa.Column("enabled", BOOL, nullable=False, comment="Events go there."),
        sa.Column("disabled_reason", TEXT, comment="Why none go there; NULL: they do, or somebody switched it off."),
        sa.Column("failures", I4, nullable=False, comment="Tries that failed in a row."),
        sa.Column("failing_since", TIME, comment="When the first of these was; NULL: the last one succeeded, or there was none."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was made."),
        sa.Column("version", I4, nullable=False, comment="Rises with every change: the ETag."),
        sa.PrimaryKeyConstraint("id", name="pk_webhook"),
        sa.UniqueConstraint("public_id", name="uq_webhook_public_id"),
        comment="An address that wants to hear of events.",
    )  # fmt: skip
    op.create_index("webhook_of_tenant", "webhook", ["tenant_id", sa.text("id DESC")])
    op.create_table(
        "outbox",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("event_id", TEXT, nullable=False, comment="What receivers tell doubles by: the webhook-id."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_outbox_tenant_id"), nullable=False, comment="Whose event."),
        sa.Column("project_id", I8, sa.ForeignKey("project.id", name="fk_outbox_project_id"), comment="Of which project; NULL: of none."),
        sa.Column("kind", TEXT, nullable=False, comment="run.ended, audit.judged, finding.new or finding.returned."),
        sa.Column("subject", TEXT, nullable=False, comment="Public id of what it is about."),
        sa.Column("body", JSON, nullable=False, comment="What receivers get as data: ids, status and counts."),
        sa.Column("created_at", TIME, nullable=False, comment="When it happened."),
        sa.Column("planned_at", TIME, comment="When its deliveries were made; NULL: not yet."),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("event_id", name="uq_outbox_event_id"),
        comment="An event that is to leave; written in the transaction of what it tells.",
    )  # fmt: skip
    op.create_index("outbox_age", "outbox", ["created_at"])
    _partial("outbox_unplanned", "outbox", ["id"], "planned_at is null")
    op.create_table(
        "delivery",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("public_id", TEXT, nullable=False, comment="What the API shows: dlv_ and a UUIDv7 in base32, or a fixed word."),
        sa.Column("outbox_id", I8, sa.ForeignKey("outbox.id", name="fk_delivery_outbox_id"), nullable=False, comment="Which event."),
        sa.Column("webhook_id", I8, sa.ForeignKey("webhook.id", name="fk_delivery_webhook_id"), nullable=False, comment="Where to."),
        sa.Column("state", TEXT, nullable=False, comment="pending; delivered; dead: given up; canceled: its webhook was switched off."),
        sa.Column("attempts", I2, nullable=False, comment="Tries so far."),
        sa.Column("next_at", TIME, nullable=False, comment="When it is tried next."),
        sa.Column("lease_until", TIME, comment="Till then somebody tries it; NULL: nobody does."),
        sa.PrimaryKeyConstraint("id", name="pk_delivery"),
        sa.CheckConstraint("state in ('pending', 'delivered', 'dead', 'canceled')", name=op.f("ck_delivery_state")),
        sa.UniqueConstraint("outbox_id", "webhook_id", name="uq_delivery_outbox_id_webhook_id"),
        sa.UniqueConstraint("public_id", name="uq_delivery_public_id"),
        comment="One event on its way to one webhook.",
    )  # fmt: skip
    _partial("delivery_due", "delivery", ["next_at"], "state = 'pending'")
    op.create_index("delivery_of_webhook", "delivery", ["webhook_id", sa.text("id DESC")])
    op.create_table(
        "delivery_try",
        sa.Column("delivery_id", I8, sa.ForeignKey("delivery.id", name="fk_delivery_try_delivery_id"), nullable=False, comment="Of which delivery."),
        sa.Column("n", I2, nullable=False, comment="Which try, from 1."),
        sa.Column("at", TIME, nullable=False, comment="When it ended."),
        sa.Column("address", TEXT, nullable=False, comment="The address it went to; empty: none was allowed or found."),
        sa.Column("status", I2, comment="HTTP status of the answer; NULL: there was none."),
        sa.Column("ms", I4, nullable=False, comment="How long it took, in milliseconds."),
        sa.Column("error", TEXT, comment="Why there was no answer; NULL: there was one."),
        sa.Column("answer", TEXT, comment="At most 1 KiB of the answer, a stranger's text; NULL: there was none."),
        sa.PrimaryKeyConstraint("delivery_id", "n", name="pk_delivery_try"),
        comment="One try at a delivery.",
    )  # fmt: skip


def _audits() -> None:
    op.create_table(
        "policy",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("public_id", TEXT, nullable=False, comment="What the API shows: pol_ and a UUIDv7 in base32, the same for all its revisions."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_policy_tenant_id"), nullable=False, comment="Whose it is."),
        sa.Column("name", TEXT, nullable=False, comment="For people."),
        sa.Column("revision", I4, nullable=False, comment="Counts from 1; a revision never changes, so an old audit keeps what it was judged by."),
        sa.Column("body", JSON, nullable=False, comment="Which rules fail an audit, as in [policy]."),
        sa.Column("created_by", TEXT, nullable=False, comment="The actor that wrote this revision."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was written."),
        sa.PrimaryKeyConstraint("id", name="pk_policy"),
        sa.UniqueConstraint("public_id", "revision", name="uq_policy_public_id_revision"),
        sa.UniqueConstraint("tenant_id", "name", "revision", name="uq_policy_tenant_id_name_revision"),
        comment="One revision of the rules that decide an audit.",
    )  # fmt: skip
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("public_id", TEXT, nullable=False, comment="What the API shows: aud_ and a UUIDv7 in base32, or a fixed word."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_audit_tenant_id"), nullable=False, comment="Whose it is."),
        sa.Column("project_id", I8, sa.ForeignKey("project.id", name="fk_audit_project_id"), nullable=False, comment="Where it belongs."),
        sa.Column("policy_id", I8, sa.ForeignKey("policy.id", name="fk_audit_policy_id"), comment="The revision that it is judged by; NULL: the built-in one."),
        sa.Column("baseline_id", I8, sa.ForeignKey("audit.id", name="fk_audit_baseline_id"), comment="Its findings are known and do not fail this one; NULL: none."),
        sa.Column("name", TEXT, nullable=False, comment="For people."),
        sa.Column("status", TEXT, nullable=False, comment="open: items may still come; running: all are there; judged; canceled."),
        sa.Column("items", I4, nullable=False, comment="How many items it has."),
        sa.Column("labels", JSON, nullable=False, comment="The caller's labels, text by name."),
        sa.Column("created_by", TEXT, nullable=False, comment="The actor."),
        sa.Column("created_at", TIME, nullable=False, comment="When it was accepted."),
        sa.Column("finished_at", TIME, comment="When it was judged or canceled; NULL: it is open."),
        sa.Column("version", I4, nullable=False, comment="Rises with every change a reader can see: the ETag."),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sa.CheckConstraint("status in ('open', 'running', 'judged', 'canceled')", name=op.f("ck_audit_status")),
        sa.UniqueConstraint("public_id", name="uq_audit_public_id"),
        comment="A batch of runs judged together.",
    )  # fmt: skip
    op.create_index("audit_of_project", "audit", ["project_id", sa.text("created_at DESC"), sa.text("id DESC")])
    _partial("audit_waiting", "audit", ["id"], "status in ('open', 'running')")
    op.create_table(
        "audit_item",
        sa.Column("audit_id", I8, sa.ForeignKey("audit.id", name="fk_audit_item_audit_id"), nullable=False, comment="Of which audit."),
        sa.Column("n", I4, nullable=False, comment="Its place, from 0."),
        sa.Column("custom_id", TEXT, nullable=False, comment="The caller's own name for it; unique in the audit."),
        sa.Column("run_id", I8, sa.ForeignKey("run.id", name="fk_audit_item_run_id"), comment="Its run; NULL: it was refused."),
        sa.Column("problem", JSON, comment="Why it was refused; NULL: it was not."),
        sa.Column("ended", BOOL, nullable=False, comment="Its run has ended, or it was refused."),
        sa.PrimaryKeyConstraint("audit_id", "n", name="pk_audit_item"),
        sa.UniqueConstraint("audit_id", "custom_id", name="uq_audit_item_audit_id_custom_id"),
        comment="One run of an audit.",
    )  # fmt: skip
    _partial("audit_item_open", "audit_item", ["audit_id"], "not ended")
    op.create_index("audit_item_run", "audit_item", ["run_id"])
    op.create_table(
        "audit_verdict",
        sa.Column("audit_id", I8, sa.ForeignKey("audit.id", name="fk_audit_verdict_audit_id"), nullable=False, comment="Of which audit."),
        sa.Column("ruleset", TEXT, nullable=False, comment="Digest of the rules that judged it."),
        sa.Column("verdict", TEXT, nullable=False, comment="passed or failed."),
        sa.Column("counts", JSON, nullable=False, comment="Items by verdict, findings new, known and gone."),
        sa.Column("judged_at", TIME, nullable=False, comment="When."),
        sa.PrimaryKeyConstraint("audit_id", "ruleset", name="pk_audit_verdict"),
        sa.CheckConstraint("verdict in ('passed', 'failed')", name=op.f("ck_audit_verdict_verdict")),
        comment="What an audit came to, under one set of rules.",
    )  # fmt: skip
    op.create_table(
        "audit_cell",
        sa.Column("audit_id", I8, sa.ForeignKey("audit.id", name="fk_audit_cell_audit_id"), nullable=False, comment="Of which audit."),
        sa.Column("ruleset", TEXT, nullable=False, comment="As in audit_verdict."),
        sa.Column("n", I4, nullable=False, comment="Which item."),
        sa.Column("rule", TEXT, nullable=False, comment="Which rule, kebab case."),
        sa.Column("state", TEXT, nullable=False, comment="warn, fail or not-run; a pass has no row."),
        sa.Column("findings", I4, nullable=False, comment="How many findings."),
        sa.Column("known", I4, nullable=False, comment="How many of them the baseline had."),
        sa.PrimaryKeyConstraint("audit_id", "ruleset", "n", "rule", name="pk_audit_cell"),
        sa.CheckConstraint("state in ('warn', 'fail', 'not-run')", name=op.f("ck_audit_cell_state")),
        comment="One rule's word on one item of an audit.",
    )  # fmt: skip


def _groups() -> None:
    op.create_table(
        "finding_group",
        sa.Column("id", ID, nullable=False, comment="Number of the row; never shown outside."),
        sa.Column("public_id", TEXT, nullable=False, comment="What the API shows: fg_ and a UUIDv7 in base32, or a fixed word."),
        sa.Column("tenant_id", I8, sa.ForeignKey("tenant.id", name="fk_finding_group_tenant_id"), nullable=False, comment="Whose it is."),
        sa.Column("project_id", I8, sa.ForeignKey("project.id", name="fk_finding_group_project_id"), nullable=False, comment="Where it belongs."),
        sa.Column("fingerprint", TEXT, nullable=False, comment="What its findings have in common, finding.fingerprint."),
        sa.Column("rule", TEXT, nullable=False, comment="Name of the rule, kebab case."),
        sa.Column("level", TEXT, nullable=False, comment="Of the finding seen last: error, warning or note."),
        sa.Column("state", TEXT, nullable=False, comment="What people made of it: open, acknowledged, suppressed or fixed."),
        sa.Column("reason", TEXT, comment="Why it has this state; NULL: nobody said."),
        sa.Column("state_by", TEXT, comment="The actor that set the state; NULL: nobody did."),
        sa.Column("state_at", TIME, comment="When the state was set; NULL: never."),
        sa.Column("owner", TEXT, comment="Whose task it is; NULL: nobody's."),
        sa.Column("first_run_id", I8, sa.ForeignKey("run.id", name="fk_finding_group_first_run_id"), nullable=False, comment="The run that showed it first."),
        sa.Column("last_run_id", I8, sa.ForeignKey("run.id", name="fk_finding_group_last_run_id"), nullable=False, comment="The run that showed it last."),
        sa.Column("first_seen_at", TIME, nullable=False, comment="When it was first stored."),
        sa.Column("last_seen_at", TIME, nullable=False, comment="When it was last stored."),
        sa.Column("runs", I4, nullable=False, comment="Runs that showed it."),
        sa.Column("returned", I4, nullable=False, comment="How often it was seen again after it was fixed."),
        sa.Column("path", TEXT, nullable=False, comment="File of the finding seen last, relative POSIX."),
        sa.Column("line", I4, nullable=False, comment="First line of the finding seen last, 1-based."),
        sa.Column("message", TEXT, nullable=False, comment="Of the finding seen last."),
        sa.Column("version", I4, nullable=False, comment="Rises with every change: the ETag."),
        sa.PrimaryKeyConstraint("id", name="pk_finding_group"),
        sa.CheckConstraint("level in ('error', 'warning', 'note')", name=op.f("ck_finding_group_level")),
        sa.CheckConstraint("state in ('open', 'acknowledged', 'suppressed', 'fixed')", name=op.f("ck_finding_group_state")),
        sa.UniqueConstraint("project_id", "fingerprint", name="uq_finding_group_project_id_fingerprint"),
        sa.UniqueConstraint("public_id", name="uq_finding_group_public_id"),
        comment="The same finding over all runs of a project; its findings are those with its fingerprint.",
    )  # fmt: skip
    op.create_index(
        "finding_group_newest", "finding_group", ["project_id", "state", sa.text("last_seen_at DESC"), "id"]
    )
    op.create_index("finding_of_group", "finding", ["project_id", "fingerprint", sa.text("created_at DESC"), "id"])
