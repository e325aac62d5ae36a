"""What is recorded of programs on the device: each prints the same with capture as without, and its record is asked.

`programs.py` has the programs. Where CUDA has something that a CPU has not, the stand-in runs the nearest code there
is, and the row says what that was.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import torch

from backprobe.capture import run_source
from backprobe.record import Record, check
from tests.gpu.place import Place, Row, expect, rows
from tests.gpu.programs import PROGRAMS, Program

Ask = Callable[[Place, Record, str], str]


def prove(place: Place) -> Iterator[Row]:
    """One row for each program."""
    return rows(place, ((name, partial(_check, place, name, program)) for name, program in PROGRAMS.items()))


def _check(place: Place, name: str, program: Program) -> str:
    source = program.text_for(place)
    plain, record, said = printed(source), *recorded(source)
    expect(said == plain, f"it prints {said!r}, and {plain!r} without capture")
    if place.is_cuda:
        expect(any(row.device.startswith("cuda") for row in record.tensors), "no tensor of it lay on the device")
    note = ASKED[name](place, record, said)
    return note if place.is_cuda or not program.instead else f"{program.instead}{'; ' if note else ''}{note}"


def printed(source: str) -> str:
    """What a program prints by itself."""
    out = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def recorded(source: str) -> tuple[Record, str]:
    """Its record, which must be whole and sound, and what it printed under capture."""
    out = io.StringIO()
    torch.manual_seed(0)
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = run_source(source)
    check(record)
    end = record.end
    if end is None or end.own_errors:
        raise AssertionError(f"errors of the recorder's own: {end and end.own_error}")
    expect(record.header.fallbacks == (), f"fallbacks: {record.header.fallbacks}")
    return record, out.getvalue()


def tensor_named(record: Record, name: str) -> Any:
    """The tensor that a name held last."""
    bound = [row for row in record.bindings if row.name == name]
    expect(bound, f"nothing was bound to {name}")
    return next(row for row in record.tensors if row.tensor == bound[-1].tensor)


def states(record: Record, name: str) -> list[Any]:
    """The snapshots of the tensor that a name held last."""
    number = tensor_named(record, name).tensor
    return [row for row in record.snapshots if row.tensor == number]


def _flags(_: Place, record: Record, __: str) -> str:
    w, b, c = (states(record, name)[-1] for name in "wbc")
    expect((w.is_leaf, w.requires_grad, w.grad) == (True, True, "present"), f"w is {w}")
    expect((b.is_leaf, b.grad_fn, b.retains_grad) == (False, "MulBackward0", True), f"b is {b}")
    expect((c.is_leaf, c.requires_grad) == (True, False), f"c is {c}")
    return f"w of {tensor_named(record, 'w').device}"


def _reasons(_: Place, record: Record, __: str) -> str:
    x = tensor_named(record, "x")
    expect(x.created_how == "ToCopyBackward0", f"x came from {x.created_how}")
    expect(states(record, "x")[-1].grad == "not-read", "`.grad` of a copy was read by us")
    read = [row.was_none for row in record.grad_reads if row.tensor == x.tensor]
    expect(read == [True], f"reads of its `.grad`, and whether that was None: {read}")
    return "the copy of a leaf is none, and its `.grad` is None"


def _in_place(_: Place, record: Record, __: str) -> str:
    changed = [row for row in record.inplace_events if row.tensor == tensor_named(record, "w").tensor]
    expect(len(changed) == 2, f"{len(changed)} changes of w")
    raised = [row for row in record.raised if row.caught]
    expect([row.family for row in raised] == ["changed-in-place"], f"raised: {[row.family for row in raised]}")
    return ""


def _retention(_: Place, record: Record, __: str) -> str:
    kept, freed = record.backward_calls
    held = 4 * 1024  # exp saves its result, 1024 numbers of four bytes; sum saves nothing
    expect(kept.held_bytes == held, f"held {kept.held_bytes}, not {held}")
    expect((kept.nodes_freed, kept.freed_bytes) == (0, 0), f"the first call freed {kept.freed_bytes} bytes")
    expect(freed.freed_bytes == held, f"the second call freed {freed.freed_bytes} bytes")
    return f"{held} bytes held by the graph, freed by the second call"


def _moved(_: Place, record: Record, __: str) -> str:
    expect(tensor_named(record, "back").device == "cpu", f"back is on {tensor_named(record, 'back').device}")
    expect(any(row.kind == "populate" for row in record.leaf_grads), "the gradient did not reach the leaf")
    return "the gradient went back over the copy"


def _same_gradient(_: Place, record: Record, __: str) -> str:
    gradients = [row.grad_stats for row in states(record, "w") if row.grad_stats is not None]
    expect(gradients, "the gradient was not measured")
    expect(gradients[-1].norm == 8.0, f"its norm is {gradients[-1].norm}")
    return "the gradient was measured, norm 8"


def _autocast(place: Place, record: Record, __: str) -> str:
    told = {row.autocast for row in record.moments if row.autocast}
    expect(any(place.device in text and "bfloat16" in text for text in told), f"moments say {told}")
    expect(tensor_named(record, "y").dtype == "bfloat16", f"y is {tensor_named(record, 'y').dtype}")
    return ""


def _overflow(_: Place, record: Record, said: str) -> str:
    steps = [row for row in record.optimizer_events if row.kind == "scaler_step"]
    expect([row.skipped for row in steps] == [True, False], f"skipped: {[row.skipped for row in steps]}")
    arrived = [row.grad_output for row in record.node_passes if row.grad_output is not None]
    arrived += [row.grad_stats for row in record.snapshots if row.grad_stats is not None]
    expect(any(row.inf for row in arrived), "no infinite gradient was recorded")
    expect(said.split() == ["32768.0"], f"the scale is {said}")
    return "the first step was left out, with infinite gradients in the record"


def _graphed(_: Place, record: Record, said: str) -> str:
    expect(said.strip() == "[6.0, 6.0, 6.0]", f"the replay gave {said}")
    return ""


def _compiled(_: Place, record: Record, __: str) -> str:
    expect(len(record.backward_calls) == 1, f"{len(record.backward_calls)} backward calls")
    expect(states(record, "w")[-1].grad == "present", "no gradient arrived")
    return ""


ASKED: Final[dict[str, Ask]] = {
    "flags": _flags,
    "reasons": _reasons,
    "in-place": _in_place,
    "retention in bytes": _retention,
    "streams": _same_gradient,
    ".to": _moved,
    "pinned memory, non_blocking": _same_gradient,
    "autocast": _autocast,
    "GradScaler that overflows": _overflow,
    "CUDA graphs": _graphed,
    "torch.compile": _compiled,
}
"""What is asked of the record of each program."""
