"""The bench's side inside a measured process: runs steps when asked, and tells what they took.

Capture sees none of it: only what lies in `bench/training` is taken for the user's program.
"""

import ctypes
import gc
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.rivals import Step, wrap_step

BLOCK_SECONDS = 0.06
"""Process seconds of the steps whose mean is one figure: three flushes of a record fall into each."""


class Outlet:
    """Where frames go: out of the process, into a file that is emptied now and then; the first ones are kept too."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        self.sent = 0
        self.kept: list[bytes] | None = []

    def write(self, frames: bytes) -> None:
        """Take frames, as capture's sink."""
        os.write(self.file.fileno(), frames)
        self.sent += len(frames)
        if self.kept is not None:
            self.kept.append(frames)

    def empty(self) -> None:
        """Forget what lies in the file."""
        os.ftruncate(self.file.fileno(), 0)
        os.lseek(self.file.fileno(), 0, os.SEEK_SET)


outlet = Outlet()


def resident(key: str) -> float:
    """A line of the process's own status, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) / 1024
    raise KeyError(key)


def blocks(step: Step, seconds: float) -> list[float]:
    """CPU seconds of a step, as means over blocks, for so many CPU seconds."""
    found: list[float] = []
    begun = time.process_time()
    while not found or time.process_time() - begun < seconds:
        started, steps, spent = time.process_time(), 0, 0.0
        while spent < BLOCK_SECONDS:
            step()
            steps += 1
            spent = time.process_time() - started
        found.append(spent / steps)
    outlet.empty()
    return found


def together(step: Step, steps: int) -> float:
    """CPU seconds of so many steps, one after the other."""
    started = time.process_time()
    for _ in range(steps):
        step()
    spent = time.process_time() - started
    outlet.empty()
    return spent


def memory(step: Step) -> dict[str, float]:
    """MiB that two steps need above what stays between steps."""
    step()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    base = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    step()
    step()
    return {"base": base, "peak": resident("VmHWM")}


def counts(step: Step, steps: int = 4) -> dict[str, float]:
    """Rows of each table and bytes that one step sends; a flush is due after a moment."""
    from backprobe.record import FrameReader

    def rows() -> dict[str, int]:
        reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
        for frames in outlet.kept or ():
            reader.feed(frames)
        record = reader.record()
        if record is None:
            return {}
        names = ("tensors", "snapshots", "bindings", "module_calls", "nodes", "node_passes", "leaf_grads", "saved")
        return {name: len(getattr(record, name)) for name in names} | {"rows": reader.rows}

    def settled() -> tuple[dict[str, int], int]:
        time.sleep(0.05)
        step()
        return rows(), outlet.sent

    before, sent = settled()
    for _ in range(steps - 1):
        step()
    after, then = settled()
    found = {name: (after[name] - before.get(name, 0)) / steps for name in after}
    return found | {"bytes": (then - sent) / steps}


def serve(step: Step, mode: str, model: Any, inputs: Any, optimizer: Any) -> None:
    """Answer the bench until it has no more to ask."""
    step, captured = wrap_step(mode, step, model, inputs, optimizer)
    started = time.process_time()
    for _ in range(3):
        step()
    answers = {
        "run": lambda seconds: blocks(step, float(seconds)),
        "steps": lambda steps: together(step, int(steps)),
        "memory": lambda: memory(step),
        "counts": lambda: counts(step) if outlet.sent else captured(),
    }
    print(json.dumps({"first": time.process_time() - started}), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        print(json.dumps(answers[word](*rest)), flush=True)
        if word == "counts":
            outlet.kept = None
