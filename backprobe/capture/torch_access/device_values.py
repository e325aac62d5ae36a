"""Values that lie on another device, on their way into the record: reduced there, and brought over once a step.

    a row is written, its numbers missing -> the reduction is queued on the device -> a step ends: one transfer
    -> the row is written again with its numbers, which replaces the first one

1. Nothing here waits for the device but `settle` and `bring`; they make one transfer for each device that holds values.
2. What is queued are results of a few bytes, or copies of small tensors: no tensor of the program is kept alive.
3. Nothing runs while somebody watches operations, nor while a CUDA graph is captured: such rows stay without numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from backprobe.capture.torch_access.tensor_memory import is_watched, special
from backprobe.capture.torch_access.torch_internals import below_autocast, below_autograd, stream_of

MOST_WAITING: Final = 4096
"""Tensors whose values wait at most; a program without steps brings them over when so many do."""

PIECE: Final = 1 << 24
"""Elements for which room is taken at once to count what is not finite: 64 MiB of float32."""

Then = Callable[["Values"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What came over of one tensor.

    Attributes:
        numbers: norm, sum, least, greatest, elements that are not 0, NaN, not finite; None of a small tensor.
        raw: The elements of a small tensor, contiguous and little-endian; None of a larger one.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    counted: int
    numbers: tuple[float, ...] | None = None
    raw: bytes | None = None


@dataclass(slots=True)
class Ticket:
    """Values of a tensor that wait on their device, and what is done once they are here."""

    device: torch.device
    dtype: torch.dtype
    shape: tuple[int, ...]
    is_small: bool
    parts: list[torch.Tensor]
    stream: Any
    then: list[Then] = field(default_factory=list[Then])


class DeviceValues:
    """The queue of one recorder. Bodies of ours pass one at a time, so it needs no lock.

    Args:
        small: Elements that a tensor has at most whose elements are all kept.
        cut: Notes what was left out, and why.

    Attributes:
        waiting: Tickets in the order in which they were queued.
    """

    def __init__(self, small: int, cut: Callable[[str, str], None]) -> None:
        self.waiting: list[Ticket] = []
        self._small, self._cut = small, cut
        self._last: tuple[tuple[int, int], Ticket] | None = None
        self._arrived: dict[tuple[int, int, int], Ticket] = {}

    def read(self, tensor: torch.Tensor, identity: tuple[int, int | None] | None, then: Then) -> None:
        """Queue what is recorded of a tensor; `then` is called with it at the next transfer.

        Args:
            identity: The number of the tensor and its `_version`: of the same, nothing is queued twice in a row.
        """
        if self._last is not None and self._last[0] == identity:
            self._last[1].then.append(then)
            return
        ticket = self._queued(tensor)
        if ticket is None:
            return
        ticket.then.append(then)
        number, version = identity or (0, None)
        self._last = None if version is None else ((number, version), ticket)

    def arrive(self, call: int, node: int, output_nr: int, gradient: torch.Tensor) -> None:
        """Queue what is recorded of a gradient that reached a node, while the backward call runs."""
        ticket = self._queued(gradient)
        if ticket is not None:
            self._arrived[call, node, output_nr] = ticket

    def take_arrived(self, call: int, node: int, output_nr: int, then: Then) -> None:
        """Its backward call ended, and the row of the gradient is known."""
        ticket = self._arrived.pop((call, node, output_nr), None)
        if ticket is not None:
            ticket.then.append(then)

    def _queued(self, tensor: torch.Tensor) -> Ticket | None:
        """A ticket for a tensor; None where its values are not defined, or nothing of ours may run."""
        small = tensor.numel() <= self._small
        if is_watched() or special(tensor) not in (None, "inference") or not (small or tensor.is_floating_point()):
            return None
        if is_capturing(tensor.device):
            return None
        if len(self.waiting) >= MOST_WAITING and not self._arrived:
            self.settle()
        try:
            with below_autograd(), below_autocast():
                parts = [tensor.reshape(-1).clone()] if small else reductions(tensor)
        except RuntimeError as error:  # out of memory, or a device that is broken: it is the program's to find out
            why = f"values on {tensor.device.type} were not measured: {type(error).__name__}"
            self._cut("values on a device", why)
            return None
        ticket = Ticket(
            tensor.device, tensor.dtype, tuple(tensor.shape), small, parts, stream_of(tensor.device)
        )  # fmt: skip
        self.waiting.append(ticket)
        return ticket

    # ---- the transfer

    def settle(self) -> None:
        """Bring over all that waits, and complete its rows. Without effect while somebody watches operations."""
        if self.waiting:
            self.bring(())

    def bring(self, numbers: Iterable[torch.Tensor]) -> list[float] | None:
        """Bring over all that waits and, in the same transfer, some tensors of one element; their values come back.

        Returns:
            None where nothing may be brought over now, or the device failed.
        """
        wanted, tickets = list(numbers), self.waiting
        devices = {ticket.device for ticket in tickets} | {one.device for one in wanted}
        if not devices:
            return []
        if is_watched() or any(is_capturing(device) for device in devices):
            return None
        self.waiting, self._last = [], None
        found: dict[int, bytes] = {}
        try:
            for device in devices:
                parts = [part for ticket in tickets if ticket.device == device for part in ticket.parts]
                parts += [one for one in wanted if one.device == device]
                streams = {ticket.stream for ticket in tickets if ticket.device == device}
                found |= _brought(device, parts, streams)
        except RuntimeError as error:
            why = f"values did not come from {', '.join(sorted(str(one) for one in devices))}: {type(error).__name__}"
            self._cut("values on a device", why)
            return None
        for ticket in tickets:
            values = _values(ticket, [found[id(part)] for part in ticket.parts])
            for then in ticket.then:
                then(values)
        return [_number(found[id(one)], one.dtype) for one in wanted]


def reductions(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Seven numbers of a floating tensor, as tensors of its device: nine kernels, and no wait.

    Sums run in float64, so that no square overflows; nothing as large as the tensor is made beside it.
    """
    norm = torch.linalg.vector_norm
    low, high = torch.aminmax(tensor)
    nans: list[torch.Tensor] = []
    odd: list[torch.Tensor] = []
    for piece in _pieces(tensor):
        nans.append((piece != piece).sum())
        odd.append(norm(piece - piece, 0, dtype=torch.float64))  # 0 of what is finite, NaN of all else
    return [
        norm(tensor, 2, dtype=torch.float64),
        tensor.sum(dtype=torch.float64),
        low,
        high,
        norm(tensor, 0, dtype=torch.float64),
        nans[0] if len(nans) == 1 else torch.stack(nans).sum(),
        odd[0] if len(odd) == 1 else torch.stack(odd).sum(),
    ]


def _pieces(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A tensor in pieces for which there is room; whole where its memory has gaps."""
    if tensor.numel() <= PIECE:
        return (tensor,)
    dense = tensor if tensor.is_contiguous() else _dense(tensor)
    return (tensor,) if dense is None else dense.view(-1).split(PIECE)


def _dense(tensor: torch.Tensor) -> torch.Tensor | None:
    """The same elements in the order of their memory; None where it has gaps or is shared among elements."""
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    turned = tensor.permute(order)
    return turned if turned.is_contiguous() else None


def is_capturing(device: torch.device) -> bool:
    """A CUDA graph is being recorded: an operation would become part of it, and a transfer would break it."""
    return device.type == "cuda" and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _brought(device: torch.device, parts: list[torch.Tensor], streams: set[Any]) -> dict[int, bytes]:
    """The bytes of parts of one device, by their ids, in one transfer."""
    current = stream_of(device)
    for stream in streams:
        if stream is not None and stream != current:
            current.wait_stream(stream)
    groups: dict[torch.dtype, list[torch.Tensor]] = {}
    for part in parts:
        groups.setdefault(part.dtype, []).append(part)
    with below_autograd(), below_autocast():
        flat = [torch.cat([part.reshape(-1) for part in group]).view(torch.uint8) for group in groups.values()]
        whole = (flat[0] if len(flat) == 1 else torch.cat(flat)).cpu()
    data = whole.numpy().tobytes()
    found: dict[int, bytes] = {}
    at = 0
    for group in groups.values():
        for part in group:
            size = part.numel() * part.element_size()
            found[id(part)] = data[at : at + size]
            at += size
    return found


def _number(raw: bytes, dtype: torch.dtype) -> float:
    return float(torch.frombuffer(bytearray(raw), dtype=dtype).double().numpy()[0])


def _values(ticket: Ticket, raws: list[bytes]) -> Values:
    counted = 1
    for size in ticket.shape:
        counted *= size
    if ticket.is_small:
        return Values(dtype=ticket.dtype, shape=ticket.shape, counted=counted, raw=raws[0])
    numbers = tuple(_number(raw, part.dtype) for raw, part in zip(raws, ticket.parts, strict=True))
    return Values(dtype=ticket.dtype, shape=ticket.shape, counted=counted, numbers=numbers)
