"""The state of a tensor, compared with its last one: a snapshot or an event where it changed.

1. `.grad` is read of leaves and of tensors that retain it, never of another: torch would warn.
2. `grad_fn` is read only while the node budget has room.
"""

from __future__ import annotations

from typing import Any

import torch

from backprobe.capture.options import Options
from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.tensor_memory import dtype_name, elements
from backprobe.capture.torch_access.tensor_statistics import of_elements, statistics
from backprobe.capture.torch_access.torch_internals import flags_of, next_sequence_number, storage_address, version_of
from backprobe.capture.tracking.cause import LATE, Cause
from backprobe.capture.tracking.completion import complete_snapshot
from backprobe.capture.tracking.graph.nodes import Nodes, type_name
from backprobe.capture.tracking.moments import Moments
from backprobe.capture.tracking.tensors.tensor_registry import Tensors, TrackedTensor
from backprobe.record import InplaceEvent, LeafGrad, SmallValue, Snapshot, Statistics, TensorNode
from backprobe.record.state_flags import by_name


class States:
    """Compares tensors with their last state.

    Turns number the statements that can change a tensor. A change is put down to a statement only if the one before it
    saw the tensor as it was: else it is a change that was found late, and whose it is, is not known.

    Attributes:
        touched: Leaves whose `.grad` changed since the caller last emptied it.
        hooked: Hooks of the program may write during a backward call: the core in C measures again what they may reach.
        turn: Statements that ended. since: the turn of the statement before the one in progress.
        full: The turn in which all tensors were compared; quick: in which their versions and gradients were.
    """

    def __init__(self, writer: Writer, moments: Moments, tensors: Tensors, nodes: Nodes, options: Options) -> None:
        self._writer, self._moments, self._tensors, self._nodes = writer, moments, tensors, nodes
        self._options = options
        self.touched: set[int] = set()
        self.hooked = False
        self.turn = self.since = self.full = self.quick = 0
        self._inplace_events = 0
        self._leaf_grads = 0

    def differs(self, known: TrackedTensor, tensor: torch.Tensor) -> bool:
        """Look quickly for a change: another `_version`, or another `.grad`, or one changed; True if unreadable."""
        try:
            return self._differs(known, tensor)
        except RuntimeError:
            return True

    def _differs(self, known: TrackedTensor, tensor: torch.Tensor) -> bool:
        if not known.state or version_of(tensor) != known.version:
            return True
        (is_leaf, requires_grad, retains, *_), *_ = known.state
        if not (retains or (is_leaf and requires_grad)):
            return False
        gradient, before = tensor.grad, known.grad
        if gradient is None or before is None:
            return gradient is not before
        return before() is not gradient or version_of(gradient) != known.grad_version

    def look_many(self, found: list[tuple[TrackedTensor, torch.Tensor]], cause: Cause) -> None:
        """Look at several."""
        for known, tensor in found:
            self.look(known, tensor, cause)

    def look(self, known: TrackedTensor, tensor: torch.Tensor, cause: Cause) -> None:
        """Read a tensor's state and write down what changed since the last look."""
        flags = flags_of(tensor)
        if flags is None:
            if known.readable:
                known.readable = False
                self._tensors.note(known, "its state cannot be read: it is one of several views of a base that changed")
            return
        is_leaf, requires_grad, retains, *_ = flags
        version: int | None = version_of(tensor)
        raw = elements(tensor, self._options.caps.elements) if self._options.measures else None
        value_changed = known.is_new or version != known.version or raw != known.raw
        value_changed = value_changed or (raw is not None and self._tensors.is_reshaped(known, tensor))
        if value_changed and not known.is_new:
            self._record_change(known, version, self._put_down(known, cause, version != known.version))
        moved = storage_address(tensor) != known.ref.storage
        if not known.is_new and (value_changed or moved):
            self._tensors.refresh(known, tensor)  # `.data =` gives other memory, whose elements may be the same
        number = next_sequence_number()
        if known.is_new or version != known.version:
            known.versions.append((number if known.is_new else known.looked_at, number, version or 0))
        known.looked_at = number
        changed = version != known.version
        self._node(known, tensor, made=requires_grad and not is_leaf, changed=changed, moved=moved)
        gradient = tensor.grad if is_leaf or retains else None
        grad_kind = "not-read" if not (is_leaf or retains) else "none" if gradient is None else "present"
        followed = is_leaf and requires_grad
        grad_changed, grad_raw = self._gradient(known, gradient, cause, is_leaf=followed, empties=followed or retains)
        state = (flags, grad_kind, known.grad_fn, known.grad_fn_read, version)
        known.version, known.raw, known.turn = version, raw, self.turn
        if state == known.state and not (value_changed or grad_changed):
            return
        known.is_new, known.state = False, state
        self._snapshot(
            known, tensor, gradient, value_changed=value_changed, grad_changed=grad_changed, grad_raw=grad_raw
        )

    def record_untouched(self, known: TrackedTensor, cause: Cause) -> None:
        """Record a leaf whose `.grad` a backward call left as it was."""
        self._leaf_grad(known, "untouched", cause, known.grad, known.grad_version)

    def small(self, number: int, moment: int, of: Any, tensor: torch.Tensor, raw: bytes) -> None:
        """Keep the elements of a small tensor."""
        write_small(self._writer, number, moment, of, tensor, raw)

    def small_raw(
        self, number: int, moment: int, of: Any, dtype: torch.dtype, shape: tuple[int, ...], raw: bytes
    ) -> None:
        """Keep elements that were read before."""
        write_small_raw(self._writer, number, moment, of, dtype, shape, raw)

    def statistics(self, tensor: torch.Tensor, raw: bytes | None) -> Statistics | None:
        """Reduce a tensor to numbers; None at a tier that reads no values, and where they are not defined."""
        return measure_values(tensor, raw, self._options)

    def _snapshot(
        self,
        known: TrackedTensor,
        tensor: torch.Tensor,
        gradient: torch.Tensor | None,
        *,
        value_changed: bool,
        grad_changed: bool,
        grad_raw: bytes | None,
    ) -> None:
        moment, number = self._moments.now(), known.number
        flags, grad_kind, grad_fn, grad_fn_read, version = known.state
        value = self.statistics(tensor, known.raw) if value_changed else None
        grad_stats = self.statistics(gradient, grad_raw) if grad_changed and gradient is not None else None
        row = Snapshot(
            tensor=number, moment=moment, **by_name(flags), grad=grad_kind, grad_fn=grad_fn,
            grad_fn_read=grad_fn_read, version=version,
            grad_id=None if known.grad is None else known.grad.number, grad_version=known.grad_version,
            value=value, grad_stats=grad_stats,
        )  # fmt: skip
        self._writer.add("snapshots", row)
        if self._options.measures:
            complete_snapshot(self._writer, row, tensor if value_changed else None, gradient if grad_changed else None)
        if value_changed and known.raw is not None:
            self.small(number, moment, "value", tensor, known.raw)
        if grad_changed and gradient is not None and grad_raw is not None:
            self.small(number, moment, "grad", gradient, grad_raw)

    def _record_change(self, known: TrackedTensor, version: int | None, cause: Cause) -> None:
        """Its elements or its version changed since the last look."""
        if known.row.role == "gradient" and known.name is None:
            return  # what happens to it is recorded as its owner's gradient
        before, after = known.version or 0, version or 0
        if before == after:
            self._tensors.note(
                known, "its elements changed without a new _version: autograd cannot see a write through .data"
            )
        by = "optimizer" if cause.step is not None else "backward" if cause.call is not None else "statement"
        by = "unknown" if cause.unseen or cause is LATE else by
        self._writer.add(
            "inplace_events",
            InplaceEvent(
                n=self._inplace_events, tensor=known.number, moment=self._moments.now(), version_before=before,
                version_after=after, done_by=by, site=cause.site, optimizer=cause.step,
            ),
        )  # fmt: skip
        self._inplace_events += 1

    def _node(self, known: TrackedTensor, tensor: torch.Tensor, *, made: bool, changed: bool, moved: bool) -> None:
        """Keep up which node made a tensor. One in other memory may have changed places with another tensor."""
        if not made:
            known.node, known.grad_fn, known.grad_fn_read = None, None, True
            return
        if known.node is not None and not changed and not moved:
            return
        told = None if changed else known.node
        known.node, known.grad_fn, known.grad_fn_read = None, None, False
        if not self._options.walks:
            return
        if not self._nodes.has_room:
            self._nodes.refuse()
            return
        node = tensor.grad_fn
        if node is None:
            return
        known.grad_fn, known.grad_fn_read = type_name(node), True
        facts = self._nodes.meet_producer(node, known.number, tensor.output_nr)
        if facts is None:
            return
        known.node = facts.number
        if known.node == told:
            return
        self._writer.add(
            "tensor_nodes",
            TensorNode(tensor=known.number, node=facts.number, output_nr=tensor.output_nr, proof="seen"),
        )
        if known.row.created_how != facts.type:
            self._tensors.update(known, created_by="op", proof="seen", created_how=facts.type)

    def _gradient(
        self, known: TrackedTensor, gradient: torch.Tensor | None, cause: Cause, *, is_leaf: bool, empties: bool
    ) -> tuple[bool, bytes | None]:
        """Compare `.grad` with the last look: whether it changed, and its elements if it is small.

        Args:
            is_leaf: Every change of it is recorded. empties: its end is recorded; so for a gradient that was retained.
        """
        if gradient is None:
            had = known.grad is not None
            if had and empties:
                self._leaf_grad(known, "set-none", self._put_down(known, cause, True), None, None)
            known.grad = known.grad_version = known.grad_raw = None
            return had, None
        ref = self._tensors.ids.ensure_ref(gradient)
        version = version_of(gradient)
        raw = elements(gradient, self._options.caps.elements) if self._options.measures else None
        if ref is known.grad and version == known.grad_version and raw == known.grad_raw:
            return False, raw
        if is_leaf:
            quick = ref is not known.grad or version != known.grad_version
            self._leaf_grad(known, _kind(known.grad, ref, cause), self._put_down(known, cause, quick), ref, version)
        known.grad, known.grad_version, known.grad_raw = ref, version, raw
        self._meet_gradient(gradient, cause)
        return True, raw

    def _put_down(self, known: TrackedTensor, cause: Cause, quick: bool) -> Cause:
        """Return the cause of a change (`quick`: a quick look shows it); LATE if it may be older than the statement."""
        if cause.named or cause.unseen or cause.call is not None or cause.step is not None:
            return cause
        seen = max(known.turn, self.full, self.quick if quick else 0)
        return cause if seen >= self.since else LATE

    def _meet_gradient(self, gradient: torch.Tensor, cause: Cause) -> None:
        """Record a gradient as a tensor with a state: in small programs, and where it carries a graph."""
        if not gradient.requires_grad and len(self._tensors.live) > self._options.caps.exact_tensors:
            return
        met = self._tensors.find(gradient) is not None
        known = self._tensors.meet(gradient, cause.site)
        if known is not None and not met:
            self._tensors.update(known, role="gradient")
            self.look(known, gradient, cause)

    def _leaf_grad(self, known: TrackedTensor, kind: Any, cause: Cause, after: Any, version: int | None) -> None:
        self.touched.add(known.number)
        if cause.unseen and kind != "set-none":
            return  # backward calls that were not looked at made it; who did is not known
        self._writer.add(
            "leaf_grads",
            LeafGrad(
                n=self._leaf_grads, tensor=known.number, moment=self._moments.now(), kind=kind, call=cause.call,
                site=cause.site, grad_before=None if known.grad is None else known.grad.number,
                grad_after=None if after is None else after.number, version_before=known.grad_version,
                version_after=version,
            ),
        )  # fmt: skip
        self._leaf_grads += 1


def measure_values(tensor: torch.Tensor, raw: bytes | None, options: Options) -> Statistics | None:
    """Reduce a tensor to numbers; None at a tier that reads no values, and where they are not defined."""
    if not options.measures:
        return None
    if raw:
        reduced = of_elements(raw, tensor.dtype)
        if reduced is not None:
            return reduced
    return statistics(tensor, options.caps)


def write_small(writer: Writer, number: int, moment: int, of: Any, tensor: torch.Tensor, raw: bytes) -> None:
    """Keep the elements of a small tensor."""
    write_small_raw(writer, number, moment, of, tensor.dtype, tuple(tensor.shape), raw)


def write_small_raw(
    writer: Writer, number: int, moment: int, of: Any, dtype: torch.dtype, shape: tuple[int, ...], raw: bytes
) -> None:
    """Keep elements that were read before."""
    row = SmallValue(tensor=number, moment=moment, of=of, dtype=dtype_name(dtype), shape=shape, elements=raw)
    writer.add("small_values", row)


def _kind(before: Any, after: Any, cause: Cause) -> str:
    """Name the change of a `.grad` that left a tensor there."""
    in_pass = cause.call is not None
    if before is None:
        return "populate" if in_pass else "assigned"
    if before is after:
        return "accumulate" if in_pass else "modified-in-place"
    return "accumulate-new-tensor" if in_pass else "assigned"
