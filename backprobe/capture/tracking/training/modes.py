"""The modes of torch that the program switches: which statement, how, from what to what, and for how long."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import torch

from backprobe.record import Mode
from backprobe.record.rows.interventions import ModeForm, ModeKind

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_MOST_OPEN: Final = 256
_MOST: Final = 20_000
"""Rows that are kept: a region inside a hot loop is entered at every step."""


class Modes:
    """Writes down switches of modes.

    Attributes:
        open: Regions that are entered and not left: whose, by id, with their rows.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self.open: list[tuple[int, Mode]] = []
        self._next = 0

    def note_switch(self, by: str, subject: Any, after: Any, caller: FrameType, frame: FrameType) -> None:
        """Note that a mode is about to be switched: `caller` called the switch, `frame` is the program's behind it."""
        recorder = self._recorder
        if by in _SWITCHED_BEFORE and self._is_with(id(subject)):
            return
        if by == "train" and type(after) is not bool:
            return  # torch raises
        if self._next >= _MOST:
            recorder.writer.cut("modes", "more switches of modes than are kept", _MOST)
            return
        site = recorder.sites.of_frame(frame)
        recorder.moments.statement(site)
        kind = _KINDS[by]
        row = Mode(
            n=self._next, kind=kind, before=_read_mode(kind, subject), after=_text(after), how=_how(by, caller, frame),
            switched_by="torch.nn.Module.train" if by == "train" else f"torch.{by.removesuffix('()')}",
            thread=recorder.timeline().thread, site=site, moment=recorder.moments.now(),
            module=recorder.modules.number_of(subject) if kind == "training" else None,
            device=str(subject.device) if kind == "autocast" else None,
        )  # fmt: skip
        self._next += 1
        recorder.writer.add("modes", row)
        if by not in ("train", "use_deterministic_algorithms"):
            # an entry of that id is of an object that is gone; a plain call is never left
            self.open = [(key, old) for key, old in self.open if key != id(subject)][-_MOST_OPEN:]
            self.open.append((id(subject), row))

    def _is_with(self, key: int) -> bool:
        """Return whether this is the `with` of an object whose `__init__` switched the mode; note that in its row."""
        for index in range(len(self.open) - 1, -1, -1):
            opened_key, row = self.open[index]
            if opened_key == key and row.how == "call":
                row = msgspec.structs.replace(row, how="with")
                self.open[index] = (key, row)
                self._recorder.writer.add("modes", row)
                return True
        return False

    def leave_region(self, subject: Any) -> None:
        """Note that a region ended."""
        for index in range(len(self.open) - 1, -1, -1):
            key, row = self.open[index]
            # a plain call is never left: its object is gone, and one of torch's own may have got its id
            if key == id(subject) and row.how != "call":
                del self.open[index]
                recorder = self._recorder
                recorder.writer.add("modes", msgspec.structs.replace(row, until=recorder.moments.now()))
                return


_SWITCHED_BEFORE: Final = frozenset({"set_grad_enabled", "set_detect_anomaly"})
_CALLS: Final = frozenset({"set_grad_enabled()", "set_detect_anomaly()", "train", "use_deterministic_algorithms"})
_KINDS: Final[dict[str, ModeKind]] = {
    "no_grad": "grad",
    "enable_grad": "grad",
    "set_grad_enabled": "grad",
    "set_grad_enabled()": "grad",
    "inference_mode": "inference",
    "autocast": "autocast",
    "detect_anomaly": "anomaly",
    "set_detect_anomaly": "anomaly",
    "set_detect_anomaly()": "anomaly",
    "train": "training",
    "use_deterministic_algorithms": "deterministic",
}


def _how(by: str, caller: FrameType, frame: FrameType) -> ModeForm:
    """Between a region and the program may stand a decorator or a stack, between `train` and it `eval`."""
    decorates = caller is not frame and (caller.f_code.co_filename.endswith("_contextlib.py") or _is_wrapper(caller))
    if decorates:
        return "decorator"
    return "call" if by in _CALLS else "with"


def _is_wrapper(caller: FrameType) -> bool:
    return caller.f_code.co_name.startswith("decorate_")


def _read_mode(kind: ModeKind, subject: Any) -> str:
    """Return what a mode is now."""
    if kind == "grad":
        return str(torch.is_grad_enabled())
    if kind == "inference":
        return str(torch.is_inference_mode_enabled())
    if kind == "autocast":
        on = torch.is_autocast_enabled(subject.device)
        return _text(torch.get_autocast_dtype(subject.device) if on else False)
    if kind == "training":
        return str(bool(subject.__dict__.get("training")))
    return str(torch.is_anomaly_enabled() if kind == "anomaly" else torch.are_deterministic_algorithms_enabled())


def _text(value: Any) -> str:
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else str(bool(value))
