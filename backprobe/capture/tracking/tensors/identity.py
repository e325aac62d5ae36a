"""Which tensor is which: a number for every tensor object and every storage, held by weak references only.

1. No weak reference of Backprobe is in the lists that `weakref` gives: `torch.utils.swap_tensors`, so `Module.to()` and
   `load_state_dict`, refuse a tensor that anyone refers to.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Final, TypeVar

import torch

_T = TypeVar("_T")
_OURS: Final = "backprobe.capture"


class OwnRef(weakref.ref[_T]):
    """A weak reference of Backprobe: a separate type, since plain ones of an object are one with the program's."""

    __slots__ = ()


def _is_ours(ref: Any) -> bool:
    return type(ref).__module__.startswith(_OURS)  # those of the compiled core as well


_listed: Final = weakref.getweakrefs


def getweakrefs(thing: Any, /) -> list[Any]:
    """List the weak references to something that the program has."""
    return [ref for ref in _listed(thing) if not _is_ours(ref)]


def getweakrefcount(thing: Any, /) -> int:
    """How many weak references to something the program has."""
    return len(getweakrefs(thing))


_PLAIN: Final = {function.__name__: getattr(weakref, function.__name__) for function in (getweakrefs, getweakrefcount)}


def unlist(on: bool) -> None:
    """Make `weakref` leave Backprobe's references out of its answers; off: restore it."""
    for name, plain in _PLAIN.items():
        setattr(weakref, name, globals()[name] if on else plain)


class TensorRef(OwnRef[torch.Tensor]):
    """A weak reference that remembers which tensor it was."""

    __slots__ = ("key", "number", "storage")


class Identities:
    """Numbers tensor objects by identity; the number of a dead one is never given again.

    Attributes:
        dead: References whose tensors died since they were last looked at.
    """

    def __init__(self) -> None:
        self.dead: deque[TensorRef] = deque()
        self._refs: dict[int, TensorRef] = {}
        self._next = 0
        self._storages: dict[int, tuple[int, dict[int, TensorRef]]] = {}
        self._next_storage = 0

    def ensure_ref(self, tensor: torch.Tensor) -> TensorRef:
        """Return the reference of a tensor; make it on first sight."""
        key = id(tensor)
        ref = self._refs.get(key)
        if ref is not None and ref() is tensor:
            return ref
        ref = TensorRef(tensor, self.dead.append)
        ref.key, ref.number, ref.storage = key, self._next, None
        self._next += 1
        self._refs[key] = ref
        return ref

    def find(self, tensor: torch.Tensor) -> TensorRef | None:
        """Return the reference of a tensor that was seen before."""
        ref = self._refs.get(id(tensor))
        return ref if ref is not None and ref() is tensor else None

    def forget(self, ref: TensorRef) -> None:
        """Forget a dead tensor: another may take its place."""
        if self._refs.get(ref.key) is ref:
            del self._refs[ref.key]
        self.release(ref)

    def storage(self, ref: TensorRef, address: int) -> int:
        """Return the number of the storage at an address, which the tensor holds from now on.

        The number stays with the address as long as one numbered tensor that lives holds it.
        """
        if ref.storage == address:
            return self._storages[address][0]
        self.release(ref)
        entry = self._storages.get(address)
        if entry is not None and not self.holders(address):  # another storage lies where that of dead tensors lay
            for other in entry[1].values():
                other.storage = None
            entry = None
        if entry is None:
            entry = self._storages[address] = (self._next_storage, {})
            self._next_storage += 1
        entry[1][ref.number] = ref
        ref.storage = address
        return entry[0]

    def release(self, ref: TensorRef) -> None:
        """Note that the tensor no longer holds its storage."""
        if ref.storage is None:
            return
        entry = self._storages[ref.storage]
        entry[1].pop(ref.number, None)
        if not entry[1]:
            del self._storages[ref.storage]
        ref.storage = None

    def storage_number(self, address: int) -> int | None:
        """Return the number of the storage at an address, if a numbered tensor that lives holds it."""
        return self._storages[address][0] if self.holders(address) else None

    def holders(self, address: int) -> tuple[int, ...]:
        """List the living tensors that hold the storage at an address, in order."""
        entry = self._storages.get(address)
        return () if entry is None else tuple(sorted(n for n, ref in entry[1].items() if ref() is not None))

    def close(self) -> None:
        """Forget everything."""
        self._refs.clear()
        self._storages.clear()
        self.dead.clear()
