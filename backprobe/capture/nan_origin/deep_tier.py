"""The deep tier: the program is run a second time, in a separate process, for the op that made the first NaN.

1. Only if the first run saw a value that is not finite, and never with `torch.profiler`, which such a run would crash.
2. What the second run tells holds as far as the numbers it bound are those of the first run, and not further.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import torch

import backprobe
from backprobe.capture.nan_origin.op_mode import NonFiniteOp, What
from backprobe.capture.output.text import cut
from backprobe.record import FrameReader, Origin, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backprobe.capture.output.writer import Sink
    from backprobe.capture.recorder import CaptureSession
    from backprobe.record import Statistics

DEVIATION: Final = (
    "where a value is not finite the program runs a second time, in another process and with its output thrown away: "
    "what it does to files and other systems it does twice. There torch.compile runs eagerly, and only the thread that "
    "starts the program is looked at"
)
_PROFILERS: Final = ("torch.profiler", "autograd.profiler", "from torch import profiler")
_SECONDS: Final = 120.0
_TIMES: Final = 30
"""The second run may take so many times as long as the first one, and `_SECONDS` more."""

_CLOSE: Final = 1e-3
"""Norms that differ by less are equal: below a dispatch mode torch takes other fast paths, with other roundings."""


@dataclass(frozen=True, slots=True)
class Again:
    """How to run the same program again: a function of `launch`, and what it was given, by place or name."""

    function: str
    given: tuple[Any, ...]
    named: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class States:
    """The random generators before the program began; numpy's: None if it was not loaded."""

    torch: bytes
    python: tuple[int, list[int], float | None]
    numpy: tuple[str, list[int], int, int, float] | None


@dataclass(frozen=True, slots=True)
class Job:
    """What the second process is asked to find."""

    again: Again
    options: dict[str, Any]
    states: States


@dataclass(frozen=True, slots=True)
class Report:
    """What the second process tells: its record, as frames, and the ops it found."""

    frames: tuple[bytes, ...]
    found: tuple[NonFiniteOp, ...]


class Deep:
    """Reads the first run's record as it is written, and adds the origins to it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
        self._folder = Path.cwd()
        self._states = States(b"", (0, [], None), None)

    def sink(self, data: bytes) -> None:
        """Where the first run writes."""
        self._reader.feed(data)
        self._sink(data)

    def begins(self) -> None:
        """Save the states of the random number generators as the program begins."""
        version, numbers, gauss = random.getstate()
        loaded, numpy = sys.modules.get("numpy"), None
        if loaded is not None:
            name, keys, *rest = loaded.random.get_state()
            numpy = (name, keys.tolist(), *rest)
        self._states = States(bytes(torch.get_rng_state().tolist()), (version, list(numbers), gauss), numpy)

    def look(self, recorder: CaptureSession, again: Again) -> None:
        """Run the program again after its end, if there is something to look for."""
        recorder.writer.flush()
        first = self._reader.record()
        wanted = None if first is None else not_finite(first)
        if first is None or wanted is None:
            return
        options = recorder.options
        asked: dict[str, Any] = {"entry": options.entry, "first_steps": options.first_steps, "every": options.every}
        asked["overlay"] = dict(options.overlay)
        job = Job(again, {**asked, "caps": msgspec.to_builtins(options.caps)}, self._states)
        for row in self._rows(first, wanted, job, recorder.writer.time_ns()):
            recorder.writer.add("origins", row)

    def _rows(self, first: Record, wanted: What, job: Job, first_ns: int) -> Iterator[Origin]:
        if any(word in source.text for source in first.sources for word in _PROFILERS):
            yield _none(wanted, "the program uses torch.profiler, which crashes below a dispatch mode: not run again")
            return
        try:
            report = self._second(job, _SECONDS + _TIMES * first_ns / 1e9)
        except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
            yield _none(wanted, f"the second run did not end well: {type(error).__name__}")
            return
        yield from compare_runs(first, report, wanted)

    def _second(self, job: Job, seconds: float) -> Report:
        """Run the program in a separate process.

        Raises:
            OSError, subprocess.SubprocessError: it could not be started, took too long, or died.
            msgspec.MsgspecError: what it left is no report.
        """
        home = str(Path(str(backprobe.__file__)).resolve().parents[1])
        with tempfile.TemporaryDirectory() as folder:
            asked, told = Path(folder, "asked"), Path(folder, "told")
            asked.write_bytes(msgspec.msgpack.encode(job))
            code = (
                "import sys; sys.path.append(sys.argv[3]); from backprobe.capture.nan_origin.rerun import main; main()"
            )
            subprocess.run(
                [sys.executable, "-c", code, str(asked), str(told), home],
                cwd=self._folder, timeout=seconds, check=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            return msgspec.msgpack.decode(told.read_bytes(), type=Report)


def not_finite(record: Record) -> What | None:
    """Whether a value that was looked at holds a NaN, or only an infinity; None: neither."""
    seen: list[Statistics | None] = []
    for row in record.snapshots:
        seen += [row.value, row.grad_stats]
    seen += [row.grad_output for row in record.node_passes]
    if any(statistics is not None and statistics.nan for statistics in seen):
        return "nan"
    return "inf" if any(statistics is not None and statistics.inf for statistics in seen) else None


def compare_runs(first: Record, report: Report, wanted: What) -> Iterator[Origin]:
    """Yield the origins, as far as the second run followed the first one."""
    reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
    for frame in report.frames:
        reader.feed(frame)
    second = reader.record()
    if second is None:
        yield _none(wanted, "the second run left no record")
        return
    apart = _find_divergence(first, second)
    found = [seen for seen in report.found if wanted in ("nan", seen.what)]
    if apart is not None:
        found = [seen for seen in found if seen.moment + 1 < apart[0]]
    if not any(seen.what == wanted for seen in found):
        yield _not_found(first, wanted, apart)
    for n, seen in enumerate(found, start=int(not any(seen.what == wanted for seen in found))):
        yield _origin(n, seen, first, second)


def _origin(n: int, seen: NonFiniteOp, first: Record, second: Record) -> Origin:
    where = [] if seen.node is None else [f"in {seen.node}"]
    calls = [row.chain for row in second.module_calls if row.module_call == seen.module_call]
    where += [f"in the module call {chain}" for chain in calls[-1:]]
    moments, sites = {row.moment for row in first.moments}, {row.site for row in first.sites}
    called = {row.call for row in first.backward_calls}
    direction: Literal["forward", "backward"] = "backward" if seen.backward else "forward"
    return Origin(
        n=n, direction=direction, op=seen.op, what=seen.what, inputs=seen.inputs,
        site=seen.site if seen.site in sites else None, moment=seen.moment + 1 if seen.moment + 1 in moments else None,
        call=seen.call if seen.backward and seen.call in called else None, why=cut(", ".join(where)) or None,
    )  # fmt: skip


def _find_divergence(first: Record, second: Record) -> tuple[int, str] | None:
    """Find the moment at which the runs first bound different numbers, and say which."""
    ours, theirs = ({(row.moment, row.tensor): row.value for row in record.snapshots} for record in (first, second))
    names = {row.tensor: row.name for row in first.bindings}
    for moment, tensor in sorted(ours.keys() | theirs.keys()):
        what = f"`{names[tensor]}`" if names.get(tensor) else f"tensor {tensor}"
        if ((moment, tensor) in ours) is not ((moment, tensor) in theirs):
            return moment, f"the second run diverged: only one of the two runs changed {what} there"
        a, b = ours[moment, tensor], theirs[moment, tensor]
        if a is None or b is None or a.norm is None or b.norm is None or _equal(a.norm, b.norm):
            continue
        return moment, f"the second run diverged: the norm of {what} was {a.norm:.6g}, then {b.norm:.6g}"
    return None


def _equal(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_CLOSE, abs_tol=1e-6)


def _none(what: What, why: str) -> Origin:
    return Origin(n=0, direction="forward", op="", what=what, why=why)


def _not_found(first: Record, what: What, apart: tuple[int, str] | None) -> Origin:
    """No op is named: the second run did something else, or none made the value from finite ones."""
    if apart is None:
        word = "NaN" if what == "nan" else "infinity"
        return _none(what, f"no op made the first {word} from finite values: it came in from outside of torch")
    moment = apart[0] if any(row.moment == apart[0] for row in first.moments) else None
    return Origin(n=0, direction="forward", op="", what=what, moment=moment, diverged=True, why=cut(apart[1]))
