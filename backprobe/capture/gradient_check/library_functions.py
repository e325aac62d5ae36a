"""Functions of torch that a ghost computes otherwise: what they draw, and what they hold back of the gradient.

gumbel_softmax(x, hard=True)       picked - soft.detach() + soft: a cut of torch's own, told like one of the program's
embedding(at, w, padding_idx=0)    row 0 of w gets no gradient, so it is not moved there either
binary_cross_entropy(p, t)         its gradient is bounded where p is 0 or 1 but for rounding: told like a cut there
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

BOUNDED: Final = "binary_cross_entropy"
_BOUND: Final = 1e-12


def gumbel_softmax(
    cut: Callable[[str, torch.Tensor], torch.Tensor], logits: torch.Tensor, *settings: Any, **named: Any
) -> torch.Tensor:
    """`torch.nn.functional.gumbel_softmax` of the same random numbers, whose constant part passes through `cut`.

    Numbers are drawn in the default dtype, as by the program whose tensors a ghost widens. Jang, Gu, Poole: Categorical
    reparameterization with Gumbel-softmax, section 2.2 for the straight-through one.
    """
    given = inspect.signature(torch.nn.functional.gumbel_softmax).bind(logits, *settings, **named)
    given.apply_defaults()
    tau, hard, dim = (given.arguments[name] for name in ("tau", "hard", "dim"))
    narrow = torch.get_default_dtype() if logits.dtype is torch.float64 else logits.dtype
    noise = torch.empty_like(logits, dtype=narrow, memory_format=torch.legacy_contiguous_format).exponential_()
    soft = ((logits - noise.log().to(logits.dtype)) / tau).softmax(dim)
    if not hard:
        return soft
    with torch.no_grad():
        constant = torch.zeros_like(soft).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0) - soft
    return cut("gumbel_softmax", constant) + soft


def binary_cross_entropy(cut: Callable[[str, torch.Tensor], torch.Tensor], *given: Any, **named: Any) -> torch.Tensor:
    """`torch.nn.functional.binary_cross_entropy`, whose part with a bounded gradient passes through `cut`.

    torch divides by max(p (1 - p), 1e-12) on the way back, and by p (1 - p) is what the derivative would divide (its
    `binary_cross_entropy_backward`). Where the bound is in force, the loss goes on from what is cut along that slope.
    """
    function = torch.nn.functional.binary_cross_entropy
    bound = inspect.signature(function).bind(*given, **named)
    bound.apply_defaults()
    if bound.arguments["size_average"] is not None or bound.arguments["reduce"] is not None:
        return function(*given, **named)
    p, target, weight, reduction = (bound.arguments[name] for name in ("input", "target", "weight", "reduction"))
    each = function(p, target, weight, reduction="none")
    with torch.no_grad():
        is_bounded = p * (1 - p) < _BOUND
        slope = (p - target) / _BOUND * (1 if weight is None else weight)
        kept = [is_bounded.to(p.dtype), *(torch.where(is_bounded, operand, 0) for operand in (slope, each, p))]
    is_bounded, slope, before, at = (cut(BOUNDED, operand) for operand in kept)  # each against its own size
    each = torch.where(is_bounded > 0, before + slope * (p - at), each)
    return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()


def padding_as_it_is(
    args: tuple[Any, ...], moved: tuple[Any, ...], given: Mapping[str, Any], themselves: Mapping[int, torch.Tensor]
) -> tuple[Any, ...]:
    """Return the moved arguments of an `embedding`, except that the weight's padding row is not moved.

    Args:
        themselves: Id of a leaf that was moved itself -> how far.
    """
    row = given.get("padding_idx", args[2] if len(args) > 2 else None)
    far = themselves.get(id(args[1])) if len(args) > 1 else None
    if row is None or len(args) < 2 or (moved[1] is args[1] and far is None):
        return moved
    weight = moved[1].clone()
    as_it_is = args[1].detach()[row]
    weight[row] = (as_it_is if far is None else as_it_is - far[row].to(as_it_is.dtype)).to(weight.dtype)
    return (moved[0], weight, *moved[2:])


def draw_and_widen(func: Any, name: str, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Random numbers as the program draws them: in the default dtype, then widened. Float64 would draw others."""
    narrow = torch.get_default_dtype()
    first = args[0]
    if first.dtype is not torch.float64 or narrow is torch.float64:
        return func(*args, **given)
    if not name.endswith("_"):
        return func(first.to(narrow), *args[1:], **given).double()
    made = torch.empty_like(first, dtype=narrow)
    func(made, *args[1:], **given)
    with torch.no_grad():
        return first.copy_(made)


CUTTING: Final[Mapping[str, Callable[..., torch.Tensor]]] = {
    "gumbel_softmax": gumbel_softmax,
    BOUNDED: binary_cross_entropy,
}
"""Functions with a cut of torch's own, by their names."""
