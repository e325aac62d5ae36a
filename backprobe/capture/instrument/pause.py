"""Takes the instrument of statements, modules and graphs off between the steps that are sampled, and puts it back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from backprobe.capture.instrument import taps

if TYPE_CHECKING:
    from types import FrameType

    from backprobe.capture.recorder import CaptureSession

_CALL_FUNCTION: Final = "_wrapped_call_impl"


class Switch:
    """Off and on."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._sites = 0
        self._rebindable: frozenset[tuple[str, str]] = frozenset()

    @property
    def reads(self) -> bool:
        """The backward calls of a step in between are followed."""
        return taps.Active.reads

    @reads.setter
    def reads(self, on: bool) -> None:
        taps.Active.reads = on

    def off(self) -> None:
        """Remove every tap, sentinel and strong reference of Backprobe."""
        recorder = self._recorder
        recorder.bury()
        recorder.timeline().close(None)
        recorder.moments.close_statement()
        recorder.nodes.detach()
        recorder.statements.rest()
        recorder.writer.flush()
        taps.attend(False)

    def resume_capture(self) -> None:
        """Resume capture. What happened meanwhile belongs to no statement."""
        recorder = self._recorder
        taps.attend(True)
        timeline = recorder.timeline()
        timeline.close(None)
        timeline.grad_bases.clear()
        recorder.statements.resume(_open_module_calls())
        recorder.moments.close_statement()
        recorder.bury()
        self._forget_names()

    def _forget_names(self) -> None:
        """Names that a statement in a function or a loop binds may hold something else by now."""
        facts = self._recorder.sites.facts
        if self._sites != len(facts):
            rebound = [site for site in facts[self._sites :] if not site.top or site.scope.loop_line is not None]
            self._rebindable = self._rebindable.union(key for site in rebound for key in site.keys)
            self._sites = len(facts)
        names = self._recorder.names
        held = names.held
        names.forget([key for key in held if key in self._rebindable or "." in key[1] or "[" in key[1]])


def _open_module_calls() -> int:
    """Count the module calls that this thread is in."""
    count = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        count += frame.f_code.co_name == _CALL_FUNCTION
        frame = frame.f_back
    return count
