"""Runs programs on the device that is written in Python; prints what `test_device_values.py` asks about, as JSON."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import io
import itertools
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from backprobe.capture import Options, run_source
from backprobe.capture.options import Caps
from backprobe.capture.torch_access import native, torch_internals
from backprobe.capture.torch_access.device_transfer import Values
from backprobe.capture.torch_access.device_values import DeviceValues
from backprobe.capture.torch_access.tensor_statistics import of_values
from backprobe.record import Record
from backprobe.record.state import nest_elements
from tests.backprobe.capture.held_programs import FAILING, INFERENCE, SIZES, STATES, TRAINING, WATCHED, WITHOUT_STEPS
from tests.support import held_device

VIEWS = {"view", "as_strided", "_reshape_alias", "slice", "t", "transpose", "detach", "expand", "unsqueeze", "select"}


def training(device: str, steps: int, source: str = TRAINING) -> str:
    return source.replace("DEVICE", repr(device)).replace("STEPS", str(steps))


def count_waits(source: str, options: Options) -> tuple[Record, int]:
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
            found[key] = [float(number) for number in told if number is not None]

    for row in record.snapshots:
        put(f"value {row.tensor} {row.moment}", row.value)
        put(f"grad {row.tensor} {row.moment}", row.grad_stats)
    for row in record.node_passes:
        put(f"arrived {row.call} {row.node} {row.output_nr}", row.grad_output)
    for row in record.steps:
        found[f"step {row.step}"] = [row.loss or 0.0, row.grad_norm or 0.0]
    for row in record.small_values:
        elements: Any = nest_elements(row)
        flat = torch.tensor(elements, dtype=torch.float64).reshape(-1)
        found[f"elements {row.tensor} {row.moment} {row.of}"] = flat.tolist()
    return found


def list_requests(source: str, options: Options | None) -> dict[str, float]:
    """What the device is asked for in a step, views left out; None: of a plain run."""
    found: list[collections.Counter[str]] = []
    for steps in (4, 14):
        text = training("held", steps, source)
        held_device.counts.clear()
        if options is None:
            exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
        else:
            run_source(text, options=options)
        found.append(collections.Counter(held_device.counts))
    names = {name.removeprefix("aten::"): (found[1][name] - found[0][name]) / 10 for name in found[1]}
    return {name: number for name, number in names.items() if name not in VIEWS and number}


def cost(source: str) -> dict[str, Any]:
    """Operations that capture adds to a step, and how many values and gradients it measures in one."""
    plain, full = list_requests(source, None), list_requests(source, Options(every=1))
    record, _ = count_waits(training("held", 14, source), Options(every=1))
    last = record.steps[-2]
    assert last.first_moment is not None
    assert last.last_moment is not None
    within = range(last.first_moment, last.last_moment + 1)
    snapshots = [row for row in record.snapshots if row.moment in within]
    calls = {row.call for row in record.backward_calls if row.moment_before in within}
    values = sum((row.value is not None) + (row.grad_stats is not None) for row in snapshots)
    arrived = sum(row.grad_output is not None for row in record.node_passes if row.call in calls)
    return {
        "added": sum(full.values()) - sum(plain.values()), "values": values, "arrived": arrived,
        "state": list_requests(source, Options(tier="state", every=1)) == plain,
    }  # fmt: skip


def odd() -> dict[str, Any]:
    """Statistics of parameters that hold a zero and what is not finite, by size and by what they hold."""
    found: dict[str, Any] = {}
    inf, nan = math.inf, math.nan
    for count, put in itertools.product((4, 1000, 5000, 140_000), ([], [nan], [inf], [nan, -inf, inf])):
        values = DeviceValues(2, lambda *_: None)
        came: list[Values] = []
        tensor = torch.cat([torch.tensor([0.0, *put]), torch.ones(count - len(put) - 1)])
        values.read(tensor.to("held").requires_grad_(), None, came.append)
        values.settle()
        row = of_values(came[0], Caps())
        assert row is not None
        norm = row.norm if row.norm is not None and math.isfinite(row.norm) else None
        found[f"{count} {put}"] = {"counts": [row.nan, row.inf, row.zeros, row.counted], "norm": norm}
    return found


@contextlib.contextmanager
def slow() -> Iterator[list[str]]:
    """The tensors for whose rows the core asks Python."""
    from backprobe.capture.tracking.tensors import tensor_registry

    found: list[str] = []
    described = tensor_registry.describe_tensor

    def note_answer(tensor: torch.Tensor) -> Any:
        answer = described(tensor)
        found.append(f"{tuple(tensor.shape)} {answer[-2]}")
        return answer

    tensor_registry.describe_tensor = note_answer
    try:
        yield found
    finally:
        tensor_registry.describe_tensor = described


def states() -> dict[str, Any]:
    """Rows of a program that changes tensors of the device in every way, at a tier that asks the device nothing."""
    with slow() as found:
        record, _ = count_waits(STATES, Options(tier="grad", every=1))
    tables = ("saved", "tensors", "snapshots", "nodes", "edges", "node_passes", "inplace_events", "leaf_grads")
    left_out = {"duration_ns", "own_ns", "seq", "bytes"}
    rows = {
        table: [
            {name: repr(value) for name, value in msgspec.structs.asdict(row).items() if name not in left_out}
            for row in getattr(record, table)
        ]
        for table in tables
    }
    return {"rows": rows, "slow": found}


def ask_core() -> dict[str, Any]:
    """What the compiled core says of tensors of the device by what it learned of them."""
    core = native.native
    if core is None:
        return {}
    plain = torch.ones(3).to("held")
    with torch.inference_mode():
        inference = torch.ones(3).to("held")
    others = [
        torch.empty(3, device="meta"),
        inference,
        torch.empty(1, 1, 1, 1, 1, 1).to("held"),
        torch.ones(3).to_sparse(),
    ]
    with addressed(plain):
        elements, statistics = core.elements(plain, 64), core.statistics(plain, 1 << 20, 1 << 20)
    return {
        "plain": core.is_told(plain), "others": [core.is_told(other) for other in others],
        "elements": elements is not NotImplemented, "statistics": statistics is not None,
    }  # fmt: skip


@contextlib.contextmanager
def addressed(tensor: torch.Tensor) -> Iterator[None]:
    """The tensor's storage has an address as that of a GPU has: here of memory that may be read, there of none."""
    internals: Any = torch._C
    here = torch.full((9,), 5.0)
    words = ctypes.c_size_t * 8
    own, other = (words.from_address(internals._storage_address(tensor_)) for tensor_ in (here, tensor))
    at = list(own).index(here.data_ptr())
    before, other[at] = other[at], here.data_ptr()
    try:
        yield
    finally:
        other[at] = before


def lying() -> None:
    """The device's tensors are not what the learned places hold: all goes on as if nothing had been learned."""
    true = torch_internals.storage_of

    def storage_of(tensor: torch.Tensor) -> tuple[int, int] | None:
        found = true(tensor)
        return None if found is None else (found[0], found[1] + 1)

    torch_internals.storage_of = storage_of
    held_device.register()
    record, _ = count_waits(STATES, Options(tier="state", every=1))
    sizes = {row.storage_bytes for row in record.tensors if row.device == "held:0" and row.shape == (6, 6)}
    print(json.dumps({"told": ask_core(), "sizes": sorted(size or 0 for size in sizes)}))


def without_steps() -> dict[str, Any]:
    record, waits = count_waits(WITHOUT_STEPS, Options())
    by_name = {row.name: row.tensor for row in record.bindings}
    values = [
        nest_elements(row) for name in "xyg" for row in record.small_values
        if row.tensor == by_name[name] and row.of == "value"
    ]  # fmt: skip
    return {"values": values, "waits": waits}


def inference() -> dict[str, Any]:
    record, _ = count_waits(INFERENCE, Options())
    by_name = {row.name: row.tensor for row in record.bindings}
    values = [nest_elements(row) for row in record.small_values if row.tensor == by_name["y"] and row.of == "value"]
    norms = [row.value.norm for name in "zvw" for row in record.snapshots if row.tensor == by_name[name] and row.value]
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
    for number in plain.seen:
        ours.remove(number)
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
    there, waits["full, 3 steps"] = count_waits(plain, Options(every=1))
    _, waits["full, 13 steps"] = count_waits(training("held", 13), Options(every=1))
    for tier in ("state", "grad"):
        _, waits[f"{tier}, 3 steps"] = count_waits(plain, Options(tier=tier, every=1))
    here, _ = count_waits(training("cpu", 3), Options(every=1))
    sizes = [numbers(count_waits(training(device, 3, SIZES), Options(every=1))[0]) for device in ("held", "cpu")]
    answers = {
        "cost": {"small": cost(TRAINING), "large": cost(SIZES)}, "states": states(), "told": ask_core(),
        "odd": odd(), "sizes held": sizes[0], "sizes cpu": sizes[1],
        "waits": waits, "held": numbers(there), "cpu": numbers(here), "without steps": without_steps(),
        "inference": inference(),
        "watched": watched(), "failing": failing(),
    }  # fmt: skip
    print(json.dumps(answers))


if __name__ == "__main__":
    lying() if "lying" in sys.argv else main()
