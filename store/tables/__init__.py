"""Every table of the database; each table and column carries its comment. Migrations are made from these."""

from store.tables.audits import audit, audit_cell, audit_item, audit_verdict, policy
from store.tables.base.metadata import METADATA
from store.tables.base.record_key import KEY
from store.tables.base.types import SECONDS, Moved, Now, Time
from store.tables.findings import finding, finding_group, finding_group_alias, finding_group_day
from store.tables.graph import backward_call, edge, node, node_pass, retention, saved
from store.tables.interventions import grad_input, histogram, mode, operation, origin, step, watched_call
from store.tables.keys import api_key, audit_log, deprecated_use, ended_login, idempotency
from store.tables.owners import project, snippet, snippet_file, tenant
from store.tables.program import module, module_call, moment, record, site
from store.tables.recorders import frame, recorder
from store.tables.runs import run, run_attempt, run_event, worker_node
from store.tables.snapshot_view import postgresql_view, sqlite_view
from store.tables.snapshots import snapshot_chunk
from store.tables.storage_usage import stored_bytes
from store.tables.tensors import (
    binding,
    inplace_event,
    leaf_grad,
    optimizer,
    optimizer_event,
    small_value,
    tensor,
)
from store.tables.webhooks import delivery, delivery_try, outbox, webhook

__all__ = [
    "KEY",
    "METADATA",
    "SECONDS",
    "Moved",
    "Now",
    "Time",
    "api_key",
    "audit",
    "audit_cell",
    "audit_item",
    "audit_log",
    "audit_verdict",
    "backward_call",
    "binding",
    "delivery",
    "delivery_try",
    "deprecated_use",
    "edge",
    "ended_login",
    "finding",
    "finding_group",
    "finding_group_alias",
    "finding_group_day",
    "frame",
    "grad_input",
    "histogram",
    "idempotency",
    "inplace_event",
    "leaf_grad",
    "mode",
    "module",
    "module_call",
    "moment",
    "node",
    "node_pass",
    "operation",
    "optimizer",
    "optimizer_event",
    "origin",
    "outbox",
    "policy",
    "postgresql_view",
    "project",
    "record",
    "recorder",
    "retention",
    "run",
    "run_attempt",
    "run_event",
    "saved",
    "site",
    "small_value",
    "snapshot_chunk",
    "snippet",
    "snippet_file",
    "sqlite_view",
    "step",
    "stored_bytes",
    "tenant",
    "tensor",
    "watched_call",
    "webhook",
    "worker_node",
]
