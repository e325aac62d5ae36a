"""Runs programs on the device that is written in Python; prints what `test_device_values.py` asks about, as JSON."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from backprobe.capture import Options, run_source
from backprobe.record import Record
from backprobe.record.state import nested
from tests.support import held_device

TRAINING = """
import torch
torch.manual_seed(0)
first, last = torch.nn.Linear(20, 30, device=DEVICE), torch.nn.Linear(30, 2, device=DEVICE)
model = torch.nn.Sequential(first, torch.nn.Tanh(), torch.nn.LayerNorm(30, device=DEVICE), last)
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(50, 20).to(DEVICE, copy=True)
target = torch.zeros(50, dtype=torch.long).to(DEVICE, copy=True)
for step in range(STEPS):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), target)
    loss.backward()
    optimizer.step()
"""
WITHOUT_STEPS = """
import torch
x = torch.tensor([1.0, 2.0, 3.0]).to("held").requires_grad_()
y = x * 2
(g,) = torch.autograd.grad(y.sum(), x)
"""
INFERENCE = """
import torch
x = torch.tensor([1.0, 2.0, 3.0]).to("held")
with torch.inference_mode():
    y = x * 2
    z = torch.cat([y] * 100)
"""
WATCHED = """
import torch
x = torch.ones(100).to("held").requires_grad_()
with WATCH:
    y = x * 2
    y.sum().backward()
"""
FAILING = """
import torch
x = torch.ones(100).to("held").requires_grad_()
y = x * 2
y.sum().backward()
print("done")
"""


def training(device: str, steps: int) -> str:
    return TRAINING.replace("DEVICE", repr(device)).replace("STEPS", str(steps))


def counted(source: str, options: Options) -> tuple[Record, int]:
    """A record, and how often its program waited for the device."""
    held_device.counts.clear()
    record = run_source(source, options=options)
    assert record.end is not None
    assert (record.end.own_errors, record.end.exception) == (0, None), (record.end, record.raised)
    return record, held_device.waits()


def numbers(record: Record) -> dict[str, list[float]]:
    """Every number of values and gradients, by where it stands."""
    found: dict[str, list[float]] = {}

    def put(key: str, row: Any) -> None:
        if row is not None:
            told = (row.norm, row.sum, row.min, row.max, row.nan, row.inf, row.zeros, row.counted)
            found[key] = [float(one) for one in told if one is not None]

    for row in record.snapshots:
        put(f"value {row.tensor} {row.moment}", row.value)
        put(f"grad {row.tensor} {row.moment}", row.grad_stats)
    for row in record.node_passes:
        put(f"arrived {row.call} {row.node} {row.output_nr}", row.grad_output)
    for row in record.steps:
        found[f"step {row.step}"] = [row.loss or 0.0, row.grad_norm or 0.0]
    for row in record.small_values:
        elements: Any = nested(row)
        flat = torch.tensor(elements, dtype=torch.float64).reshape(-1)
        found[f"elements {row.tensor} {row.moment} {row.of}"] = flat.tolist()
    return found


def without_steps() -> dict[str, Any]:
    record, waits = counted(WITHOUT_STEPS, Options())
    by_name = {row.name: row.tensor for row in record.bindings}
    values = [
        nested(row) for name in "xyg" for row in record.small_values
        if row.tensor == by_name[name] and row.of == "value"
    ]  # fmt: skip
    return {"values": values, "waits": waits}


def inference() -> dict[str, Any]:
    record, _ = counted(INFERENCE, Options())
    by_name = {row.name: row.tensor for row in record.bindings}
    values = [nested(row) for row in record.small_values if row.tensor == by_name["y"] and row.of == "value"]
    norms = [row.value.norm for row in record.snapshots if row.tensor == by_name["z"] and row.value is not None]
    return {"values": values, "norms": norms}


class Watch(TorchDispatchMode):
    """Sees every operation below autograd, as a profiler of the program's own would."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def watched() -> dict[str, Any]:
    import builtins

    plain, captured = Watch(), Watch()
    source = WATCHED.replace("WATCH", "watch_of_this_test")
    vars(builtins)["watch_of_this_test"] = plain
    exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})
    vars(builtins)["watch_of_this_test"] = captured
    record = run_source(source)
    ours = list(captured.seen)
    for one in plain.seen:
        ours.remove(one)
    return {"ours": ours, "own_errors": record.end.own_errors if record.end else -1}


@contextlib.contextmanager
def broken(kind: type[Exception]) -> Iterator[None]:
    """No copy comes from the device any more."""
    held_device.fail_copies(kind)
    try:
        yield
    finally:
        held_device.fail_copies(None)


def failing() -> dict[str, Any]:
    out = io.StringIO()
    with broken(RuntimeError), contextlib.redirect_stdout(out):
        record = run_source(FAILING)
    return {
        "printed": out.getvalue().strip(),
        "own_errors": record.end.own_errors if record.end else -1,
        "values": sum(row.value is not None for row in record.snapshots),
        "snapshots": len(record.snapshots),
        "why": [row.why for row in record.truncations],
    }


def main() -> None:
    """Run everything; one JSON document."""
    held_device.register()
    plain = training("held", 3)
    held_device.counts.clear()
    exec(compile(plain, "program.py", "exec"), {"__name__": "__main__"})
    waits = {"plain": held_device.waits()}
    there, waits["full, 3 steps"] = counted(plain, Options(every=1))
    _, waits["full, 13 steps"] = counted(training("held", 13), Options(every=1))
    for tier in ("state", "grad"):
        _, waits[f"{tier}, 3 steps"] = counted(plain, Options(tier=tier, every=1))
    here, _ = counted(training("cpu", 3), Options(every=1))
    told = {
        "waits": waits, "held": numbers(there), "cpu": numbers(here), "without steps": without_steps(),
        "inference": inference(),
        "watched": watched(), "failing": failing(),
    }  # fmt: skip
    print(json.dumps(told))


if __name__ == "__main__":
    main()
