"""Values that lie on another device, on their way into the record: reduced there, and brought over once a step.

    a row is written, its numbers missing -> the reduction is queued on the device -> a step ends: one transfer
    -> the row is written again with its numbers, which replaces the first one

1. Nothing here waits for the device but `settle` and `bring`; they make one transfer for each device that holds values.
2. What is queued are small results, or copies (`device_reductions.py`): no tensor of the program is kept alive.
3. Nothing runs while somebody watches operations, nor while a CUDA graph is captured: such rows stay without numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch

from backprobe.capture.torch_access.device_reductions import COPIED, ROOM, ROW, Batch, Found, Whole, reductions
from backprobe.capture.torch_access.device_transfer import Then, Ticket, bring_over, values_of
from backprobe.capture.torch_access.tensor_memory import is_ordinary, is_watched, special
from backprobe.capture.torch_access.torch_internals import (
    below_autocast,
    below_autograd,
    default_stream,
    is_capturing,
    stream_number,
    stream_of,
)

MOST_WAITING: Final = 4096
"""Tensors whose values wait at most; a program without steps brings them over when so many do."""

MOST_COPIED: Final = 1 << 20
"""Bytes that may wait as copies; beyond, only what is smaller than a row of `device_reductions` is copied whole."""


class DeviceValues:
    """The queue of one recorder. Only one thread at a time runs Backprobe's code, so it needs no lock.

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
        self._open: dict[tuple[torch.device, torch.dtype, int], Batch] = {}
        self._streams: dict[tuple[torch.device, int], Any] = {}
        self._came: dict[tuple[int, int], Ticket] = {}
        self._copied = 0

    def read(self, tensor: torch.Tensor, identity: tuple[int, int | None] | None, then: Then) -> None:
        """Queue what is recorded of a tensor; `then` is called with it at the next transfer.

        Args:
            identity: The number of the tensor and its `_version`: of the same, nothing is queued twice in a row.
        """
        if self._last is not None and self._last[0] == identity:
            self._last[1].then.append(then)
            return
        ticket = self._make_ticket(tensor)
        if ticket is None:
            return
        ticket.then.append(then)
        number, version = identity or (0, None)
        self._last = None if version is None else ((number, version), ticket)

    def arrive(self, call: int, node: int, output_nr: int, gradient: torch.Tensor, same_as: int | None = None) -> None:
        """Queue what is recorded of a gradient that reached a node, while the backward call runs.

        Args:
            same_as: The node that ran before it in that call, and handed on the very elements that reached it.
        """
        known = None if same_as is None else self._came.get((call, same_as))
        ticket = self._make_ticket(gradient) if known is None else known
        if ticket is None:
            self._came.pop((call, node), None)  # another output's is not this one's
        else:
            self._arrived[call, node, output_nr] = self._came[call, node] = ticket

    def read_arrived(self, call: int, node: int, then: Then) -> bool:
        """`then` is called with what reached a node last, if that waits still."""
        ticket = self._came.get((call, node))
        if ticket is not None:
            ticket.then.append(then)
        return ticket is not None

    def take_arrived(self, call: int, node: int, output_nr: int, then: Then) -> None:
        """Its backward call ended, and the row of the gradient is known."""
        ticket = self._arrived.pop((call, node, output_nr), None)
        if ticket is not None:
            ticket.then.append(then)

    def _make_ticket(self, tensor: torch.Tensor) -> Ticket | None:
        """Make a ticket for a tensor; None where its values are not defined, or Backprobe may not run operations."""
        count = tensor.numel()
        small = count <= self._small
        if is_watched() or not (small or tensor.is_floating_point()):
            return None
        if not is_ordinary(tensor) and special(tensor) != "inference":
            return None
        device = tensor.device
        if is_capturing(device):
            return None
        if len(self.waiting) >= MOST_WAITING and not self._arrived:
            self.settle()
        try:
            with below_autograd(), below_autocast():
                kept, place = self._queue_reductions(tensor, device, count)
        except RuntimeError as error:  # out of memory, or a device that is broken: it is the program's to find out
            self._cut("values on a device", f"values on {device.type} were not measured: {type(error).__name__}")
            return None
        ticket = Ticket(device, tensor.dtype, tuple(tensor.shape), count, small, kept, place)
        self.waiting.append(ticket)
        return ticket

    def _queue_reductions(
        self, tensor: torch.Tensor, device: torch.device, count: int
    ) -> tuple[torch.Tensor | Whole | Batch, int]:
        """Queue what the device is asked: a copy, a place in a batch, or reductions."""
        number = stream_number(device)
        if (device, number) not in self._streams:
            self._streams[device, number] = stream_of(device) if number else default_stream(device)
        size = count * tensor.element_size()
        if count < ROW or (count <= COPIED and self._copied + size <= MOST_COPIED):
            self._copied += size
            return tensor.clone(memory_format=torch.contiguous_format), 0
        if count > ROOM:
            return reductions(tensor), 0
        key = (device, tensor.dtype, number)
        batch = self._open.get(key)
        if batch is not None and batch.elements + count > ROOM:
            del self._open[key]
            batch.reduce()  # on the stream of its copies, which is this thread's
            batch = None
        if batch is None:
            batch = self._open[key] = Batch(key)
        return batch, batch.take(tensor)

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
        devices = {ticket.device for ticket in tickets} | {value.device for value in wanted}
        if not devices:
            return []
        if is_watched() or any(is_capturing(device) for device in devices):
            return None
        self.waiting, self._last, self._copied, self._came = [], None, 0, {}
        batches, self._open = self._open, {}
        streams, self._streams = self._streams, {}
        found: Found = {}
        try:
            for device in devices:
                mine = [ticket for ticket in tickets if ticket.device == device]
                ours = [batch for batch in batches.values() if batch.key[0] == device]
                side = [stream for (place, _), stream in streams.items() if place == device]
                bring_over(device, mine, ours, [value for value in wanted if value.device == device], side, found)
        except RuntimeError as error:
            names = ", ".join(sorted(map(str, devices)))
            why = f"values did not come from {names}: {type(error).__name__}"
            self._cut("values on a device", why)
            return None
        for ticket in tickets:
            values = values_of(ticket, found)
            if values is not None:
                for then in ticket.then:
                    then(values)
        return [found[id(value)][0] for value in wanted]
