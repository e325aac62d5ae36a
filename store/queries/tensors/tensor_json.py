"""A page of tensors as JSON, straight from the rows.

It says what `as_json(tensors(...))` says, and is 2,400 fields that are looked at once each: no value is made of a
tensor only to be taken apart again. A test holds the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backprobe.record.state_flags import by_name
from store.database.session import Transaction
from store.queries.json_values import as_json
from store.queries.tensors.mentions import load_mentions
from store.queries.tensors.tensor_pages import found_tensors
from store.runs.model import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldPage:
    """A page of plain JSON objects; `next`: the `after` of the next page, None at the end."""

    items: Sequence[dict[str, Any]]
    next: int | None


def tensors_told(transaction: Transaction, run: RunRow, **asked: Any) -> ToldPage:
    """Tensors by their last state, as the API tells them.

    Args:
        transaction: To read by.
        run: Whose tensors.
        asked: As of `found_tensors`.
    """
    rows, following = found_tensors(transaction, run, **asked)
    names, findings = load_mentions(transaction, run, [row[0] for row in rows])
    return ToldPage(items=[_tensor_to_json(row, names, findings) for row in rows], next=following)


def _tensor_to_json(row: Sequence[Any], names: Any, findings: Any) -> dict[str, Any]:
    (
        tensor, name, fqn, role, class_, shape, dtype, device, numel, size_bytes, line, storage,
        view_of, created_by, created_how, proof, died, last_moment, grad_fn, version, grad,
        held_bytes, why_none, why_line, why_call, why_text, grad_norm, value_norm, nonfinite, grad_ever, path,
        last_kind, *flags,
    ) = row  # fmt: skip
    return {
        "tensor": tensor,
        "name": name,
        "fqn": fqn,
        "role": role,
        "class": class_,
        "shape": shape,
        "dtype": dtype,
        "device": device,
        "numel": numel,
        "bytes": size_bytes,
        "line": line,
        "path": path,
        "storage": storage,
        "view_of": view_of,
        "created": {"by": created_by, "how": created_how, "proof": proof},
        "died": died,
        "state": None
        if last_moment is None
        else {
            "moment": last_moment,
            "kind": last_kind,
            **by_name(flags),
            "grad_fn": grad_fn,
            "version": version,
            "grad": grad,
            "held_bytes": held_bytes,
        },
        "why_none": None
        if why_none is None
        else {"verdict": why_none, "line": why_line, "backward_call": why_call, "text": why_text or ""},
        "grad_norm": _number(grad_norm),
        "value_norm": _number(value_norm),
        "nonfinite": nonfinite,
        "grad_ever": grad_ever,
        "bindings": names[tensor],
        "findings": findings[tensor],
    }


def _number(value: float | None) -> float | str | None:
    return value if value is None or math.isfinite(value) else as_json(value)
