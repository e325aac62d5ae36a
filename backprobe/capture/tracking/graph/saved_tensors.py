"""What a node holds for backward, read without unpacking it.

Only `_raw_saved_*` is read: `_saved_*` unpacks, which runs the user's hooks and, under a checkpoint, the forward again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from backprobe.capture.output.text import class_name, name
from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.tensor_memory import dtype_name
from backprobe.capture.torch_access.torch_internals import is_answered_by_user, is_functorch_wrapped, storage_of
from backprobe.capture.tracking.graph.nodes import NodeFacts
from backprobe.capture.tracking.tensors.tensor_registry import Tensors, TrackedTensor
from backprobe.record import Saved

_PREFIX = "_raw_saved_"


class SavedTensors:
    """Writes down what nodes hold."""

    def __init__(self, writer: Writer, tensors: Tensors) -> None:
        self._writer, self._tensors = writer, tensors
        self._attributes: dict[type, tuple[str, ...]] = {}

    def describe(self, facts: NodeFacts, node: Any) -> None:
        """Count what a node that was just met holds, and write one row for each."""
        total = 0
        for label, held in self._list_saved(node):
            row, address, size = self._row(facts, label, held)
            if row is None:
                continue
            self._writer.add("saved", row)
            facts.saves += 1
            if address is not None and address not in facts.storages:
                facts.storages[address] = size
                total += size
        facts.row = _with_bytes(facts.row, total)

    def holds(self, node: Any) -> bool:
        """Return whether a node holds a saved tensor now."""
        return any(held.data is not None for _, held in self._list_saved(node))

    def _list_saved(self, node: Any) -> Iterator[tuple[str, Any]]:
        """Every saved tensor of a node with torch's name for it."""
        kind = type(node)
        names = self._attributes.get(kind)
        if names is None:
            names = self._attributes[kind] = tuple(a for a in dir(kind) if a.startswith(_PREFIX))
        for attribute in names:
            try:
                held = getattr(node, attribute)
            except RuntimeError:
                continue  # a custom function's saved tensors raise once they were freed
            label = attribute.removeprefix(_PREFIX)
            if isinstance(held, (tuple, list)):
                yield from ((f"{label}[{index}]", tensor) for index, tensor in enumerate(held) if tensor is not None)
            elif held is not None:
                yield label, held

    def _row(self, facts: NodeFacts, label: str, held: Any) -> tuple[Saved | None, int | None, int]:
        content = held.data
        if content is None:
            return None, None, 0
        if not isinstance(content, torch.Tensor) or is_functorch_wrapped(content) or is_answered_by_user(content):
            row = Saved(node=facts.number, n=facts.saves, name=name(label), held_by=class_name(content))
            return row, None, 0
        address, size = storage_of(content) or (None, None)
        known = self._find_tensor(content, address)
        version = None if known is None or facts.row.seq is None else known.version_at(facts.row.seq)
        row = Saved(
            node=facts.number,
            n=facts.saves,
            name=name(label),
            tensor=None if known is None else known.number,
            storage=None if address is None else self._tensors.ids.storage_number(address),
            size_bytes=size,
            shape=() if content.is_nested else tuple(int(s) for s in content.shape),
            dtype=dtype_name(content.dtype),
            version=version,
            proof="unknown" if version is None else "range",
        )
        return row, address, size or 0

    def _find_tensor(self, content: torch.Tensor, address: int | None) -> TrackedTensor | None:
        """Find the record's tensor that is held: the object itself, else one of its memory and shape (an output)."""
        known = self._tensors.find(content)
        if known is not None or address is None or content.is_nested:
            return known
        for number in self._tensors.ids.holders(address):
            other = self._tensors.live.get(number)
            row = None if other is None else other.row
            if (
                row is not None
                and row.shape == tuple(content.shape)
                and row.storage_offset == content.storage_offset()
                and row.stride == tuple(content.stride())
                and row.created_by == "op"
            ):
                return other
        return None


def _with_bytes(row: Any, total: int) -> Any:
    return msgspec.structs.replace(row, saved_bytes=total)
