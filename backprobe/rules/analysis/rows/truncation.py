"""The record as it stood at a moment: what was written later is left out, so that a question is answered for then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record

_DATED: Final = {
    "moments": "moment",
    "tensors": "moment",
    "nodes": "first_seen",
    "bindings": "moment",
    "snapshots": "moment",
    "small_values": "moment",
    "grad_reads": "moment",
    "notes": "moment",
    "optimizers": "moment",
    "optimizer_events": "moment",
    "backward_calls": "moment_before",
    "leaf_grads": "moment",
    "inplace_events": "moment",
    "retentions": "moment",
    "raised": "moment",
    "warned": "moment",
    "truncations": "moment",
    "hooks": "moment",
    "modes": "moment",
    "growth": "moment",
}
"""Tables whose rows have a moment; a row with None there belongs to every time."""

_OF_NODE: Final = ("tensor_nodes", "edges", "saved", "node_passes")


def record_at(record: Record, moment: int) -> Record:
    """The rows up to and at a moment. A call that was not over then reads as running."""
    tables: dict[str, Any] = {
        table: tuple(row for row in getattr(record, table) if (at := getattr(row, field)) is None or at <= moment)
        for table, field in _DATED.items()
    }
    nodes = {row.node for row in tables["nodes"]}
    calls = {row.call for row in tables["backward_calls"]}
    tensors = {row.tensor for row in tables["tensors"]}
    for table in _OF_NODE:
        tables[table] = tuple(row for row in getattr(record, table) if row.node in nodes)
    tables["tensor_nodes"] = tuple(row for row in tables["tensor_nodes"] if row.tensor in tensors)
    tables["node_passes"] = tuple(row for row in tables["node_passes"] if row.call in calls)
    tables["backward_calls"] = tuple(_then(row, moment) for row in tables["backward_calls"])
    return msgspec.structs.replace(record, **tables)


def _then(call: BackwardCall, moment: int) -> BackwardCall:
    if call.moment_after is not None and call.moment_after <= moment:
        return call
    return msgspec.structs.replace(call, moment_after=None, outcome="running", returned=None, exception=None)
