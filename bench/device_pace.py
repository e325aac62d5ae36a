"""The bench's side inside a measured process on a device: wall time of steps, and the memory that they took at most.

Capture sees none of it: only what lies in `bench/training` is taken for the user's program.
"""

import json
import sys
import time
from typing import Any

import torch

from bench.pace import outlet, resident
from bench.rivals import Step, wrap_step


def settled(device: str) -> float:
    """Now, once the device has done all that it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def together(step: Step, steps: int, device: str) -> float:
    """Wall seconds of a step, as the mean of so many."""
    started = settled(device)
    for _ in range(steps):
        step()
    spent = (settled(device) - started) / steps
    outlet.empty()
    return spent


def memory(device: str) -> dict[str, float]:
    """MiB at most since the process began, of the device's own memory; of a CPU that of the process."""
    if device != "cuda":
        return {"peak": resident("VmHWM"), "reserved": 0.0}
    return {"peak": torch.cuda.max_memory_allocated() / 2**20, "reserved": torch.cuda.max_memory_reserved() / 2**20}


def serve(step: Step, mode: str, device: str, model: Any, inputs: Any, optimizer: Any) -> None:
    """Answer until nobody asks any more."""
    step, _ = wrap_step(mode, step, model, inputs, optimizer)
    outlet.kept = None
    for _ in range(3):
        step()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(json.dumps({"parameters": parameters, "once": together(step, 1, device)}), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        answer = together(step, int(rest[0]), device) if word == "steps" else memory(device)
        print(json.dumps(answer), flush=True)
