"""Custom Functions compared alone, in a ghost: their backward against small changes of their inputs.

y = Cube.apply(x)         at x as it is in the step, in float64: <w, (y(x + hv) - y(x - hv)) / 2h> against <dx, v>,
                          where dx is what `backward` makes of a random w
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final

import torch
from torch.autograd import Function

from backprobe.capture.gradient_check.ghosts import FunctionCheck

_CALLS: Final = 3
"""Calls of one class that are compared."""

_H: Final = 1e-6
_FAR: Final = (-100.0, -10.0, 10.0, 100.0)
"""How far an input is moved, in units of its largest element or 1, to see whether a flat Function has jumps."""

_NEAR: Final = (1e-5, 3e-5, 3e-6)
"""How far, in units of its largest element, to see whether a Function is straight around it."""

_SAME: Final = 1e-5
_MOST_ELEMENTS: Final = 1 << 20


_PLAIN: Final[Any] = Function.__dict__["apply"]


class Applied:
    """Stands before `Function.apply` while gradients are checked.

    It has to from the start: a statement like `Cube.apply(x @ w)` looks it up before the first leaf is used.

    Attributes:
        now: Who compares, in the ghost for it.
        before: Called with the arguments: no mode of torch sees that a Function is applied.
    """

    now: Functions | None = None
    before: Callable[[Sequence[Any]], None] | None = None

    @staticmethod
    def put() -> None:
        """Put it in place."""

        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            if Applied.before is not None:
                Applied.before(args)
            if Applied.now is not None and not kwargs and torch.is_grad_enabled():
                Applied.now.compare(cls, args)
            return _PLAIN.__func__(cls, *args, **kwargs)

        Function.apply = classmethod(apply)  # type: ignore[assignment]  # as the one that it stands before

    @staticmethod
    def take_out() -> None:
        """Give torch its own back."""
        Function.apply = _PLAIN
        Applied.before = None


class Functions:
    """Compares the Functions of the program, in a ghost.

    Attributes:
        found: What was compared.
    """

    def __init__(self, is_user_file: Callable[[str], bool], found: list[FunctionCheck]) -> None:
        self._is_user_file, self.found = is_user_file, found
        self._times: dict[type, int] = {}

    def compare(self, cls: Any, args: Sequence[Any]) -> None:
        """Compare a Function that is applied at these inputs, if it is the program's."""
        place = _backward_of(cls)
        times = self._times[cls] = self._times.get(cls, 0) + 1
        if place is None or times > _CALLS or not self._is_user_file(place[0]):
            return
        state = torch.get_rng_state()
        try:
            verdict, numeric, used = self._verdict(cls, args, state)
        except Exception:
            verdict, numeric, used = "unknown", 0.0, 0.0
        finally:
            torch.set_rng_state(state)
        self.found.append(FunctionCheck(cls.__qualname__, *place, verdict, numeric, used))

    def _verdict(self, cls: Any, args: Sequence[Any], state: torch.Tensor) -> tuple[str, float, float]:
        tracked = [
            at for at, argument in enumerate(args) if isinstance(argument, torch.Tensor) and argument.requires_grad
        ]
        if not tracked or sum(args[at].numel() for at in tracked) > _MOST_ELEMENTS:
            return "unknown", 0.0, 0.0
        wide = [_wide(argument) for argument in args]
        leaves = {at: wide[at].detach().clone().requires_grad_() for at in tracked}

        def outputs(given: dict[int, torch.Tensor]) -> list[torch.Tensor]:
            torch.set_rng_state(state)
            values = [given[at].clone() if at in given else argument for at, argument in enumerate(wide)]
            result = _PLAIN.__func__(cls, *values)
            parts = result if isinstance(result, tuple) else (result,)
            return [part for part in parts if isinstance(part, torch.Tensor) and part.is_floating_point()]

        given = outputs(leaves)
        if any(output.dtype is not torch.float64 for output in given):
            return ("flat" if _is_flat(leaves, outputs) else "unknown"), 0.0, 0.0
        generator = torch.Generator().manual_seed(3)
        weights = [torch.randn(output.shape, generator=generator, dtype=torch.float64) for output in given]
        tracked_outputs = [(output, w) for output, w in zip(given, weights, strict=True) if output.requires_grad]
        gradients = torch.autograd.grad(
            [output for output, _ in tracked_outputs], list(leaves.values()), [w for _, w in tracked_outputs],
            allow_unused=True, materialize_grads=True,
        )  # fmt: skip
        if _is_identity(leaves, given):
            with torch.no_grad():  # not where a factor is 1 by chance
                others = {at: leaf + torch.rand_like(leaf) for at, leaf in leaves.items()}
                if _is_identity(others, outputs(others)):
                    return "identity", 0.0, 0.0
        return self._sides(leaves, gradients, weights, outputs, generator)

    def _sides(
        self,
        leaves: dict[int, torch.Tensor],
        gradients: Sequence[torch.Tensor],
        weights: Sequence[torch.Tensor],
        outputs: Callable[[dict[int, torch.Tensor]], list[torch.Tensor]],
        generator: torch.Generator,
    ) -> tuple[str, float, float]:
        worst, found = "agrees", (0.0, 0.0)

        def backward(moved: dict[int, torch.Tensor], at: int) -> torch.Tensor:
            with torch.enable_grad():
                held = {key: leaf.detach().requires_grad_() for key, leaf in moved.items()}
                pairs = [(output, w) for output, w in zip(outputs(held), weights, strict=True) if output.requires_grad]
                return torch.autograd.grad([output for output, _ in pairs], held[at], [w for _, w in pairs])[0]

        with torch.no_grad():
            for (at, leaf), gradient in zip(leaves.items(), gradients, strict=True):
                v = torch.randn(leaf.shape, generator=generator, dtype=torch.float64)
                scale = max(float(leaf.abs().max()) if leaf.numel() else 0.0, 1e-3)

                def value(h: float, at: int = at, leaf: torch.Tensor = leaf, v: torch.Tensor = v) -> float:
                    moved = {**leaves, at: leaf + h * v}
                    return math.fsum(
                        float((output * w).sum()) for output, w in zip(outputs(moved), weights, strict=True)
                    )

                h = _H * scale
                fine = (value(h) - value(-h)) / (2 * h)
                coarse = (value(3 * h) - value(-3 * h)) / (6 * h)
                used = float((gradient * v).sum())
                size = max(abs(fine), abs(used), 1e-9)
                if abs(fine) <= 1e-9 * max(abs(used), 1.0) and abs(used) > 1e-6:
                    if any(value(far * max(scale, 1.0)) != value(0.0) for far in _FAR):
                        return "flat", fine, used
                    worst, found = "differs", (fine, used)  # it does not depend on this input at all
                    continue
                if not abs(fine - coarse) <= 0.01 * size:
                    return "unknown", fine, used
                if abs(fine - used) > _SAME * size + 3 * abs(fine - coarse):
                    near = leaf + _NEAR[0] * scale * v
                    if _is_piecewise_linear(value, fine, scale) and not _is_same(
                        backward({**leaves, at: near}, at), gradient
                    ):
                        return "surrogate", fine, used
                    worst, found = "differs", (fine, used)
        return worst, *found


def _is_piecewise_linear(value: Callable[[float], float], slope: float, scale: float) -> bool:
    """No curvature near, and some far away: `(x - w).abs()`, whose derivative is constant but for jumps.

    A curve has f(h) + f(-h) - 2 f(0) = f'' h**2, in the order of slope * h**2 / scale; it rounds at f * 1e-16.
    """
    here = value(0.0)

    def bend(h: float) -> float:
        return abs(value(h) + value(-h) - 2 * here)

    near = any(
        bend(h * scale) <= 1e-2 * abs(slope) * h * h * scale and abs(here) * 1e-14 < abs(slope) * h * h * scale
        for h in _NEAR
    )
    return near and any(bend(far * max(scale, 1.0)) > 1e-3 * abs(slope) * far for far in _FAR if far > 0)


def _is_same(first: torch.Tensor, other: torch.Tensor) -> bool:
    return bool((first - other).abs().max() <= 1e-9 * other.abs().max())


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().double()
    return value.detach() if isinstance(value, torch.Tensor) else value


def _is_flat(leaves: dict[int, torch.Tensor], outputs: Callable[[dict[int, torch.Tensor]], list[torch.Tensor]]) -> bool:
    """Nothing changes with small changes of the inputs, and something with large ones."""

    def compute_moved_outputs(by: float) -> list[torch.Tensor]:
        return outputs({at: leaf + by * max(float(leaf.abs().max()), 1.0) for at, leaf in leaves.items()})

    with torch.no_grad():
        here = compute_moved_outputs(0.0)
        near = all(
            torch.equal(first, other)
            for by in (_H, -_H)
            for first, other in zip(here, compute_moved_outputs(by), strict=True)
        )
        return near and any(
            not torch.equal(first, other)
            for by in _FAR
            for first, other in zip(here, compute_moved_outputs(by), strict=True)
        )


def _is_identity(leaves: dict[int, torch.Tensor], given: Sequence[torch.Tensor]) -> bool:
    """Return whether what comes out is what went in: such a Function exists only for its backward."""
    return all(
        any(tensor.shape == leaf.shape and torch.equal(tensor.detach(), leaf.detach()) for leaf in leaves.values())
        for tensor in given
    )


def _backward_of(cls: Any) -> tuple[str, int] | None:
    """File of a Function's backward, and its last line: that of its `return`."""
    method = inspect.unwrap(getattr(cls, "backward", None) or getattr(cls, "vjp", None) or cls)
    code = getattr(method, "__code__", None)
    if code is None:
        return None
    return code.co_filename, max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)


def is_in_function(frame: FrameType | None) -> bool:
    """In a custom Function's own forward, where autograd does not look."""
    while frame is not None:
        if frame.f_code.co_name == "apply" and frame.f_code.co_filename.endswith("torch/autograd/function.py"):
            return True
        frame = frame.f_back
    return False
