"""Looks at every ATen op for the first NaN, and the first infinity before it: the second run of the deep tier.

1. An op is the origin if its result holds a NaN, or an infinity, and none of what it read did.
2. A number that the program wrote itself is no origin: an op that is handed an infinity as a plain argument, and memory
   that nobody filled.
3. After the first NaN nothing is looked at any more: what follows only spreads it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from backprobe.capture.output.text import cut
from backprobe.capture.torch_access.torch_internals import current_pass
from backprobe.capture.tracking.timeline import open_call

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

What = Literal["nan", "inf"]
_UNFILLED: Final = ("empty", "new_empty", "resize", "set_")
_MOST_INPUTS: Final = 8


@dataclass(frozen=True, slots=True)
class NonFiniteOp:
    """An op that made the first NaN or infinity.

    Attributes:
        moment: The newest moment by then. module_call: The innermost open one. node: Name of the autograd node whose
            backward ran it.
    """

    what: What
    op: str
    backward: bool
    site: int | None
    moment: int
    call: int | None
    module_call: int | None
    node: str | None
    inputs: str


class OriginMode(TorchDispatchMode):
    """Notes the ops; `found` holds at most one of each kind."""

    def __init__(self, recorder: CaptureSession) -> None:
        super().__init__()
        self.found: dict[What, NonFiniteOp] = {}
        self._recorder = recorder
        self._failed = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an op; look at what it read and made until the first NaN."""
        kwargs = kwargs or {}
        if "nan" in self.found or self._failed or str(func.__name__).startswith(_UNFILLED):
            return func(*args, **kwargs)
        read = tree_leaves((args, kwargs))
        before = _kinds(read) if func._schema.is_mutable else None  # afterwards its inputs are what it made
        result = func(*args, **kwargs)
        try:
            made = _kinds(tree_leaves(result) if before is None else [*tree_leaves(result), *read])
            if made:
                new = made - (_kinds(read) if before is None else before)
                self._note(func, new - _find_constants(read), read)
        except Exception as error:
            self._failed = True
            self._recorder.guard.note(error)
        return result

    def _note(self, func: Any, kinds: frozenset[What] | set[What], read: list[Any]) -> None:
        recorder = self._recorder
        made: set[What] = {"nan"} if "nan" in kinds else set(kinds)
        for what in made - set(self.found):
            timeline = recorder.timeline()
            backward = current_pass() != -1
            node = torch._C._current_autograd_node() if backward else None
            self.found[what] = NonFiniteOp(
                what=what, op=str(func), backward=backward, site=recorder.calling_site(), moment=recorder.moments.last,
                call=open_call(timeline),
                module_call=timeline.modules[-1] if timeline.modules else None,
                node=None if node is None else node.name(), inputs=cut(", ".join(_describe_inputs(read))),
            )  # fmt: skip


def _kinds(values: list[Any]) -> set[What]:
    """Which of NaN and infinity tensors among the values hold."""
    found: set[What] = set()
    for value in values:
        if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
            continue
        if value.layout is not torch.strided or value.device.type == "meta" or not value.numel():
            continue
        if bool(torch.isfinite(value).all()):
            continue
        if bool(torch.isnan(value).any()):
            found.add("nan")
        if bool(torch.isinf(value).any()):
            found.add("inf")
    return found


def _find_constants(values: list[Any]) -> set[What]:
    """Find the non-finite plain numbers that the program passed in."""
    numbers = [value for value in values if type(value) is float and not math.isfinite(value)]
    return {"nan" if math.isnan(number) else "inf" for number in numbers}


def _describe_inputs(values: list[Any]) -> list[str]:
    """Shapes, dtypes and ranges of the tensors that an op read; of one it changed, as it left it."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    told: list[str] = []
    for tensor in tensors[:_MOST_INPUTS]:
        text = f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
        if tensor.layout is torch.strided and tensor.numel() and tensor.is_floating_point():
            text += f" {tensor.min().item():.4g} to {tensor.max().item():.4g}"
        told.append(text)
    return told
