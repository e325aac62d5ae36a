"""References inside a record: each points at a row that is there. Rules and the store rely on it."""

from __future__ import annotations

from typing import Any, Final

from backprobe.record.record import Record

REFERENCES: Final[dict[str, dict[str, str]]] = {
    "sites": {"source": "sources"},
    "modules": {"site": "sites"},
    "module_calls": {"module": "modules", "parent": "module_calls", "site": "sites"},
    "moments": {"site": "sites", "module_call": "module_calls", "thread": "threads"},
    "tensors": {"site": "sites", "moment": "moments", "died": "moments", "view_of": "tensors"},
    "nodes": {
        "thread": "threads",
        "site": "sites",
        "module_call": "module_calls",
        "first_seen": "moments",
        "died": "moments",
        "variable": "tensors",
    },
    "tensor_nodes": {"tensor": "tensors", "node": "nodes"},
    "edges": {"node": "nodes", "to_node": "nodes"},
    "saved": {"node": "nodes", "tensor": "tensors"},
    "bindings": {"tensor": "tensors", "site": "sites", "moment": "moments", "replaces": "tensors"},
    "snapshots": {"tensor": "tensors", "moment": "moments"},
    "small_values": {"tensor": "tensors", "moment": "moments"},
    "grad_reads": {"tensor": "tensors", "site": "sites", "moment": "moments"},
    "notes": {"tensor": "tensors", "moment": "moments"},
    "optimizers": {"site": "sites", "moment": "moments"},
    "optimizer_events": {"optimizer": "optimizers", "site": "sites", "moment": "moments"},
    "backward_calls": {"site": "sites", "moment_before": "moments", "moment_after": "moments", "thread": "threads"},
    "node_passes": {"call": "backward_calls", "node": "nodes"},
    "leaf_grads": {"tensor": "tensors", "moment": "moments", "site": "sites", "call": "backward_calls"},
    "inplace_events": {"tensor": "tensors", "moment": "moments", "site": "sites", "optimizer": "optimizers"},
    "retentions": {"root": "tensors", "moment": "moments", "site": "sites", "call": "backward_calls"},
    "raised": {"site": "sites", "moment": "moments", "call": "backward_calls"},
    "warned": {"site": "sites", "moment": "moments"},
    "truncations": {"moment": "moments"},
}
"""Table -> field -> the table whose key it names."""

_KEY: Final[dict[str, str]] = {
    "sources": "source",
    "sites": "site",
    "threads": "thread",
    "modules": "module",
    "module_calls": "module_call",
    "moments": "moment",
    "tensors": "tensor",
    "nodes": "node",
    "optimizers": "optimizer",
    "backward_calls": "call",
}


class BadRecord(ValueError):
    """The bytes are not a valid record; `code` says at what they failed, in kebab case."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def check(record: Record) -> None:
    """Refuse a record whose rows refer to rows that are not there.

    Raises:
        BadRecord: names the table, the field and the number.
    """
    known: dict[str, set[int]] = {
        table: {getattr(row, key) for row in getattr(record, table)} for table, key in _KEY.items()
    }
    for table, fields in REFERENCES.items():
        rows: tuple[Any, ...] = getattr(record, table)
        for field, target in fields.items():
            ids = known[target]
            for row in rows:
                value = getattr(row, field)
                if value is not None and value not in ids:
                    raise BadRecord("dangling-reference", f"{table}.{field} = {value}: no such row in {target}")
    _check_values(record)


def _check_values(record: Record) -> None:
    from backprobe.record.values import itemsize

    for row in record.small_values:
        size = itemsize(row.dtype)
        count = 1
        for dim in row.shape:
            count *= dim
        if size is None or count > 64 or len(row.elements) != count * size:
            raise BadRecord("bad-elements", f"small_values: {len(row.elements)} bytes for {row.dtype} {row.shape}")
