"""Rows that were written without numbers since their tensor lies on another device: written again once those are here.

Snapshot(tensor=3, moment=7, value=None)          written when the statement ended
Snapshot(tensor=3, moment=7, value=Statistics())  written when the step ended; it replaces the first one
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import torch

from backprobe.capture.torch_access.device_transfer import Values
from backprobe.capture.torch_access.tensor_memory import dtype_name
from backprobe.capture.torch_access.tensor_statistics import of_values
from backprobe.record import NodePass, SmallValue, Snapshot
from backprobe.record.state_flags import NAMES, by_name

if TYPE_CHECKING:
    from backprobe.capture.output.writer import Writer

Came = tuple[int, int] | None
"""The backward call and the node of a leaf."""

_STATISTICS: Final = ("value", "grad_stats")
_OTHERS: Final = tuple(name for name in Snapshot.__struct_fields__ if name not in (*NAMES, *_STATISTICS))


def complete_snapshot(
    writer: Writer, row: Snapshot, tensor: torch.Tensor | None, gradient: torch.Tensor | None, *came: Came
) -> None:
    """Complete a written snapshot with what lies on another device, after the next transfer.

    Args:
        came: Of the tensor and of the gradient: where the same values reached a node, if they are known to.
    """
    rows = [row]
    value_came, grad_came = came or (None, None)
    if tensor is not None and not tensor.is_cpu:
        then = partial(_complete, writer, rows, "value")
        if value_came is None or not writer.values.read_arrived(*value_came, then):
            writer.values.read(tensor, (row.tensor, row.version), then)
    if gradient is not None and not gradient.is_cpu:
        then = partial(_complete, writer, rows, "grad")
        if grad_came is None or not writer.values.read_arrived(*grad_came, then):
            identity = None if row.grad_id is None else (row.grad_id, row.grad_version)
            writer.values.read(gradient, identity, then)


def complete_snapshot_of(
    writer: Writer, facts: tuple[Any, ...], tensor: Any, gradient: Any, value_came: Came, grad_came: Came
) -> None:
    """Complete a snapshot of the compiled core, which gives the flags and the other fields but the statistics."""
    flags, *others = facts
    row = Snapshot(**by_name(flags), **dict(zip(_OTHERS, others, strict=True)))
    complete_snapshot(writer, row, tensor, gradient, value_came, grad_came)


def _complete(writer: Writer, rows: list[Snapshot], of: Any, values: Values) -> None:
    """Values of a snapshot are here: its row is written again, and the elements if they are few."""
    found = of_values(values, writer.caps)
    row = rows[0]
    row = msgspec.structs.replace(row, **{"value" if of == "value" else "grad_stats": found})
    rows[0] = row
    if found is not None:
        writer.add("snapshots", row)
    if values.raw is not None:
        _write_elements(writer, row.tensor, row.moment, of, values)


def complete_pass(writer: Writer, facts: tuple[Any, ...], tensor: int, moment: int) -> None:
    """Complete the written row of a gradient on another device with its values, after the next transfer.

    Args:
        facts: The first five fields of the row. tensor: Which tensor of the record it is the gradient of, or -1.
    """
    call, node, output_nr, position, freed = facts

    def then(values: Values) -> None:
        found = of_values(values, writer.caps)
        row = NodePass(
            call=call, node=node, output_nr=output_nr, position=position, freed=freed, grad_output=found
        )  # fmt: skip
        if found is not None:
            writer.add("node_passes", row)
        if tensor >= 0 and values.raw is not None:
            _write_elements(writer, tensor, moment, "arrived", values)

    writer.values.take_arrived(call, node, output_nr, then)


def _write_elements(writer: Writer, tensor: int, moment: int, of: Any, values: Values) -> None:
    """Keep the elements of a small tensor."""
    row = SmallValue(
        tensor=tensor, moment=moment, of=of, dtype=dtype_name(values.dtype), shape=values.shape,
        elements=values.raw or b"",
    )  # fmt: skip
    writer.add("small_values", row)
