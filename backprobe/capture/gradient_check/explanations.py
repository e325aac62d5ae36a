"""What makes the gradient that a step uses another one than the derivative: from recorded events only.

used = arrived / scale          a gradient scaler's factor
used = arrived * c              clipping: c = limit / (norm + 1e-6), below 1 (torch.nn.utils.clip_grad)
used = arrived + before         the gradients of before this step were still there; times c, if they were clipped
used is none, arrived is not    cleared between the backward call and the step: a mistake

Of a scaler and of clipping the order tells as well. A mistake is a factor that is taken out of the gradient of a loss
that it was not multiplied into, a limit that was laid on gradients still multiplied by it (unless the limit is as large
as the factor: then it was multiplied, too), and clipping what other backward calls then add to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from backprobe.record import OptimizerEvent
from backprobe.record.rows.gradient_checks import Cause

_CLIP_EPS: Final = 1e-6
"""`clip_grad_norm_` adds it to the norm (torch/nn/utils/clip_grad.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is known of one leaf's gradient as a step used it, along one direction.

    Attributes:
        used, arrived: What the step used, what its backward calls brought. before: what was in `.grad` as the first
            call began. stale: what the step before used. kept: that was still there as the first call after it began.
        calls: Of each backward call what it added; whether its roots were scaled; the number of the next event then.
        events: Of this step. scale: The factor of the gradient scaler that was used last; None: there is none.
        others: Other leaves of the optimizer still have a gradient as it steps.
    """

    used: float | None
    arrived: float
    before: float | None = None
    stale: float | None = None
    kept: bool = False
    calls: Sequence[tuple[float, bool | None, int]] = ()
    events: Sequence[OptimizerEvent] = ()
    scale: float | None = None
    others: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a difference is there.

    Attributes:
        text: What makes it on purpose. None: it is a mistake, `cause`.
    """

    text: str | None = None
    cause: Cause | None = None


def of_use(use: Use, same: Callable[[float, float], bool]) -> Explanation:
    """Why a step used another gradient than what its backward calls brought.

    Args:
        same: Two values are equal, up to rounding, in units of what was walked back.
    """
    used, arrived, before = use.used, use.arrived, use.before
    if used is None or (used == 0 and arrived != 0):
        if use.others and not _is_cleared_late(use):
            return Explanation("the program took its gradient away before the step, and left others")
        return Explanation(cause="cleared")
    clip = next((event for event in reversed(use.events) if event.kind.startswith("clip")), None)
    if before and same(used / (_factor(clip) or 1.0), arrived + before):
        if use.kept or (use.stale is not None and same(before, use.stale)):
            return Explanation(cause="not-cleared")
        return Explanation("gradients that were there before this step were kept: they accumulate")
    scale = use.scale
    if scale and scale != 1 and same(used * scale, arrived):
        if any(added and scaled is False for added, scaled, _ in use.calls):
            return Explanation(cause="not-scaled")
        return Explanation(f"the gradient scaler's factor, 1/{scale:g}")
    if _clipped_early(use):
        return Explanation(cause="clipped-early")
    if clip is not None and scale and _is_scaled_at(use, clip, scale):
        return Explanation(cause="clipped-scaled")
    return _clipping(use, clip, scale, same)


def _clipping(
    use: Use, clip: OptimizerEvent | None, scale: float | None, same: Callable[[float, float], bool]
) -> Explanation:
    used, arrived = use.used or 0.0, use.arrived
    if clip is not None and clip.kind == "clip_grad_value":
        return Explanation(f"clipping by value, to {clip.limit:g}" if clip.limit is not None else "clipping by value")
    factor = _factor(clip)
    if factor is not None:
        if scale and same(used * scale, arrived * factor):
            return Explanation(f"clipping's factor, {factor:.3g}, and the scaler's, 1/{scale:g}")
        if same(used, arrived * factor):
            return Explanation(f"clipping's factor, {factor:.3g}")
    return Explanation("the program changed `.grad` between the backward call and the step")


def _factor(clip: OptimizerEvent | None) -> float | None:
    """Return what clipping by norm multiplied the gradients by; None for no such clip, or one that is not known."""
    if clip is None or clip.kind != "clip_grad_norm" or clip.limit is None or clip.total_norm is None:
        return None
    return min(1.0, clip.limit / (clip.total_norm + _CLIP_EPS))


def _clipped_early(use: Use) -> bool:
    """Gradients were clipped, and a later backward call of the same step added to what was left."""
    for clip in (event for event in use.events if event.kind.startswith("clip")):
        earlier = any(added for added, _, event in use.calls if event <= clip.n)
        later = [event for added, _, event in use.calls if added and event > clip.n]
        cleared = any(
            event.kind == "zero_grad" and event.n > clip.n and event.n < later[0] for event in use.events if later
        )
        if earlier and later and not cleared:
            return True
    return False


def _is_cleared_late(use: Use) -> bool:
    """Return whether an optimizer cleared its gradients after the last backward call."""
    last = max((event for _, _, event in use.calls), default=0)
    return any(event.kind == "zero_grad" and event.n >= last for event in use.events)


def _is_scaled_at(use: Use, clip: OptimizerEvent, scale: float) -> bool:
    """As they were clipped the gradients were those of the scaled loss, and the limit was not."""
    if any(event.kind == "scaler_unscale" and event.n < clip.n for event in use.events):
        return False
    of_scaled = any(added and scaled for added, scaled, _ in use.calls)
    return of_scaled and clip.limit is not None and clip.limit < scale
