"""Watches models and optimizers from outside, in a program that runs already.

Nothing of the program is rewritten: it is seen where it calls torch. On `stop` torch is exactly as it was.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

import torch

from backprobe.capture.instrument.installer import Instrument
from backprobe.capture.options import Options
from backprobe.capture.output.writer import Sink
from backprobe.capture.program.header import header
from backprobe.capture.recorder import CaptureSession
from backprobe.capture.rewriting.sites import Sites
from backprobe.capture.rewriting.untapped_sites import OutsideSites
from backprobe.record import End, Record

DEVIATIONS: Final = (
    "weakref.getweakrefs() and getweakrefcount() are functions of Backprobe, which leave out our references",
    "names __bp_*__ in builtins",
    "sys.settrace and profilers see the instrument",
    "watch: names and versions of locals, and the lines of nodes and in-place operations, are not seen",
)


class Watch:
    """One capture of a running program, from `start` to `stop`."""

    def __init__(self, options: Options, sink: Sink) -> None:
        self._recorder = CaptureSession(options, sink, OutsideSites)
        self._instrument = Instrument()
        self._pid = os.getpid()

    def start(self, watched: Sequence[Any], names: Sequence[str | None], frame: FrameType | None) -> None:
        """Begin.

        Args:
            names: What the caller calls each thing that is watched; None where that is no name.
            frame: The caller's, for the site at which they are first seen.

        Raises:
            RuntimeError: another run is being captured in this process.
        """
        recorder = self._recorder
        self._instrument.put(recorder)
        try:
            recorder.writer.begin(header(recorder.options, sys.argv, self._instrument.fallbacks, DEVIATIONS))
            recorder.guard.run(self._meet, watched, names, _site(recorder.sites, frame))
        except BaseException:
            self._take_out()
            raise

    def stop(self, error: BaseException | None) -> End | None:
        """End, with the exception that left the block; None in a forked child, whose record is its parent's."""
        if os.getpid() != self._pid:
            return None
        recorder = self._recorder
        guard = recorder.guard
        number: int | None = None
        try:
            if error is not None:
                number = guard.run(recorder.failures.uncaught, error, error.__traceback__)
            guard.run(recorder.finish)
            end = End(
                ending="ended" if error is None else "raised", exit_code=0 if error is None else 1, exception=number,
                duration_ns=recorder.writer.time_ns(), own_ns=guard.own_ns, own_errors=guard.errors,
                own_error=guard.first,
            )  # fmt: skip
            recorder.writer.end(end)
            return end
        finally:
            self._take_out()

    def _take_out(self) -> None:
        self._instrument.take_out()
        self._recorder.close()

    def _meet(self, watched: Sequence[Any], names: Sequence[str | None], site: int | None) -> None:
        recorder = self._recorder
        recorder.threads.here()
        for thing, name in zip(watched, names, strict=True):
            if isinstance(thing, torch.nn.Module):
                recorder.modules.bind(thing, name, site)
            elif isinstance(thing, torch.optim.Optimizer):
                recorder.optimizers.bind(thing, name, site)
            else:
                recorder.see(thing, site)


def record_nothing(options: Options, reason: str) -> Record:
    """Make the record of a watch that records nothing: no rows, and the reason in its header."""
    end = End(ending="ended", exit_code=0, duration_ns=0, own_ns=0, own_errors=0)
    return Record(header=header(options, sys.argv, (), (reason,)), end=end)


def check(watched: Sequence[Any]) -> None:
    """Refuse what cannot be watched.

    Raises:
        TypeError: something is no module, optimizer or tensor.
    """
    for thing in watched:
        if not isinstance(thing, (torch.nn.Module, torch.optim.Optimizer, torch.Tensor)):
            raise TypeError(
                f"watch() takes modules, optimizers and tensors, and was given a {type(thing).__name__}; "
                "a trainer's model is usually its attribute `.model`"
            )


def names_given(frame: FrameType | None, count: int) -> list[str | None]:
    """Read from a caller's source what it calls the positional arguments of the call that it is in."""
    call = None if frame is None else _call_at(frame)
    if call is None or len(call.args) != count or any(isinstance(arg, ast.Starred) for arg in call.args):
        return [None] * count
    return [ast.unparse(arg) if isinstance(arg, (ast.Name, ast.Attribute)) else None for arg in call.args]


def _call_at(frame: FrameType) -> ast.Call | None:
    """Find the call that a frame is in, from its source."""
    where = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return next((n for n in calls if (n.lineno, n.end_lineno, n.col_offset, n.end_col_offset) == where), None)


def _site(sites: Sites, frame: FrameType | None) -> int | None:
    """Find the innermost statement of the program: a library's training loop may have called what watches."""
    while frame is not None and not sites.is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else sites.of_frame(frame)
