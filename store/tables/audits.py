"""Audits: many runs judged against a policy; and the policies."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.tables.base.metadata import METADATA
from store.tables.base.types import flag, i4, identity, is_one_of, json, public_id, refers, text, time

policy: Final = sa.Table(
    "policy",
    METADATA,
    identity(),
    text("public_id", "What the API shows: pol_ and a UUIDv7 in base32, the same for all its revisions."),
    refers("tenant_id", "tenant", "Whose it is."),
    text("name", "For people."),
    i4("revision", "Counts from 1; a revision never changes, so an old audit keeps what it was judged by."),
    json("body", "Which rules fail an audit, as in [policy]."),
    text("created_by", "The actor that wrote this revision."),
    time("created_at", "When it was written."),
    sa.UniqueConstraint("public_id", "revision"),
    sa.UniqueConstraint("tenant_id", "name", "revision"),
    comment="One revision of the rules that decide an audit.",
)

audit: Final = sa.Table(
    "audit",
    METADATA,
    identity(),
    public_id("aud"),
    refers("tenant_id", "tenant", "Whose it is."),
    refers("project_id", "project", "Where it belongs."),
    refers("policy_id", "policy", "The revision that it is judged by; NULL: the built-in one.", null=True),
    refers("baseline_id", "audit", "Its findings are known and do not fail this one; NULL: none.", null=True),
    text("name", "For people."),
    text("status", "open: items may still come; running: all are there; judged; canceled."),
    i4("items", "How many items it has."),
    json("labels", "The caller's labels, text by name."),
    text("created_by", "The actor."),
    time("created_at", "When it was accepted."),
    time("finished_at", "When it was judged or canceled; NULL: it is open.", null=True),
    i4("version", "Rises with every change a reader can see: the ETag."),
    is_one_of("status", ("open", "running", "judged", "canceled")),
    comment="A batch of runs judged together.",
)
sa.Index("audit_of_project", audit.c.project_id, audit.c.created_at.desc(), audit.c.id.desc())
_waiting: Final = sa.text("status in ('open', 'running')")
sa.Index("audit_waiting", audit.c.id, postgresql_where=_waiting, sqlite_where=_waiting)

audit_item: Final = sa.Table(
    "audit_item",
    METADATA,
    refers("audit_id", "audit", "Of which audit."),
    i4("n", "Its place, from 0."),
    text(
        "custom_id",
        "The caller's own name for it, unique in the audit; NULL: its line gives none, or one that is taken.",
        null=True,
    ),
    refers("run_id", "run", "Its run; NULL: it was refused.", null=True),
    json("problem", "Why it was refused; NULL: it was not.", null=True),
    flag("ended", "Its run has ended, or it was refused."),
    sa.PrimaryKeyConstraint("audit_id", "n"),
    sa.UniqueConstraint("audit_id", "custom_id"),
    comment="One run of an audit.",
)
sa.Index("audit_item_run", audit_item.c.run_id)
_open: Final = sa.text("not ended")
sa.Index("audit_item_open", audit_item.c.audit_id, postgresql_where=_open, sqlite_where=_open)

audit_verdict: Final = sa.Table(
    "audit_verdict",
    METADATA,
    refers("audit_id", "audit", "Of which audit."),
    text("ruleset", "Digest of the rules that judged it."),
    text("verdict", "passed or failed."),
    json("counts", "Items by verdict, findings new, known and gone."),
    time("judged_at", "When."),
    is_one_of("verdict", ("passed", "failed")),
    sa.PrimaryKeyConstraint("audit_id", "ruleset"),
    comment="What an audit came to, under one set of rules.",
)

audit_cell: Final = sa.Table(
    "audit_cell",
    METADATA,
    refers("audit_id", "audit", "Of which audit."),
    text("ruleset", "As in audit_verdict."),
    i4("n", "Which item."),
    text("rule", "Which rule, kebab case."),
    text("state", "warn, fail or not-run; a pass has no row."),
    i4("findings", "How many findings."),
    i4("known", "How many of them the baseline had."),
    is_one_of("state", ("warn", "fail", "not-run")),
    sa.PrimaryKeyConstraint("audit_id", "ruleset", "n", "rule"),
    comment="One rule's word on one item of an audit.",
)
