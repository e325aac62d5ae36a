"""Who may ask, and what was asked: API keys, idempotency keys, the audit log, operations that will go, ended logins."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import event

from store.tables.base.metadata import METADATA
from store.tables.base.types import blob, i2, i8, identity, is_one_of, json, public_id, refers, text, time

api_key: Final = sa.Table(
    "api_key",
    METADATA,
    identity(),
    public_id("key"),
    refers("tenant_id", "tenant", "Whose it is."),
    refers("project_id", "project", "It opens this project only; NULL: all of the tenant's.", null=True),
    text("name", "For people."),
    text("prefix", "The part of the key that is shown, and by which it is found."),
    blob("hash", "HMAC-SHA-256 of the whole key under the server's secret; the key itself is nowhere."),
    json("scopes", "What it allows: read, runs:write, ..., admin."),
    text("created_by", "The actor that made it."),
    time("created_at", "When it was made."),
    time("expires_at", "From then on it opens nothing; NULL: it does not expire.", null=True),
    time("last_used_at", "When it last opened something, to the minute; NULL: never.", null=True),
    time("revoked_at", "When it was taken back; NULL: it was not.", null=True),
    sa.UniqueConstraint("prefix"),
    comment="A key to the API.",
)
sa.Index("api_key_of_tenant", api_key.c.tenant_id, api_key.c.id.desc())

idempotency: Final = sa.Table(
    "idempotency",
    METADATA,
    refers("tenant_id", "tenant", "Whose request."),
    text("key", "The caller's Idempotency-Key."),
    blob("request_hash", "Over method, path and body: the same key with another request is refused."),
    text("state", "in-flight: not answered yet; done: the answer is here."),
    refers("run_id", "run", "The run that it made, which is shown as it now is; NULL: none.", null=True),
    i2("status", "HTTP status of the answer; NULL: in flight.", null=True),
    json("headers", "Headers of the answer worth repeating; NULL: in flight.", null=True),
    blob("body", "Body of the answer; NULL: in flight, or the run is the answer.", null=True),
    time("created_at", "When it first came."),
    time("expires_at", "From then on the key is free again."),
    is_one_of("state", ("in-flight", "done")),
    sa.CheckConstraint("(state = 'done') = (status is not null)", name="answered"),
    sa.PrimaryKeyConstraint("tenant_id", "key"),
    comment="A request that must not take effect twice, and its answer.",
)
sa.Index("idempotency_expires", idempotency.c.expires_at)

audit_log: Final = sa.Table(
    "audit_log",
    METADATA,
    identity(),
    time("at", "When."),
    refers("tenant_id", "tenant", "Whose affair; NULL: the operator's.", null=True),
    text("actor", "Who: key:..., user:... or local."),
    text("action", "What: run.submit, key.create, ..."),
    text("object", "Public id of what it was done to."),
    text("request_id", "Of the request."),
    text("address", "Where the request came from; NULL: not over the network.", null=True),
    json("detail", "More, never content; NULL: nothing.", null=True),
    comment="Every write that somebody asked for. A trigger refuses changes and deletions.",
)
sa.Index("audit_log_of_tenant", audit_log.c.tenant_id, audit_log.c.id.desc())

SQLITE_LOG: Final = tuple(
    f"CREATE TRIGGER audit_log_no_{word} BEFORE {word.upper()} ON audit_log"
    "\nBEGIN SELECT RAISE(ABORT, 'audit_log: rows are only added'); END"
    for word in ("update", "delete")
)
POSTGRESQL_LOG: Final = (
    """CREATE FUNCTION audit_log_stays() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'audit_log: rows are only added' USING ERRCODE = 'check_violation';
END $body$""",
    """CREATE TRIGGER audit_log_stays BEFORE UPDATE OR DELETE ON audit_log
FOR EACH ROW EXECUTE FUNCTION audit_log_stays()""",
)
for _statement in SQLITE_LOG:
    event.listen(audit_log, "after_create", sa.DDL(_statement).execute_if(dialect="sqlite"))
for _statement in POSTGRESQL_LOG:
    event.listen(audit_log, "after_create", sa.DDL(_statement).execute_if(dialect="postgresql"))

deprecated_use: Final = sa.Table(
    "deprecated_use",
    METADATA,
    refers("tenant_id", "tenant", "Whose caller."),
    text("actor", "Who asked: key:..., user:... or local."),
    text("operation", "What for: GET /v1/things/<thing>."),
    i8("times", "How often."),
    time("first_at", "When it was first asked for."),
    time("last_at", "When it was last asked for."),
    sa.PrimaryKeyConstraint("tenant_id", "actor", "operation"),
    comment="Who still uses an operation of the API that will go.",
)

ended_login: Final = sa.Table(
    "ended_login",
    METADATA,
    text("login", "The random name in its cookie."),
    text("actor", "Whose it was: user:..."),
    time("ended_at", "When that person logged out."),
    sa.PrimaryKeyConstraint("login"),
    comment="A login whose cookie is valid by its signature, and opens nothing any more.",
)
sa.Index("ended_login_at", ended_login.c.ended_at)
