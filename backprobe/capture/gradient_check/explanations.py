"""What makes the gradient that a step uses another one than the derivative: from recorded events only.

used = arrived / scale          a gradient scaler's factor
used = arrived * c              clipping: c = limit / (norm + 1e-6), below 1 (torch.nn.utils.clip_grad)
used = arrived + before         the gradients of before this step were still there
used is none, arrived is not    cleared between the backward call and the step: a mistake
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from backprobe.record import OptimizerEvent
from backprobe.record.rows.gradient_checks import Cause

_CLIP_EPS: Final = 1e-6
"""`clip_grad_norm_` adds it to the norm (torch/nn/utils/clip_grad.py)."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a difference is there.

    Attributes:
        text: What makes it on purpose. None: it is a mistake, `cause`.
    """

    text: str | None = None
    cause: Cause | None = None


def of_use(
    used: float | None,
    arrived: float,
    before: float | None,
    stale: float | None,
    events: Sequence[OptimizerEvent],
    same: Callable[[float, float], bool],
) -> Explanation:
    """Why a step used another gradient than what its backward calls brought.

    Args:
        used, arrived: Along one direction. before: what was in `.grad` as the first call began. stale: what the step
            before used. events: of this step. same: two values are equal, up to rounding.
    """
    if used is None or (used == 0 and arrived != 0):
        return Explanation(cause="cleared")
    if before and same(used, arrived + before):
        if stale is not None and same(before, stale):
            return Explanation(cause="not-cleared")
        return Explanation("gradients that were there before this step were kept: they accumulate")
    scale = next(
        (one.scale_before for one in reversed(events) if one.kind.startswith("scaler") and one.scale_before), None
    )
    if scale and same(used, arrived / scale):
        return Explanation(f"the gradient scaler's factor, 1/{scale:g}")
    clip = next((one for one in reversed(events) if one.kind.startswith("clip")), None)
    if clip is not None and clip.kind == "clip_grad_value":
        return Explanation(f"clipping by value, to {clip.limit:g}" if clip.limit is not None else "clipping by value")
    if clip is not None and clip.limit is not None and clip.total_norm is not None:
        factor = min(1.0, clip.limit / (clip.total_norm + _CLIP_EPS))
        if same(used, arrived * factor / (scale or 1.0)) or same(used, arrived * factor):
            also = f", and the scaler's, 1/{scale:g}" if scale and not same(used, arrived * factor) else ""
            return Explanation(f"clipping's factor, {factor:.3g}{also}")
    return Explanation("the program changed `.grad` between the backward call and the step")
