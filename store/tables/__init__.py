"""Every table of the database; each table and column carries its comment. Migrations are made from these."""

from store.tables.asked import grad_input, histogram, mode, operation, origin, step, watched_call
from store.tables.findings import finding
from store.tables.graph import backward_call, edge, node, node_pass, retention, saved
from store.tables.key import KEY
from store.tables.metadata import METADATA
from store.tables.program import module, module_call, moment, record, site
from store.tables.runs import run, run_attempt, run_event, worker_node
from store.tables.snapshots import snapshot_chunk
from store.tables.tensors import (
    binding,
    inplace_event,
    leaf_grad,
    optimizer,
    optimizer_event,
    small_value,
    tensor,
)
from store.tables.types import SECONDS, Now, Time
from store.tables.who import project, snippet, snippet_file, tenant

__all__ = [
    "KEY",
    "METADATA",
    "SECONDS",
    "Now",
    "Time",
    "backward_call",
    "binding",
    "edge",
    "finding",
    "grad_input",
    "histogram",
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
    "project",
    "record",
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
    "step",
    "tenant",
    "tensor",
    "watched_call",
    "worker_node",
]
