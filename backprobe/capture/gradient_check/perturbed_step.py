"""How a ghost computes: one leaf moved, in float64 where that goes, explicit cuts held at their values or compared.

loss = F.mse_loss(net(x), y)      every float32 tensor that goes into a function of torch goes in as float64,
                                  and a moved leaf p as p + h v: its place in memory is left as it is
target = net(x).detach()          value 0 of the cuts: with `held`, what it was where nothing was moved
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from backprobe.capture.gradient_check.functions import Applied, Functions, is_in_function
from backprobe.capture.gradient_check.ghosts import FunctionCheck, Value, place_of
from backprobe.capture.gradient_check.library_functions import CUTTING, draw_and_widen, padding_as_it_is
from backprobe.capture.torch_access.torch_internals import current_pass

MOST_CUTS: Final = 2000
MOST_CUT_BYTES: Final = 16 << 20
_CHANGED: Final = 1e-14
"""Relative: float64 rounds at 1.1e-16, and a step has a few dozen sums between a leaf and a cut."""

_OBJECTS: Final = """
register_hook retain_grad register_post_accumulate_grad_hook __hash__ __repr__ __str__ __format__ __len__ size dim
stride numel nelement data_ptr untyped_storage storage storage_offset element_size is_contiguous type
is_floating_point is_complex is_set_to share_memory_ set_ __deepcopy__ __reduce_ex__ requires_grad_ _is_view
get_device is_pinned pin_memory has_names is_signed is_inference is_shared
"""
_AS_THEY_ARE: Final = frozenset(_OBJECTS.split())
"""Functions that ask for the object itself."""

_MAKERS: Final = """zeros ones full empty tensor as_tensor eye linspace scalar_tensor from_numpy"""
_CREATED: Final = frozenset(_MAKERS.split())
"""What they make is widened at once, so that what is written into it later is not rounded."""

_NOISE: Final = """randn_like rand_like normal_ uniform_ exponential_ bernoulli_ log_normal_"""
_DRAWN: Final = frozenset(_NOISE.split())
_GETTERS: Final = frozenset(("data", "T", "mT", "H", "mH", "real", "imag"))
_NUMBERS: Final = frozenset(("item", "__float__", "tolist", "__int__", "__bool__", "__index__"))
_INPLACE: Final = "setitem iadd isub imul itruediv ipow iand ior ixor ifloordiv imod imatmul ilshift irshift"
_INPLACE_OPERATORS: Final = frozenset(f"__{name}__" for name in _INPLACE.split())


@dataclass(slots=True)
class Moved:
    """What is changed in a ghost.

    Attributes:
        leaves: Id of a tensor -> how it is moved, in float64.
        wide: Compute in float64. held: values of the cuts, which are put back; values: those to compare with.
        roots: After so many backward calls the ghost has told all, and need not compute the last of them; 0: not known.
        themselves: Id of a leaf that was moved itself -> how far.
    """

    leaves: Mapping[int, torch.Tensor]
    wide: bool
    held: Sequence[Value] = ()
    values: Sequence[Value] = ()
    roots: int = 0
    themselves: Mapping[int, torch.Tensor] = field(default_factory=dict[int, torch.Tensor])


@dataclass(slots=True)
class GhostFacts:
    """What a ghost met."""

    cuts: list[Value] = field(default_factory=list[Value])
    changed: list[int] = field(default_factory=list[int])
    functions: list[FunctionCheck] = field(default_factory=list[FunctionCheck])
    count: int = 0
    bytes: int = 0
    unheld: bool = False
    half: bool = False


class PerturbedMode(TorchFunctionMode):
    """Every function of torch that the ghost's program calls passes through here."""

    def __init__(self, moved: Moved, is_user_file: Callable[[str], bool]) -> None:
        super().__init__()
        self._moved, self._is_user_file = moved, is_user_file
        self.seen = GhostFacts()
        self._replaced: dict[int, torch.Tensor] = {}
        self._twins: dict[int, tuple[torch.Tensor, int, torch.Tensor]] = {}

    @property
    def roots(self) -> int:
        """After so many backward calls the ghost has told all."""
        return self._moved.roots

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given: dict[str, Any] = kwargs or {}
        name, is_getter = _name_function(func)
        if func is torch.Tensor.backward:
            with self:  # what it calls of the program, a checkpoint, is in this mode too
                return _backward(*args, **given)
        if func is torch.autograd.grad:
            wide = {key: self._wide(value) for key, value in given.items()}
            found = func(*map(self._wide, args), **wide)
            return tuple(self._cut("grad", gradient, args, given) for gradient in found)
        if (is_getter and name not in _GETTERS) or name in _AS_THEY_ARE:
            return func(*args, **given)
        if self._moved.wide and name in _DRAWN:
            return draw_and_widen(func, name, args, given)
        if name in CUTTING and current_pass() == -1:
            return CUTTING[name](self.pass_cut, *map(self._wide, args), **{k: self._wide(v) for k, v in given.items()})
        inplace = name in _INPLACE_OPERATORS or (name.endswith("_") and not name.endswith("__"))
        if inplace and args and id(args[0]) in self._replaced:
            self.seen.unheld = True
        wide_args = (*args[:1], *map(self._wide, args[1:])) if inplace else tuple(map(self._wide, args))
        if name == "embedding":
            wide_args = padding_as_it_is(args, wide_args, given, self._moved.themselves)
        wide_given = {key: value if key == "out" else self._wide(value) for key, value in given.items()}
        if self._moved.wide:
            if name == "float" and len(wide_args) == 1 and wide_args[0].dtype is torch.float64:
                return wide_args[0]
            if not name.startswith("rand") and not inplace:
                wide_args, wide_given = _wider(wide_args), {k: _wider(v) for k, v in wide_given.items()}
        result = func(*wide_args, **wide_given)
        if self._moved.wide and name in _CREATED and _is_narrow(result) and not result.requires_grad:
            result = result.double()
        self.seen.half |= isinstance(result, torch.Tensor) and result.dtype in _HALF
        if inplace:
            self._hold_written(name, args, given)
            return result
        return self._cut(name, result, args, given)

    def watch_functions(self) -> None:
        """In the ghost where nothing is moved each custom Function is compared alone."""
        if not (self._moved.values or self._moved.held or self._moved.wide):
            Applied.now = Functions(self._is_user_file, self.seen.functions)

    def hold_gradient(self, given: torch.Tensor) -> torch.Tensor:
        """Treat the gradient that is given to a root as a value at a cut."""
        return self.pass_cut("gradient", given)

    # ---- widening

    def _wide(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if self._moved.wide and value.is_leaf and value.requires_grad and torch.is_grad_enabled():
                return self._twin(value)
            by = self._moved.leaves.get(id(value))
            if by is not None and value.requires_grad:  # frozen, it is a constant of this use
                return value.double() + by if self._moved.wide else value + by.to(value.dtype)
            by = self._moved.themselves.get(id(value))
            if by is not None and not value.requires_grad:
                return value - by.to(value.dtype)
            return value.double() if self._moved.wide and _is_narrow(value) else value
        if type(value) in (list, tuple):
            return type(value)(map(self._wide, value))
        return value

    def _twin(self, leaf: torch.Tensor) -> torch.Tensor:
        """Return a leaf in float64: one for all its uses, so that a gradient asked for by it is not rounded."""
        known = self._twins.get(id(leaf))
        if known is None or known[1] != leaf._version:
            by = self._moved.leaves.get(id(leaf))
            twin = leaf.double() if by is None else leaf.double() + by
            known = self._twins[id(leaf)] = (leaf, leaf._version, twin)
        return known[2]

    # ---- cuts

    def _cut(self, name: str, result: Any, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
        """Return what a function gave; where cuts are held, what it gave while nothing was moved."""
        if current_pass() != -1:  # in a backward call: what is computed there is no part of the loss
            return result
        if isinstance(result, (tuple, list)) and result and isinstance(result[0], torch.Tensor):
            held = [self._cut(name, item, args, given) for item in result]
            same = all(first is other for first, other in zip(held, result, strict=True))
            return result if same else type(result)(held)
        if isinstance(result, torch.Tensor):
            if result.requires_grad or not (result.is_floating_point() or result.is_complex()):
                return result
        elif not (name in _NUMBERS and type(result) in (float, int)):
            return result
        if not any(map(_is_tracked, args)) and not any(map(_is_tracked, given.values())):
            return result
        return result if is_in_function(sys._getframe(2)) else self.pass_cut(name, result)

    def _hold_written(self, name: str, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        """`mean.lerp_(w, 0.1)` under no_grad: what is written into a tensor without a history is cut there as well."""
        into = args[0] if args else None
        if not isinstance(into, torch.Tensor) or into.requires_grad or not into.is_floating_point():
            return
        if current_pass() != -1 or not (any(map(_is_tracked, args[1:])) or any(map(_is_tracked, given.values()))):
            return
        held = into if is_in_function(sys._getframe(2)) else self.pass_cut(name, into)
        if held is not into:
            with torch.no_grad():
                into.copy_(held)

    def pass_cut(self, name: str, result: Any) -> Any:
        """Keep, compare or hold a value at the next cut."""
        seen = self.seen
        number, seen.count = seen.count, seen.count + 1
        if number >= MOST_CUTS:
            seen.unheld = True
            return result
        against = self._moved.held or self._moved.values
        if not against:
            self._keep(name, result)
            return result
        if number >= len(against) or against[number].function != name:
            raise OSError("it went another way than the step where nothing was moved")
        return self._compare_value(number, against[number], result)

    def _keep(self, name: str, result: Any) -> None:
        filename, line = place_of(sys._getframe(3), self._is_user_file)
        if not isinstance(result, torch.Tensor):
            self.seen.cuts.append(Value(name, filename, line, number=float(result)))
            return
        self.seen.bytes += result.numel() * result.element_size()
        if self.seen.bytes > MOST_CUT_BYTES or result.layout is not torch.strided or result.dtype is torch.bfloat16:
            self.seen.cuts.append(Value(name, filename, line, "lost", number=_sum(result)))
            return
        kept = result.detach().resolve_conj().resolve_neg().contiguous()
        elements = kept.numpy().tobytes()
        self.seen.cuts.append(
            Value(name, filename, line, "tensor", str(kept.dtype).partition(".")[2], tuple(kept.shape), elements)
        )

    def _compare_value(self, number: int, before: Value, result: Any) -> Any:
        if before.kind == "lost":
            if not math.isclose(before.number, _sum(result), rel_tol=_CHANGED):
                self.seen.changed.append(number)
                self.seen.unheld = True
            return result
        if before.kind == "number":
            if math.isclose(before.number, float(result), rel_tol=_CHANGED):
                return result
            self.seen.changed.append(number)
            return type(result)(before.number) if self._moved.held else result
        data, dtype = bytearray(before.elements), getattr(torch, before.dtype)
        old = torch.frombuffer(data, dtype=dtype) if data else None
        if old is None or old.numel() != result.numel():
            return result
        old = old.reshape(before.shape)
        if _is_close(old, result):
            return result
        self.seen.changed.append(number)
        if not self._moved.held:
            return result
        self._replaced[id(old)] = old
        return old


def _sum(value: torch.Tensor) -> float:
    return float(value.detach().to_dense().double().sum()) if not value.is_complex() else 0.0


def _is_close(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.shape != new.shape or not torch.isfinite(old).all():
        return old.shape == new.shape
    scale = float(old.abs().max()) if old.numel() else 0.0
    return bool(((new - old).abs() <= _CHANGED * max(scale, 1e-300)).all())


def _backward(
    root: torch.Tensor, gradient: Any = None, retain_graph: Any = None, create_graph: Any = None, inputs: Any = None
) -> None:
    torch.autograd.backward(root, gradient, retain_graph, bool(create_graph), inputs=inputs)


def _name_function(func: Any) -> tuple[str, bool]:
    """Return a function's name and False; for an attribute's getter or setter, the attribute's name and True."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        return (getattr(func.__self__, "__name__", "") if name == "__get__" else ""), True
    return name, False


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _NARROW


_HALF: Final = (torch.float16, torch.bfloat16)
_NARROW: Final = (torch.float32, *_HALF)


def _wider(value: Any) -> Any:
    """Replace a dtype that was asked for with float64; return anything else as it is."""
    if value is torch.float32 or value is torch.float16 or value is torch.bfloat16:
        return torch.float64
    return tuple(map(_wider, value)) if type(value) is tuple else value


def _is_tracked(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.requires_grad
    return type(value) in (list, tuple) and any(map(_is_tracked, value))
