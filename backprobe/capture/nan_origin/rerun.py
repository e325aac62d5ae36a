"""The process of the deep tier's second run: the same program, captured again, with every op looked at."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from backprobe.capture.nan_origin.deep_tier import Job, Report, States
from backprobe.capture.nan_origin.op_mode import OriginMode
from backprobe.capture.options import Caps, Options
from backprobe.capture.program import launch

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession


def main() -> None:
    """Run what one file asks for, and tell in another one what was found; the arguments name them."""
    asked, told = sys.argv[1:3]
    job = msgspec.msgpack.decode(Path(asked).read_bytes(), type=Job)
    modes: list[OriginMode] = []
    frames: list[bytes] = []

    @contextmanager
    def around(recorder: CaptureSession) -> Iterator[None]:
        _restore(job.states)
        modes.append(OriginMode(recorder))
        with modes[0]:
            yield

    asked_for = {**job.options, "caps": msgspec.convert(job.options["caps"], Caps)}
    run = getattr(launch, job.again.function)
    run(*job.again.given, Options(**asked_for, around=around), frames.append, **job.again.named)
    found = tuple(modes[0].found.values()) if modes else ()
    Path(told).write_bytes(msgspec.msgpack.encode(Report(tuple(frames), found)))


def _restore(states: States) -> None:
    """Put the random generators where they were when the program began the first time."""
    torch.set_rng_state(torch.tensor(list(states.torch), dtype=torch.uint8))
    version, numbers, gauss = states.python
    random.setstate((version, tuple(numbers), gauss))
    if states.numpy is not None and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(states.numpy)
