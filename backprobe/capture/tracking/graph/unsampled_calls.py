"""The engine's calls in a step that is not taken in full: two marks per call, and one body at its end; `.grad` reads.

1. Nothing here asks torch for anything: neither the guard nor a lock is needed until a call ends.
2. A call ends as it began, though its step, or the next one, may have begun in between: optimizers step in hooks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from backprobe.capture.tracking.tensors.identity import OwnRef
from backprobe.capture.tracking.timeline import LIGHT

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession


class LightEntry(NamedTuple):
    """An entry, `autograd.backward` or `autograd.grad`, that is open.

    Attributes:
        before: The exception in hand when it began: it is not its own. first_call: The engine's calls by then.
    """

    before: BaseException | None
    first_call: int


class Light:
    """Follows the engine's calls for the sampler, between the steps that are taken in full."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._open: dict[int, list[tuple[BaseException | None, bool]]] = {}
        self._bases: dict[int, tuple[int, OwnRef[torch.Tensor]]] = {}

    def grad_base(self, site: int, given: Any) -> None:
        """`.grad` is about to be read of something; nothing is kept of a read that only asks whether it is None."""
        if issubclass(type(given), torch.Tensor) and self._recorder.sites.facts[site].how != "tested":
            self._bases[threading.get_ident()] = site, OwnRef(given)

    def take_base(self, site: int) -> OwnRef[torch.Tensor] | None:
        """Of which tensor `.grad` was read just now."""
        known = self._bases.pop(threading.get_ident(), None)
        return None if known is None or known[0] != site else known[1]

    def note_entry(self) -> None:
        """Note that an entry begins."""
        recorder = self._recorder
        recorder.timeline().entries.append(LightEntry(sys.exc_info()[1], recorder.calls.reached))

    def leave_entry(self) -> bool:
        """Whether the entry that ends is one of these; an exception before the engine was reached is an anomaly."""
        recorder = self._recorder
        entries = recorder.timeline().entries
        if not entries or type(entries[-1]) is not LightEntry:
            return False
        entry: Any = entries.pop()
        error = sys.exc_info()[1]
        if error is not None and error is not entry.before and entry.first_call == recorder.calls.reached:
            recorder.guard.run(recorder.sampler.backward_ended, error, False)
        return True

    def begins(self, roots: Sequence[Any], options: dict[str, Any]) -> None:
        """Note that the engine is called."""
        recorder = self._recorder
        recorder.calls.reached += 1
        recorder.timeline().calls.append(LIGHT)
        accumulates = bool(options.get("accumulate_grad", True))
        if accumulates:
            recorder.guard.run(recorder.sampler.note_roots, roots)
        self._open.setdefault(threading.get_ident(), []).append((sys.exc_info()[1], accumulates))

    def ends(self) -> bool:
        """Whether the call that ends is one of these; an exception that was not there when it began is its own."""
        recorder = self._recorder
        calls = recorder.timeline().calls
        if not calls or calls[-1] != LIGHT:
            return False
        calls.pop()
        before, accumulates = self._open[threading.get_ident()].pop()
        error = sys.exc_info()[1]
        recorder.guard.run(recorder.sampler.backward_ended, None if error is before else error, accumulates)
        return True
