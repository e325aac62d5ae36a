"""A capture inside another one of the same process leaves the recording to it."""

from __future__ import annotations

import sys

from backprobe.capture.instrument.taps import Active


def leave_recording(what: str) -> str | None:
    """Say why `what` records nothing here, because another capture of this process is active; None: none is.

    The reason is printed to standard error once for each capture.
    """
    recorder = Active.recorder
    if recorder is None:
        return None
    reason = "another capture of this process is active, which records it too"
    if not recorder.was_left_to:
        recorder.was_left_to = True
        sys.stderr.write(f"backprobe: `{what}` records nothing here: {reason}\n")
    return reason
