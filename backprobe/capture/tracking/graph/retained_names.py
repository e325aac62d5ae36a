"""Which names keep the graphs that are still held: retention rows completed, at the end and once a graph grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import torch

from backprobe.capture.output.text import name
from backprobe.capture.tracking.graph.holders import SECONDS, Finder
from backprobe.record import Retention

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

MOST_ROOTS: Final = 8
"""Roots that are searched for, those that hold most: a pass over the heap costs 15 ms per 165 000 objects."""


def tell_holders(
    recorder: CaptureSession, rows: Sequence[Retention], last: int | None = None, *, seconds: float = SECONDS
) -> None:
    """Write the rows of held graphs again, with the names that keep them.

    Args:
        last: A backward call: graphs that an earlier one freed are asked for too, since their nodes still live.
        seconds: That the search may take.
    """
    held = [row for row in rows if row.state in ("held", "partly-freed") or _is_older(row, last)]
    held.sort(key=lambda row: (-row.held_bytes, -row.held_nodes, row.root))
    asked: list[Retention] = []
    roots: list[torch.Tensor] = []
    for row in held[:MOST_ROOTS]:
        known = recorder.tensors.live.get(row.root)
        tensor = None if known is None else known.ref()
        if tensor is not None:
            asked.append(row)
            roots.append(tensor)
            del tensor
    if not roots:
        return
    found = Finder(recorder.sites.is_user_file, recorder.main, seconds).find(roots)
    roots.clear()
    for row, holders in zip(asked, found, strict=True):
        paths = (*_as_gradient(recorder, row.root), *holders.paths)
        recorder.writer.add("retentions", msgspec.structs.replace(row, holders=paths, holder_search=holders.search))


def _is_older(row: Retention, last: int | None) -> bool:
    return last is not None and row.freed_by is not None and row.freed_by < last


def _as_gradient(recorder: CaptureSession, root: int) -> list[str]:
    """Name the leaf that has this tensor as its `.grad`: with a graph behind it the two keep each other alive."""
    for known in list(recorder.tensors.live.values()):
        if known.grad is not None and known.grad.number == root and known.number != root:
            label = known.row.fqn or known.name or "a leaf"
            return [name(f"{label}.grad.grad_fn (create_graph cycle)")]
    return []
