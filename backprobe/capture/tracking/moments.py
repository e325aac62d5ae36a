"""The points in the run at which state is taken. A moment's row is written when something refers to it."""

from __future__ import annotations

import msgspec
import torch

from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.torch_internals import autograd_records
from backprobe.capture.tracking.stacks import Stacks
from backprobe.capture.tracking.timeline import Threads
from backprobe.record import Moment
from backprobe.record.rows.events import MomentKind


class Moments:
    """Hands out moments in order.

    Attributes:
        last: The newest moment; -1 before the first.
        steps: Optimizer steps finished.
    """

    def __init__(self, writer: Writer, threads: Threads, stacks: Stacks) -> None:
        self.last = -1
        self.steps = 0
        self._writer = writer
        self._threads = threads
        self._stacks = stacks
        self._pending: tuple[MomentKind, int | None, int] | None = None
        self._open_site: int | None = None
        self._row: Moment | None = None

    def statement(self, site: int | None) -> None:
        """Note that a statement is at its tap. Its moment is written once something is known of it."""
        if self._pending is None and self._open_site is not None and self._open_site == site:
            self._again()
            return
        self._pending, self._open_site = ("after-statement", site, 0), site

    def close_statement(self) -> None:
        """Close the statement: its next execution is another moment."""
        self._pending, self._open_site = None, None

    def now(self) -> int:
        """Return the current moment; write it if that was not done."""
        if self._pending is None:
            if self.last < 0:
                return self.new("after-statement", None)
            return self.last
        number = self._write(*self._pending)
        self._pending = None
        return number

    def new(self, kind: MomentKind, site: int | None, k: int = 0) -> int:
        """Begin a new moment, at once."""
        self.close_statement()
        return self._write(kind, site, k)

    def _write(self, kind: MomentKind, site: int | None, k: int) -> int:
        number = self.last + 1
        timeline = self._threads.here()
        self._row = Moment(
            moment=number,
            kind=kind,
            time_ns=self._writer.time_ns(),
            k=k,
            site=site,
            thread=timeline.thread,
            module_call=timeline.modules[-1] if timeline.modules else None,
            step=self.steps,
            grad_mode=autograd_records(),
            inference_mode=torch.is_inference_mode_enabled(),
            autocast=autocast(),
            stack=self._stacks.here(site),
        )
        self._writer.add("moments", self._row)
        self.last = number
        return number

    def _again(self) -> None:
        """Correct the modes of a moment that was written inside its statement, where they may have been others."""
        row, modes = self._row, (autograd_records(), torch.is_inference_mode_enabled(), autocast())
        if row is None or row.thread != self._threads.here().thread:
            return
        if (row.grad_mode, row.inference_mode, row.autocast) != modes:
            grad_mode, inference_mode, cast = modes
            self._row = msgspec.structs.replace(row, grad_mode=grad_mode, inference_mode=inference_mode, autocast=cast)
            self._writer.add("moments", self._row)


def autocast() -> str | None:
    """Return the dtype per device under autocast; None if it is off."""
    on = [
        f"{device} {str(torch.get_autocast_dtype(device)).removeprefix('torch.')}"
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    ]
    return ", ".join(on) or None
