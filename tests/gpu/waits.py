"""How often a captured program waits for the device: at tier full once a step, whatever the number of tensors.

On CUDA torch's own debug mode of synchronising calls counts them, and its profiler counts what a plain step and one of
tier state wait for. On the stand-in the count is that of a device written in Python, whose tensors lie on no CPU.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import torch

from backprobe.capture import Options, run_source
from backprobe.record import Record
from tests.gpu.place import NotHere, Place, Row, expect, rows
from tests.support import held_device

TRAINING: Final = """
import torch
torch.manual_seed(0)
layers = []
for _ in range(LAYERS):
    layers += [torch.nn.Linear(16, 16), torch.nn.Tanh()]
model = torch.nn.Sequential(*layers).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(32, 16).to(DEVICE)
for step in range(STEPS):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
"""
WAITING_CALLS: Final = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


def prove(place: Place) -> Iterator[Row]:
    """Rows for the tiers, for steps between those in full, for values that arrived, and for the profiler's count."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "one wait a step at tier full", partial(_a_step, place, Options(every=1), 1)
    yield "none at tier grad", partial(_a_step, place, Options(tier="grad", every=1), 0)
    yield "none at tier state", partial(_a_step, place, Options(tier="state", every=1), 0)
    yield "one wait for a step that is not taken in full", partial(_a_step, place, Options(every=10**6), 1)
    yield "no more waits for more tensors", partial(_more_tensors, place)
    yield "the values have come all the same", partial(_arrived, place)
    yield "torch.profiler: a step waits no oftener than plain", partial(_profiled, place)


def source(place: Place, steps: int, layers: int = 2) -> str:
    """The training loop."""
    device = "cuda" if place.is_cuda else held_device.NAME
    return TRAINING.replace("DEVICE", repr(device)).replace("STEPS", str(steps)).replace("LAYERS", str(layers))


def count_waits(place: Place, text: str, options: Options) -> tuple[int, Record]:
    """How often a captured program waits for the device, and its record."""
    records: list[Record] = []
    waited = waits_of(place, lambda: records.append(run_source(text, options=options)))
    return waited, _sound(records[0])


def waits_of(place: Place, work: Callable[[], object]) -> int:
    """How often a piece of work waits for the device."""
    if not place.is_cuda:
        hold_device()
        held_device.counts.clear()
        work()
        return held_device.waits()
    torch.cuda.synchronize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing CUDA operation" in str(warning.message) for warning in seen)


def hold_device() -> None:
    """Make the device in Python known.

    Raises:
        NotHere: this torch has none.
    """
    try:
        held_device.register()
    except (ImportError, AttributeError) as error:
        raise NotHere(f"torch {torch.__version__} has no devices written in Python: {error}") from error


def _sound(record: Record) -> Record:
    expect(record.end is not None and record.end.own_errors == 0, f"internal errors: {record.end}")
    expect(record.end is not None and record.end.exception is None, f"the program raised {record.raised}")
    return record


def _a_step(place: Place, options: Options, most: int) -> str:
    few, _ = count_waits(place, source(place, 4), options)
    many, _ = count_waits(place, source(place, 14), options)
    expect(many - few <= 10 * most, f"{many - few} waits in ten steps")
    return f"{(many - few) / 10:.1f} a step"


def _more_tensors(place: Place) -> str:
    texts = [source(place, 6, layers) for layers in (1, 12)]
    plain = [waits_of(place, partial(_plain, text)) for text in texts]  # each parameter's copy to the device is one
    found = [count_waits(place, text, Options(every=1))[0] for text in texts]
    more = [captured - own for captured, own in zip(found, plain, strict=True)]
    expect(more[0] == more[1], f"{found[0]} waits with 1 layer, {found[1]} with 12; {plain[0]} and {plain[1]} plain")
    return f"{more[0]} waits more than plain of a run with 1 layer ({plain[0]} plain) and with 12 ({plain[1]} plain)"


def _arrived(place: Place) -> str:
    _, record = count_waits(place, source(place, 3), Options(every=1))
    steps = record.steps
    expect(all(row.loss is not None and row.grad_norm is not None for row in steps), f"{steps}")
    missing = [row for row in record.node_passes if row.position is not None and row.grad_output is None]
    expect(not [row for row in missing if not row.hole], f"{len(missing)} gradients without numbers")
    values = [row.value for row in record.snapshots if row.value is not None]
    expect(values and all(math.isfinite(row.norm or 0.0) for row in values), "no values of tensors")
    arrived = len(record.node_passes) - len(missing)
    return f"{len(values)} values and {arrived} gradients of {len(steps)} steps"


def _profiled(place: Place) -> str:
    if not place.is_cuda:
        raise NotHere("calls of CUDA's runtime are its subject")
    plain, captured = (_waiting_calls(place, run) for run in (_plain, _at_state))
    expect(captured <= plain, f"{captured} waiting calls with capture, {plain} plain")
    return f"{captured} waiting calls of 8 steps at tier state, {plain} plain; while it profiles no values are read"


def _plain(text: str) -> None:
    exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})


def _at_state(text: str) -> None:
    _sound(run_source(text, options=Options(tier="state", every=1)))


def _waiting_calls(place: Place, run: Callable[[str], Any]) -> int:
    from torch.profiler import ProfilerActivity, profile

    run(source(place, 2))
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        run(source(place, 8))
    return sum(event.count for event in profiler.key_averages() if event.key in WAITING_CALLS)
