"""Out of memory on the device: a finding at the statement that asked for too much, with what held the memory.

On CUDA a program fills most of the device with a graph and then asks for more than is left. On the stand-in it asks the
CPU for more than any machine has; torch's own allocator refuses both.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import torch

from backprobe.capture import run_source
from backprobe.record import Record
from backprobe.rules import judge
from tests.gpu.place import Place, Row, expect, rows

PROGRAM: Final = """
import torch
w = torch.ones(WIDTH, device=DEVICE, requires_grad=True)
kept = []
for step in range(4):
    y = (w * 2).exp()
    kept.append(y)
wall = torch.empty(WANTED, dtype=torch.uint8, device=DEVICE)
"""


def prove(place: Place) -> Iterator[Row]:
    """Rows for the exception, the finding, and what it names."""
    return rows(place, _checks(place))


def _checks(place: Place) -> Iterator[tuple[str, Callable[[], str]]]:
    found: dict[str, Any] = {}
    yield "the program ends with torch's own error", partial(_runs, place, found)
    yield "a finding stands at the statement that asked", partial(_stands, found)
    yield "it names what held the memory", partial(_names, found)
    if place.is_cuda:
        yield "the device's memory is given back", partial(_given_back, found)


def _runs(place: Place, found: dict[str, Any]) -> str:
    if place.is_cuda:
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        found["before"] = torch.cuda.memory_allocated()
        width, wanted = free // 4 // 20, total  # nine tensors of a twentieth: w, four graphs of two
    else:
        width, wanted = 1 << 20, 1 << 47
    text = PROGRAM.replace("DEVICE", repr(place.device)).replace("WIDTH", str(width)).replace("WANTED", str(wanted))
    with contextlib.redirect_stderr(io.StringIO()):
        record = run_source(text)
    expect(record.end is not None and record.end.own_errors == 0, f"internal errors: {record.end}")
    raised = record.raised[-1]
    expect(raised.family == "out-of-memory", f"it raised {raised.type}: {raised.message[:200]}")
    found["record"], found["bytes"] = record, width * 4
    return f"{raised.type}"


def _finding(found: dict[str, Any]) -> Any:
    record: Record = found["record"]
    findings = [finding for finding in judge(record).findings if finding.rule.name == "out-of-memory"]
    expect(len(findings) == 1, f"{len(findings)} findings of out-of-memory")
    return findings[0]


def _stands(found: dict[str, Any]) -> str:
    finding = _finding(found)
    expect(finding.location.region.start_line == 8, f"it stands at line {finding.location.region.start_line}")
    return finding.message.splitlines()[0]


def _names(found: dict[str, Any]) -> str:
    finding = _finding(found)
    held = finding.evidence["held_bytes"]
    expect(held >= 5 * found["bytes"], f"{held} bytes are reported; w and four results take {5 * found['bytes']}")
    expect("`y`" in finding.message and "`w`" in finding.message, finding.message)
    return finding.message.splitlines()[1]


def _given_back(found: dict[str, Any]) -> str:
    left = torch.cuda.memory_allocated() - found["before"]
    expect(left < found["bytes"], f"{left} bytes of the program are still held")
    return f"{left} bytes more than before the program"
