"""Graphs and values as torch tells them to a program that looks: nothing here holds on to what it looked at."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, Final

import torch

_saved: Final[dict[type, list[str]]] = {}


def version_of(tensor: torch.Tensor) -> int | None:
    """The version counter; None where there is none."""
    try:
        return None if tensor.is_inference() else tensor._version
    except RuntimeError:  # `.data =` gave an inference tensor the memory of another kind, or the other way round
        return None


def storage(tensor: torch.Tensor) -> int:
    """Where its storage is. `untyped_storage` would come to hold it, and autograd not add to it in place."""
    return torch._C._storage_address(tensor)  # type: ignore[attr-defined]


def node_of(tensor: torch.Tensor) -> Any:
    """The node that made it; None for a leaf, and for a view that torch no longer answers for."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def _to_numbers(tensor: torch.Tensor) -> Any:
    """The elements as Python's numbers; what lies on a device is copied for it, which may be no node of the graph."""
    with torch.no_grad():
        return tensor.tolist()


def elements(tensor: torch.Tensor) -> str:
    """The elements, each exactly."""
    try:
        return "" if tensor.numel() > 64 else repr(_to_numbers(tensor))
    except (RuntimeError, IndexError):
        return ""


def norm(tensor: torch.Tensor) -> float | None:
    """The L2 norm, in Python's own arithmetic."""
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return None
    try:
        flat: Any = _to_numbers(tensor)
    except (RuntimeError, IndexError):
        return None
    while isinstance(flat, list) and flat and isinstance(flat[0], list):
        flat = [element for row in flat for element in row]
    values = flat if isinstance(flat, list) else [flat]
    with contextlib.suppress(OverflowError):
        return math.sqrt(math.fsum(value * value for value in values))
    return math.inf


def type_of(node: Any) -> str:
    """A node's name without its namespace."""
    return node.name().rsplit("::", 1)[-1]


def node_key(name: str, number: int, base: int) -> str:
    """A node by its name and its place in the run; another thread has other numbers, which begin at 0."""
    return f"{name}@{number - base}" if number >= base else f"{name}@thread {number}"


def walked(roots: Sequence[Any]) -> list[Any]:
    """All nodes that lie behind some."""
    found: dict[int, Any] = {}
    waiting = [root for root in roots if root is not None]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += [following for following, _ in node.next_functions if following is not None]
    return list(found.values())


def saved_of(node: Any) -> list[Any]:
    """The saved tensors of a node, packed."""
    kind, found = type(node), []
    if kind not in _saved:
        _saved[kind] = [name for name in dir(node) if name.startswith("_raw_saved_")]
    for name in _saved[kind]:
        with contextlib.suppress(RuntimeError):
            held = getattr(node, name)
            found += held if isinstance(held, (tuple, list)) else [held]
    return found


def holds(node: Any) -> bool:
    """A node still holds a saved tensor."""
    for held in saved_of(node):
        with contextlib.suppress(RuntimeError):
            if held.data is not None:
                return True
    return False


def state_of(nodes: Sequence[Any]) -> str:
    """Whether a graph holds anything."""
    return "held" if any(holds(node) for node in nodes) else "not"
