"""What the sentinels of backward calls tell: which nodes ran, in which order, and which gradients reached them.

The engine's own number of the pass tells which call a sentinel speaks for: it is the same in every thread that
works for a pass, and another one in a pass that was started inside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec
import torch

from backprobe.capture.options import Options
from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.fence import Guard
from backprobe.capture.torch_access.tensor_memory import dtype_name, elements
from backprobe.capture.torch_access.torch_internals import current_pass
from backprobe.capture.tracking.completion import complete_pass
from backprobe.capture.tracking.graph.nodes import NodeFacts, Nodes
from backprobe.capture.tracking.graph.walk import Walk
from backprobe.capture.tracking.tensors.snapshots import States
from backprobe.record import NodePass, Statistics

_ENCODER: Final = msgspec.msgpack.Encoder()


class Pass:
    """One pass of the engine as its sentinels see it.

    Attributes:
        call: Number of the backward call; None for one of which nothing is recorded.
        walk: What was walked before it. detailed: its gradients are measured.
        ran: Facts of the nodes that began to run, in order; each once.
        task: The engine's number of the pass, once a sentinel told it; -1 before.
        own_ns: Time of sentinels that the guard did not count.
    """

    __slots__ = ("call", "detailed", "gradients", "holes", "own_ns", "ran", "small", "task", "thread", "walk")

    def __init__(self, call: int | None, walk: Walk, *, detailed: bool) -> None:
        self.call, self.walk, self.detailed = call, walk, detailed
        self.task, self.own_ns = -1, 0
        self.thread = threading.get_ident()
        self.ran: dict[int, NodeFacts] = {}
        self.gradients: dict[tuple[int, int], Statistics | None] = {}
        self.holes: set[tuple[int, int]] = set()
        self.small: list[tuple[int, torch.dtype, tuple[int, ...], bytes]] = []

    def __len__(self) -> int:
        return len(self.ran)

    def ran_with_saved(self, number: int) -> bool:
        """Return whether a node ran in the pass that held saved tensors when it was met."""
        return number in self.ran and self.ran[number].saves > 0


class Passes:
    """The passes that are open, in all threads.

    Attributes:
        unseen: Opens a pass for a sentinel that speaks for none of them; set by the recorder.
    """

    def __init__(self, writer: Writer, nodes: Nodes, states: States, options: Options, guard: Guard) -> None:
        self.unseen: Callable[[], Pass | None] = _nothing
        self._writer, self._nodes, self._states, self._options, self._guard = writer, nodes, states, options, guard
        self._open: list[Pass] = []
        nodes.arrived = self.take_gradients

    def open(self, call: int | None, walk: Walk, *, detailed: bool = False) -> Pass:
        """Open a pass in this thread."""
        passed = Pass(call, walk, detailed=detailed)
        self._open.append(passed)
        return passed

    def close(self, passed: Pass | None) -> None:
        """Close a pass; None: this thread's newest one of which nothing is recorded."""
        if passed is None:
            me = threading.get_ident()
            passed = next(opened for opened in reversed(self._open) if opened.call is None and opened.thread == me)
        self._open.remove(passed)

    def take_gradients(self, facts: NodeFacts, gradients: Any) -> None:
        """Gradients reached a node, one per forward output of it."""
        self._guard.run(self._take, facts, gradients)

    def _take(self, facts: NodeFacts, gradients: Any) -> None:
        passed = self._find_pass(facts.number, current_pass())
        if passed is None:
            passed = self.unseen()
        if passed is None or passed.call is None:
            return
        passed.ran[facts.number] = facts
        if not passed.detailed:
            return
        for output_nr, gradient in enumerate(gradients):
            key = (facts.number, output_nr)
            if not isinstance(gradient, torch.Tensor):
                passed.holes.add(key)
                continue
            raw = elements(gradient, self._options.caps.elements) if self._options.measures else None
            passed.gradients[key] = self._states.statistics(gradient, raw)
            if self._options.measures and gradient.device.type != "cpu":
                self._writer.values.arrive(passed.call, facts.number, output_nr, gradient)
            tensor = facts.tensors.get(output_nr)
            if tensor is not None and raw is not None:
                passed.small.append((tensor, gradient.dtype, tuple(gradient.shape), raw))

    def record_returned(self, passed: Pass, tensor: int, gradient: torch.Tensor) -> None:
        """Record a gradient that was returned for an input, whose own node does not run."""
        raw = elements(gradient, self._options.caps.elements) if self._options.measures else None
        if raw is not None:
            passed.small.append((tensor, gradient.dtype, tuple(gradient.shape), raw))

    def write(self, passed: Pass, moment: int, *, keeps: bool, raised: bool) -> int:
        """Write a pass's rows; how many nodes it freed.

        A node's saved tensors are released after it ran, unless the graph is kept: the last node of a pass that raised
        is the one that raised, and still holds them.

        Args:
            keeps: The graph is kept. raised: The pass ended by an exception.
        """
        done = list(passed.ran.values())
        if raised:
            done = done[:-1]
        freed = {f.number: f for f in done if not keeps and f.saves and f.freed_by is None}
        for facts in freed.values():
            self._nodes.update(facts, freed_by=passed.call)
        positions = {number: position for position, number in enumerate(passed.ran)}
        for facts in {**{f.number: f for f in passed.walk.nodes}, **passed.ran}.values():
            self._rows(passed, facts, positions.get(facts.number), moment, freed=facts.number in freed)
        for tensor, dtype, shape, raw in passed.small:
            self._states.small_raw(tensor, moment, "arrived", dtype, shape, raw)
        return len(freed)

    def _find_pass(self, number: int, task: int) -> Pass | None:
        """Find the pass that runs in this thread, or that a device's own thread works for."""
        me = threading.get_ident()
        fresh = [passed for passed in self._open if passed.task < 0]
        own = [passed for passed in self._open if passed.task == task] or [p for p in fresh if p.thread == me]
        if not own:
            own = fresh if len(fresh) == 1 else [passed for passed in fresh if passed.walk.has_met(number)]
            if len(own) != 1:
                return None
        own[-1].task = task
        return own[-1]

    def _rows(self, passed: Pass, facts: NodeFacts, position: int | None, moment: int, *, freed: bool) -> None:
        call: Any = passed.call
        outputs = max(1, len(facts.row.outputs)) if position is not None else 1
        for output_nr in range(outputs):
            key = (facts.number, output_nr)
            self._writer.add(
                "node_passes",
                NodePass(
                    call=call, node=facts.number, output_nr=output_nr, position=position, freed=freed,
                    hole=key in passed.holes, grad_output=passed.gradients.get(key),
                ),
            )  # fmt: skip
            if passed.gradients.get(key, self) is None:
                tensor = facts.tensors.get(output_nr)
                place = (call, facts.number, output_nr, position, freed)
                complete_pass(self._writer, place, -1 if tensor is None else tensor, moment)


def measure_gradient(
    states: States,
    options: Options,
    gradient: Any,
    writer: Writer | None = None,
    place: tuple[int, int, int] | None = None,
) -> tuple[bytes, bytes | None]:
    """For the compiled core, of a gradient that it cannot read: its statistics, and dtype, shape, elements if small.

    Args:
        place: The backward call, node and output that it reached: so is queued what lies on another device.
    """
    if writer is not None and place is not None and gradient.device.type != "cpu":
        writer.values.arrive(*place, gradient)
    raw = elements(gradient, options.caps.elements)
    reduced = states.statistics(gradient, raw)
    if raw is None:
        return _ENCODER.encode(reduced), None
    parts = (dtype_name(gradient.dtype), tuple(gradient.shape), raw)
    return _ENCODER.encode(reduced), b"".join(_ENCODER.encode(part) for part in parts)


def _nothing() -> None:
    return None
