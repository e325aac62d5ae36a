"""BP350 out-of-memory: a statement asked for more memory than there was; what held the rest is named.

What it finds:
    torch could not allocate what a statement asked for, on a GPU or on the CPU. The finding stands at that statement,
    with the memory that was asked for, and with the largest pieces of memory that the record knows to be held on that
    device then: tensors by their names, and what graphs keep for a backward call that has not come.

Why it matters:
    The statement that fails is seldom the one to change: it is the first that no longer fits. What fills a device is
    what earlier statements left there.

What PyTorch does:
    A graph keeps the tensors that its nodes saved until a backward call frees them, or the last name of its root is
    gone. On a GPU torch keeps freed memory for itself, in pieces that may each be too small. The error is a
    `torch.OutOfMemoryError`, on the CPU a `RuntimeError`. Seen in torch 2.13 on the CPU.

Example:
    import torch

    points = torch.zeros(10_000_000, 1)
    distances = points - points.t()  # <- here
    print(distances.abs().sum())

Use instead:
    import torch

    points = torch.zeros(10_000_000, 1)
    total = 0.0
    for part in points[:400].split(100):
        total += (part - points[:400].t()).abs().sum().item()
    print(total)

Near miss: another error of torch
    import torch

    points = torch.zeros(10, 3)
    try:
        points - torch.zeros(4)
    except RuntimeError as error:
        print(error)

Blind spots:
    Memory that no tensor of the record stands for is not counted: a library's own workspace, another process on the
    device, the pieces that torch's allocator keeps. Statements in steps that were not taken in full leave no names.

Source:
    "My model reports CUDA runtime error(2): out of memory" in PyTorch's FAQ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="out-of-memory",
    code="BP350",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "snapshot"),
)

_ASKED: Final = re.compile(r"[Tt]ried to allocate ([\d.]+) ?([KMGT]i?B|bytes)|tried to allocate (\d+) bytes")
_UNITS: Final = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SHOWN: Final = 3
"""Pieces of memory that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Memory that was held: of a tensor, or by a node for backward.

    Attributes:
        site: Where the tensor was seen first, or what made the node.
    """

    text: str
    size_bytes: int
    site: int | None


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception that says that memory has run out."""
    for raised in raised_as(record, "out-of-memory"):
        if raised.site is not None:
            yield _finding(record, raised, raised.site)


def _finding(record: Record, raised: Raised, site: int) -> Finding:
    moment = moment_of(record, raised)
    device = "cpu" if "DefaultCPUAllocator" in raised.message else "cuda"
    pieces = held(record, device, moment)
    total = sum(piece.size_bytes for piece in pieces)
    asked = asked_bytes(raised.message)
    wanted = "more memory than there was" if asked is None else f"{readable(asked)}, more than there was"
    largest = ", ".join(f"{piece.text} {readable(piece.size_bytes)}" for piece in pieces[:_SHOWN])
    where = "the CPU" if device == "cpu" else "the GPU"
    return told(
        record,
        RULE,
        site,
        (
            f"This statement asked {where} for {wanted}.",
            f"Of the tensors in the record {readable(total)} were held then{': ' if largest else ''}{largest}.",
            "Ask for less at a time, or let go of what is not needed before: `del`, `detach()`, `torch.no_grad()`.",
        ),
        binding="memory",
        moments=[moment],
        related=[(f"{readable(piece.size_bytes)} of it came from here", piece.site) for piece in pieces[:_SHOWN]],
        evidence={
            "asked_bytes": asked,
            "held_bytes": total,
            "device": device,
            "exception": raised.type,
            "largest": [f"{piece.text}: {piece.size_bytes} bytes" for piece in pieces[:_SHOWN]],
        },
        level=level_of(record, raised),
    )


def moment_of(record: Record, raised: Raised) -> int:
    """The moment up to which the record is asked."""
    return raised.moment if raised.moment is not None else max((row.moment for row in record.moments), default=0)


def asked_bytes(message: str) -> int | None:
    """What torch says it was asked for; None if it says nothing of it."""
    found = _ASKED.search(message)
    if found is None:
        return None
    if found[3] is not None:
        return int(found[3])
    return round(float(found[1]) * _UNITS.get(found[2], 1))


def held(record: Record, device: str, moment: int) -> list[Piece]:
    """The distinct pieces of memory of a kind of device that were held at a moment, the largest first."""
    found: dict[int, Piece] = {}
    for row in record.tensors:
        lives = row.moment <= moment and (row.died is None or row.died > moment)
        if lives and row.storage is not None and row.device.startswith(device) and row.storage not in found:
            size = row.storage_bytes or 0
            found[row.storage] = Piece(text=together(record, [row.tensor]), size_bytes=size, site=row.site)
    nodes = lookup(record).nodes
    for saved in record.saved:
        node = nodes.get(saved.node)
        if node is None or saved.storage is None or saved.storage in found or node.freed_by is not None:
            continue
        on_device = any(output.device.startswith(device) for output in node.outputs)
        if on_device and node.first_seen <= moment and (node.died is None or node.died > moment):
            text = f"what `{node.type}` saved"
            found[saved.storage] = Piece(text=text, size_bytes=saved.size_bytes or 0, site=node.site)
    return sorted((piece for piece in found.values() if piece.size_bytes), key=lambda piece: -piece.size_bytes)


def readable(size: int) -> str:
    """Bytes in words: `1.5 GiB`."""
    unit = next((name for name in ("TiB", "GiB", "MiB", "KiB") if size >= _UNITS[name]), "bytes")
    return f"{size} bytes" if unit == "bytes" else f"{size / _UNITS[unit]:.1f} {unit}"
