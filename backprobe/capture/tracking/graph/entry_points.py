"""Through which Python entry the engine was reached."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any

from backprobe.record.rows.graph import EntryName

_FRAMES = 12
_CHECK = "/backprobe/capture/gradient_check/"
"""Its frames stand between the engine and the entry where gradients are checked."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A call of `autograd.backward` or `autograd.grad` in progress.

    Attributes:
        given: Per root, whether a gradient was handed in; shorter where none was.
        retain_graph: As written; None if it was defaulted. before: the exception being handled when it began.
        first_call: How often the engine had been reached then.
    """

    kind: str
    roots: Any
    given: tuple[bool, ...]
    retain_graph: bool | None
    before: BaseException | None
    first_call: int


def handed_in(gradients: Any) -> tuple[bool, ...]:
    """Per root, whether an entry was given a gradient for it: one tensor, a tuple with holes, or None."""
    if gradients is None:
        return ()
    if isinstance(gradients, (tuple, list)):
        return tuple(gradient is not None for gradient in gradients)
    return (True,)


def entry_name(kind: str | None, frame: FrameType | None) -> EntryName:
    """Name the entry: what the frames around the engine's call belong to, outwards to the user's."""
    found: EntryName = "autograd.grad" if kind == "grad" else "autograd.backward"
    for _ in range(_FRAMES):
        if frame is None:
            break
        filename, function = frame.f_code.co_filename, frame.f_code.co_name
        if filename.endswith("torch/_tensor.py") and function == "backward":
            found = "Tensor.backward"
        elif filename.endswith("torch/autograd/functional.py"):
            return "functional"
        elif filename.endswith("torch/utils/checkpoint.py"):
            return "checkpoint"
        elif "/torch/" not in filename and _CHECK not in filename:
            break
        frame = frame.f_back
    return found
