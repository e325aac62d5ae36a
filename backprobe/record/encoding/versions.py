"""Older versions of the format: what is done so that this code can work with what they left.

A version only adds: tables, fields at the ends of rows that may be missing, words to closed lists. So the typed decoder
reads every older stream as it is, and only the header says which facts could not be in it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from backprobe.record.integrity import BadRecord
from backprobe.record.record import SCHEMA_VERSION, Header
from backprobe.record.state_flags import STATE_FLAGS

OLDEST: Final = 1


def upgrade_header(header: Header) -> Header:
    """Return the header as this version has it.

    Raises:
        BadRecord: a newer Backprobe wrote it, or it names no version at all.
    """
    version = header.schema_version
    if not OLDEST <= version <= SCHEMA_VERSION:
        raise BadRecord(
            "unknown-version",
            f"schema version {version}; this Backprobe reads versions {OLDEST} to {SCHEMA_VERSION}"
            + (": upgrade it" if version > SCHEMA_VERSION else ""),
        )
    if version == SCHEMA_VERSION:
        return header
    return msgspec.structs.replace(header, schema_version=SCHEMA_VERSION, first_version=version)


_NAMED: Final[dict[int, frozenset[str]]] = {
    2: frozenset(
        {
            "grad_inputs",
            "growth",
            "histograms",
            "hooks",
            "modes",
            "origins",
            "steps",
            "streams",
            "watched_calls",
            "backward_calls.returned_grads",
            "nodes.candidates",
            "nodes.custom_site",
            "optimizer_events.cls",
            "optimizer_events.found_inf",
            "optimizer_events.learning_rates",
            "optimizer_events.limit",
            "optimizer_events.norm_type",
            "optimizer_events.scale_after",
            "optimizer_events.scale_before",
            "optimizer_events.skipped",
            "optimizer_events.total_norm",
            "raised.family",
            "raised.node",
            "retentions.since_step",
            "warned.family",
            "header.first_version",
            "environment.allow_tf32",
            "environment.cpu_capability",
            "environment.cuda",
            "environment.cudnn",
            "environment.cudnn_benchmark",
            "environment.device_bytes",
            "environment.interop_threads",
            "environment.matmul_precision",
            "environment.rocm",
            "environment.sampling",
            "environment.seeds",
        }
    ),
    3: frozenset({"operations"}),
    4: frozenset({"gradient_checks"}),
    5: frozenset({"stacks", "moments.stack", "optimizer_events.unchanged"}),
}


def _flags_of(version: int) -> frozenset[str]:
    return frozenset(f"snapshots.{flag.name}" for flag in STATE_FLAGS if flag.since == version)


ADDED: Final[dict[int, frozenset[str]]] = {
    version: _NAMED.get(version, frozenset()) | _flags_of(version) for version in range(OLDEST + 1, SCHEMA_VERSION + 1)
}
"""Version -> the tables and fields that came with it; what is not named came with the oldest one."""


def since(table: str, field: str | None = None) -> int:
    """Return the version that added a table, or a field of one."""
    names = {table} if field is None else {table, f"{table}.{field}"}
    return max((version for version, added in ADDED.items() if names & added), default=OLDEST)


TIERS: Final[dict[str, str]] = {
    "tensor_nodes": "grad",
    "nodes": "grad",
    "edges": "grad",
    "saved": "grad",
    "node_passes": "grad",
    "leaf_grads": "grad",
    "retentions": "grad",
    "growth": "grad",
    "small_values": "full",
    "grad_inputs": "none yet",
    "histograms": "none yet",
    "origins": "deep",
    "snapshots.value": "full",
    "snapshots.grad_stats": "full",
    "node_passes.grad_output": "full",
    "backward_calls.returned_grads": "full",
}
"""Table or field -> the lowest tier that fills it; what is not named: state."""


def tier(table: str, field: str | None = None) -> str:
    """Return the lowest tier that fills a table, or a field of one."""
    return TIERS.get(f"{table}.{field}", TIERS.get(table, "state"))
