"""The transfer of what waits on a device: one for all of it, and what it says of each tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from backprobe.capture.torch_access.device_reductions import Batch, Found, Numbers, Whole
from backprobe.capture.torch_access.torch_internals import below_autocast, below_autograd, flattened, stream_of

Then = Callable[["Values"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What came over of one tensor.

    Attributes:
        numbers: Of a larger tensor, but for the elements in `rest`.
        raw: The elements of a small tensor, contiguous and little-endian; None of a larger one.
        rest: Elements of a larger one that are not reduced yet: all of them, or what the numbers leave out.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    counted: int
    numbers: Numbers | None = None
    raw: bytes | None = None
    rest: bytes = b""


@dataclass(slots=True, eq=False)
class Ticket:
    """Values of a tensor that wait on their device, and what is done once they are here.

    Attributes:
        kept: A copy, its reductions, or a batch that has it at a `place`. is_small: its elements are all kept.
    """

    device: torch.device
    dtype: torch.dtype
    shape: tuple[int, ...]
    counted: int
    is_small: bool
    kept: torch.Tensor | Whole | Batch
    place: int
    then: list[Then] = field(default_factory=list[Then])


def bring_over(
    device: torch.device,
    tickets: list[Ticket],
    batches: list[Batch],
    wanted: list[torch.Tensor],
    side: list[Any],
    found: Found,
) -> None:
    """Fill in what waits on one device, in one transfer; the queues of other streams end first."""
    current = stream_of(device)
    for stream in side:
        if stream is not None and stream != current:
            current.wait_stream(stream)
    with below_autograd(), below_autocast():
        held = [batch.reduce() for batch in batches]  # used until the transfer is over
        groups: dict[tuple[torch.dtype, bool], list[torch.Tensor]] = {}
        met: set[Batch] = set()

        def put(part: torch.Tensor, *, is_number: bool) -> None:
            groups.setdefault((part.dtype, is_number), []).append(part)

        for ticket in tickets:
            kept = ticket.kept
            if isinstance(kept, torch.Tensor):
                put(kept, is_number=False)
            elif isinstance(kept, Whole):
                for part in kept.parts:
                    put(part, is_number=True)
            elif kept not in met:
                met.add(kept)
                for part in kept.parts:
                    put(part, is_number=True)
                if kept.tails is not None:
                    put(kept.tails, is_number=False)
        for value in wanted:
            put(value, is_number=True)
        order = sorted(
            groups.items(), key=lambda item: -item[0][0].itemsize
        )  # each then lies at a multiple of its size
        flat = [flattened(group).view(torch.uint8) for _, group in order]
        whole = (flat[0] if len(flat) == 1 else torch.cat(flat)).cpu()
        held.clear()
        data, at = whole.numpy().tobytes(), 0
        for (dtype, is_number), group in order:
            size = dtype.itemsize * sum(part.numel() for part in group)
            if is_number:
                _put_numbers(whole[at : at + size].view(dtype).double().tolist(), group, found)
            else:
                _put_elements(data[at : at + size], dtype.itemsize, group, found)
            at += size


def _put_numbers(numbers: list[float], parts: list[torch.Tensor], found: Found) -> None:
    at = 0
    for part in parts:
        count = part.numel()
        found[id(part)] = numbers[at : at + count]
        at += count


def _put_elements(data: bytes, item: int, parts: list[torch.Tensor], found: Found) -> None:
    at = 0
    for part in parts:
        size = part.numel() * item
        found[id(part)] = data[at : at + size]
        at += size


def values_of(ticket: Ticket, found: Found) -> Values | None:
    """Return the values of a ticket; None if there are none."""
    kept, numbers, rest, raw = ticket.kept, None, b"", None
    if isinstance(kept, Whole):
        numbers = kept.numbers(found)
    elif isinstance(kept, Batch):
        if kept.failed:
            return None
        numbers, rest = kept.numbers(ticket.place, found)
    elif ticket.is_small:
        raw = found[id(kept)]
    else:
        rest = found[id(kept)]
    return Values(
        dtype=ticket.dtype, shape=ticket.shape, counted=ticket.counted, numbers=numbers, raw=raw, rest=rest
    )  # fmt: skip
