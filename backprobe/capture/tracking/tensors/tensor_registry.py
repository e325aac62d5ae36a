"""The tensors that were seen, and their rows. State is compared in `snapshots.py`; here they are met and buried."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from backprobe.capture.options import Options
from backprobe.capture.output.text import class_name, cut
from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.tensor_memory import dtype_name, special
from backprobe.capture.torch_access.torch_internals import (
    Untold,
    flags_of,
    is_answered_by_user,
    is_left_out,
    storage_address,
    storage_of,
    tracing_state,
    user_not_asked,
)
from backprobe.capture.tracking.moments import Moments
from backprobe.capture.tracking.tensors.identity import Identities, TensorRef
from backprobe.record import Note, Tensor


@dataclass(slots=True)
class TrackedTensor:
    """A tensor as long as it lives: its row and its last state.

    Attributes:
        raw: Its elements at the last look, if it is small.
        versions: Each `_version`: the sequence number of the last look before it, of the look that found it, and it.
        grad: Its gradient's reference at the last look; None: `.grad` was None or not read.
        node: Number of the node that made it; None for a leaf, or if it was not read.
        readable: torch still answers for its flags. failed: an internal error was raised while it was looked at.
        site: Where it was first seen. name: the last name it was bound to.
        turn: The turn of its last look.
    """

    ref: TensorRef
    row: Tensor
    is_new: bool = True
    state: tuple[Any, ...] = ()
    version: int | None = None
    raw: bytes | None = None
    grad: TensorRef | None = None
    grad_version: int | None = None
    grad_raw: bytes | None = None
    node: int | None = None
    grad_fn: str | None = None
    grad_fn_read: bool = True
    name: str | None = None
    site: int | None = None
    versions: list[tuple[int, int, int]] = field(default_factory=list)
    looked_at: int = 0
    turn: int = 0
    readable: bool = True
    failed: bool = False

    @property
    def number(self) -> int:
        """Its number in the record."""
        return self.ref.number

    def version_at(self, sequence: int) -> int | None:
        """`_version` when a sequence number was issued; None if it rose in the very statement that issued it."""
        for unsure_from, since, version in reversed(self.versions):
            if sequence >= since:
                return version
            if sequence >= unsure_from:
                return None
        return 0 if self.versions and self.versions[0][2] == 0 else None


class Tensors:
    """Meets tensors, up to a cap; holds them by weak references."""

    def __init__(self, writer: Writer, moments: Moments, options: Options) -> None:
        self.ids = Identities()
        self.live: dict[int, TrackedTensor] = {}
        self._writer, self._moments, self._options = writer, moments, options
        self._seen = 0

    def find(self, tensor: torch.Tensor) -> TrackedTensor | None:
        """Return what is known of a tensor; None if it was never met."""
        ref = self.ids.find(tensor)
        return None if ref is None else self.live.get(ref.number)

    def meet(self, tensor: torch.Tensor, site: int | None = None, how: str = "") -> TrackedTensor | None:
        """Return what is known of a tensor, and track it from now on; None for one that is not recorded.

        Not recorded: a value under tracing or a functorch transform, a parameter without a shape, and what comes after
        the cap of tensors.
        """
        ref = self.ids.find(tensor)
        known = None if ref is None else self.live.get(ref.number)
        if known is not None:
            return known
        if tracing_state() is not None or is_left_out(tensor):
            return None
        if self._seen >= self._options.caps.tensors:
            self._writer.cut("tensors", "the record holds its most tensors", self._options.caps.tensors)
            return None
        self._seen += 1
        ref = self.ids.ensure_ref(tensor)
        known = TrackedTensor(ref, self._row(tensor, ref, site, how), site=site)
        self._writer.add("tensors", known.row)
        self.live[ref.number] = known
        return known

    def number(self, tensor: torch.Tensor) -> int:
        """Return the identity of any tensor, met or not: a gradient has one before it gets a name."""
        return self.ids.ensure_ref(tensor).number

    def update(self, known: TrackedTensor, **changes: Any) -> None:
        """Write a tensor's row again with other values."""
        known.row = msgspec.structs.replace(known.row, **changes)
        self._writer.add("tensors", known.row)

    def refresh(self, known: TrackedTensor, tensor: torch.Tensor) -> None:
        """Write the row again if `.data =` or `set_` gave the object another shape, dtype, device or storage."""
        row = known.row
        if row.shape is None:
            return
        if is_answered_by_user(tensor):
            return  # its class says what it is at each call, and a call by Backprobe would run the program's code
        dtype, device = dtype_name(tensor.dtype), str(tensor.device)
        address = storage_address(tensor)
        if row.dtype == dtype and row.device == device and row.shape == _shape(tensor) and known.ref.storage == address:
            return
        fresh = self._row(tensor, known.ref, known.site, row.created_how)
        known.row = msgspec.structs.replace(
            fresh, moment=row.moment, proof=row.proof, created_by=row.created_by, fqn=row.fqn, role=row.role
        )
        self._writer.add("tensors", known.row)

    def is_reshaped(self, known: TrackedTensor, tensor: torch.Tensor) -> bool:
        """Return whether the tensor has another shape, whose elements may be the same bytes.

        `.data =` gave it other memory; or it has no `_version`, which tells a change of shape in the same memory.
        """
        if known.row.shape is None or is_answered_by_user(tensor):
            return False
        if known.version is not None and known.ref.storage == storage_address(tensor):
            return False
        return known.row.shape != _shape(tensor)

    def note(self, known: TrackedTensor, why: str) -> None:
        """Say why something of a tensor is not recorded."""
        write_note(self._writer, self._moments, known.number, why)

    def bury(self) -> None:
        """Write down the tensors that died since the last time."""
        while self.ids.dead:
            ref = self.ids.dead.popleft()
            self.ids.forget(ref)
            known = self.live.pop(ref.number, None)
            if known is not None:
                self.update(known, died=self._moments.now())

    def _row(self, tensor: torch.Tensor, ref: TensorRef, site: int | None, how: str) -> Tensor:
        shape, dtype, device, layout, numel, size_bytes, stride, offset, address, storage_bytes, why, root = (
            describe_tensor(tensor)
        )
        base = None if root is None else self.meet(root, site)
        moment = self._moments.now()
        storage = None if address is None else self.ids.storage(ref, address)
        is_leaf, requires_grad, *_ = flags_of(tensor) or (False, False)
        return Tensor(
            tensor=ref.number, shape=shape, dtype=dtype, device=device, layout=layout, cls=class_name(tensor),
            numel=numel, size_bytes=size_bytes, moment=moment, stride=stride, storage_offset=offset, storage=storage,
            storage_bytes=storage_bytes, view_of=None if base is None else base.number, special=why,
            created_by="unknown" if not requires_grad else "user" if is_leaf else "op",
            created_how=how,
            proof="seen" if requires_grad else "source" if how else "unknown",
            site=site,
        )  # fmt: skip

    def close(self) -> None:
        """Forget everything."""
        self.live.clear()
        self.ids.close()


def describe_tensor(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Describe the object itself as a row does.

    Returns:
        shape, dtype, device, layout, numel, bytes, stride, storage offset, the storage's address and bytes, why it is
        special, the tensor that it is a view of. In this order the compiled core takes it (`describe.c`). Of a tensor
        whose class answers for its sizes there is neither shape nor memory here: the class is the program's, and it
        may not be asked while it makes the tensor.
    """
    if not is_answered_by_user(tensor):
        return _read(tensor)
    try:
        with user_not_asked():
            return _read(tensor)
    except Untold:
        with user_not_asked():
            device, layout = _read_attribute(tensor, "device"), _read_attribute(tensor, "layout").removeprefix("torch.")
        return (None, dtype_name(tensor.dtype), device, layout, 0, 0, None, None, None, None, "dispatched", None)


def _read_attribute(tensor: torch.Tensor, attribute: str) -> str:
    try:
        return str(getattr(tensor, attribute))
    except Untold:
        return "unknown"


def _read(tensor: torch.Tensor) -> tuple[Any, ...]:
    why, root = special(tensor), None
    if why not in ("nested", "functorch") and tensor._is_view():
        root = tensor._base
    strided = tensor.layout is torch.strided and not tensor.is_nested
    storage = storage_of(tensor)
    return (
        _shape(tensor),
        dtype_name(tensor.dtype),
        str(tensor.device),
        str(tensor.layout)[6:],
        int(tensor.numel()),
        int(tensor.numel()) * tensor.element_size(),
        tuple(int(s) for s in tensor.stride()) if strided else None,
        int(tensor.storage_offset()) if strided else None,
        *(storage or (None, None)),
        why,
        None if root is tensor else root,
    )


def write_note(writer: Writer, moments: Moments, tensor: int, why: str) -> None:
    """Say why something of a tensor is not recorded."""
    writer.add("notes", Note(tensor=tensor, moment=moments.now(), why=cut(why)))


def _shape(tensor: torch.Tensor) -> tuple[int, ...] | None:
    if tensor.is_nested:
        return None  # a strided one raises; a jagged one has a size that is no number
    return tuple(int(size) for size in tensor.shape)
