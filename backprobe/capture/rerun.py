"""The process of the deep tier's second run: the same program, captured again, with every op looked at."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from backprobe.capture import launch
from backprobe.capture.deep import Job, Report
from backprobe.capture.origin_mode import OriginMode

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder


def main(asked: str, told: str) -> None:
    """Run what one file asks for, and tell in another one what was found."""
    job: Job = pickle.loads(Path(asked).read_bytes())  # noqa: S301 - deep.py wrote it
    modes: list[OriginMode] = []
    frames: list[bytes] = []

    @contextmanager
    def around(recorder: Recorder) -> Iterator[None]:
        _restore(job.states)
        modes.append(OriginMode(recorder))
        with modes[0]:
            yield

    getattr(launch, job.again.function)(*job.again.given, replace(job.options, around=around), frames.append)
    found = tuple(modes[0].found.values()) if modes else ()
    Path(told).write_bytes(pickle.dumps(Report(tuple(frames), found)))


def _restore(states: tuple[Any, Any, Any]) -> None:
    """Put the random generators where they were when the program began the first time."""
    torch_state, random_state, numpy_state = states
    torch.set_rng_state(torch_state)
    random.setstate(random_state)
    if numpy_state is not None and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(numpy_state)
