"""References inside a record: each points at a row that is there. Rules and the store rely on it."""

from __future__ import annotations

from typing import Any, Final

from backprobe.record.record import Record
from backprobe.record.rows.values import MOST_ELEMENTS, itemsize

REFERENCES: Final[dict[str, dict[str, str]]] = {
    "sites": {"source": "sources"},
    "stacks": {"site": "sites", "parent": "stacks"},
    "modules": {"site": "sites"},
    "module_calls": {"module": "modules", "parent": "module_calls", "site": "sites"},
    "moments": {"site": "sites", "module_call": "module_calls", "thread": "threads", "stack": "stacks"},
    "tensors": {"site": "sites", "moment": "moments", "died": "moments", "view_of": "tensors"},
    "nodes": {
        "born_call": "backward_calls",
        "freed_by": "backward_calls",
        "thread": "threads",
        "site": "sites",
        "module_call": "module_calls",
        "first_seen": "moments",
        "died": "moments",
        "variable": "tensors",
        "custom_site": "sites",
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
    "backward_calls": {
        "parent": "backward_calls",
        "site": "sites",
        "moment_before": "moments",
        "moment_after": "moments",
        "thread": "threads",
    },
    "node_passes": {"call": "backward_calls", "node": "nodes"},
    "leaf_grads": {"tensor": "tensors", "moment": "moments", "site": "sites", "call": "backward_calls"},
    "inplace_events": {"tensor": "tensors", "moment": "moments", "site": "sites", "optimizer": "optimizers"},
    "retentions": {
        "root": "tensors",
        "moment": "moments",
        "site": "sites",
        "call": "backward_calls",
        "freed_by": "backward_calls",
    },
    "grad_inputs": {"call": "backward_calls", "node": "nodes"},
    "growth": {"call": "backward_calls", "moment": "moments", "site": "sites"},
    "histograms": {"tensor": "tensors", "moment": "moments"},
    "hooks": {
        "tensor": "tensors",
        "module": "modules",
        "optimizer": "optimizers",
        "callable_site": "sites",
        "site": "sites",
        "moment": "moments",
        "removed": "moments",
    },
    "modes": {"thread": "threads", "site": "sites", "moment": "moments", "until": "moments", "module": "modules"},
    "watched_calls": {"moment": "moments", "site": "sites", "thread": "threads", "module_call": "module_calls"},
    "operations": {"statement": "sites", "moment": "moments", "thread": "threads", "tensor": "tensors"},
    "steps": {
        "first_moment": "moments",
        "last_moment": "moments",
        "site": "sites",
        "loss_tensor": "tensors",
        "tensor": "tensors",
    },
    "origins": {"site": "sites", "moment": "moments", "call": "backward_calls", "tensor": "tensors"},
    "gradient_checks": {"tensor": "tensors", "optimizer": "optimizers", "moment": "moments", "site": "sites"},
    "raised": {"site": "sites", "moment": "moments", "call": "backward_calls", "node": "nodes"},
    "warned": {"site": "sites", "moment": "moments"},
    "truncations": {"moment": "moments"},
}
"""Table -> field -> the table whose key it names."""

LISTED: Final[dict[str, dict[str, tuple[str | None, str]]]] = {
    "bindings": {"parents": (None, "tensors")},
    "nodes": {"candidates": (None, "sites")},
    "watched_calls": {"inputs": ("tensor", "tensors"), "outputs": (None, "tensors")},
    "operations": {"operands": (None, "tensors")},
    "optimizers": {"tensors": ("tensor", "tensors")},
    "optimizer_events": {"unchanged": (None, "tensors")},
    "gradient_checks": {"tensors": (None, "tensors"), "cuts": ("site", "sites")},
    "backward_calls": {"roots": ("tensor", "tensors"), "inputs": ("tensor", "tensors")},
}
"""Table -> field that holds many -> the part of each that names a row (None: it is the number), and its table.

Not checked, since a stream that stops early may hold one without the other: `modules.parameters` and `.buffers`, whose
tensors come later, `backward_calls.exception`, `operations.inner`, and `grad_id` and its like, which number gradients
that have no row.
"""

_KEY: Final[dict[str, str]] = {
    "sources": "source",
    "sites": "site",
    "stacks": "stack",
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
    _check_listed(record, known)
    _check_values(record)


def _check_listed(record: Record, known: dict[str, set[int]]) -> None:
    for table, fields in LISTED.items():
        for field, (part, target) in fields.items():
            ids = known[target]
            for row in getattr(record, table):
                for entry in getattr(row, field) or ():
                    value = entry if part is None else getattr(entry, part)
                    if value is not None and value not in ids:
                        raise BadRecord("dangling-reference", f"{table}.{field} = {value}: no such row in {target}")


def _check_values(record: Record) -> None:
    for row in record.small_values:
        size = itemsize(row.dtype)
        count = outline = 1
        for dim in row.shape:
            count *= dim
            outline *= max(dim, 1)  # of (2**40, 0) the nested list alone would fill the memory
        bad_shape = outline > MOST_ELEMENTS or min(row.shape, default=0) < 0
        if size is None or bad_shape or len(row.elements) != count * size:
            raise BadRecord("bad-elements", f"small_values: {len(row.elements)} bytes for {row.dtype} {row.shape}")
