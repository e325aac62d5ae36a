"""Backward calls: what each was given, met, ran, stored, freed, and how it ended."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import torch

from backprobe.capture.output.text import name
from backprobe.capture.torch_access import native
from backprobe.capture.torch_access.torch_internals import node_of
from backprobe.capture.tracking.cause import Cause
from backprobe.capture.tracking.graph.entry_points import Entry, entry_name, handed_in
from backprobe.capture.tracking.graph.growth import Growths
from backprobe.capture.tracking.graph.native_calls import Unseen
from backprobe.capture.tracking.graph.passes import Pass
from backprobe.capture.tracking.graph.retention import after_call
from backprobe.capture.tracking.graph.transform_calls import TransformedCalls
from backprobe.capture.tracking.graph.unsampled_calls import Light, LightEntry
from backprobe.capture.tracking.graph.walk import Walk, walk
from backprobe.capture.tracking.timeline import open_call
from backprobe.record import BackwardCall, Root

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_ROOTS = 4096
_Walk: Final = native.chosen_beside("States", Walk)
_walk: Final = walk if _Walk is Walk else native.native.walk


@dataclass(slots=True)
class OpenCall:
    """A backward call in progress.

    Attributes:
        passed: What was met before it, and what its sentinels told. roots: numbers of its root tensors.
        before: The exception that was being handled when it began; another one at its end is its own.
        sampled: Graph and gradients of this call are kept.
    """

    row: BackwardCall
    passed: Pass
    roots: tuple[int, ...]
    before: BaseException | None
    started_ns: int
    sampled: bool
    returned: tuple[bool, ...] | None = None
    touched: set[int] = field(default_factory=set)


class Calls:
    """Follows the engine's calls, nested ones too.

    Attributes:
        open: Those in progress, outermost first. reached: Calls that reached the engine so far.
        unseen, light: Calls that pass no Python entry; calls of steps that are not taken in full.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self.open: list[OpenCall] = []
        self._times: dict[int | None, int] = {}
        self._next = self.reached = 0
        self.unseen, self.light = Unseen(recorder), Light(recorder)
        self._transformed = TransformedCalls(recorder)
        self._growth = Growths(recorder)
        recorder.passes.unseen = self.unseen.open

    # ---- the Python entries, autograd.backward and autograd.grad

    def note_entry(self, kind: str, roots: Any, gradients: Any, retain_graph: Any) -> None:
        """Note that an entry begins."""
        given, retain = handed_in(gradients), None if retain_graph is None else bool(retain_graph)
        entry = Entry(kind, roots, given, retain, _get_current_exception(), self.reached)
        self._recorder.timeline().entries.append(entry)

    def leave_entry(self) -> None:
        """Note that an entry ends. An exception before the engine was reached is a call that raised."""
        entries = self._recorder.timeline().entries
        if not entries:
            return
        entry: Any = entries.pop()
        error = _get_current_exception()
        recorder, is_new = self._recorder, error is not entry.before and entry.first_call == self.reached
        if error is None or not is_new:
            return
        site = recorder.calling_site()
        roots = entry.roots if isinstance(entry.roots, (tuple, list)) else (entry.roots,)
        call, moment = self.number(), recorder.moments.new("before-backward", site, self._next - 1)
        row = BackwardCall(
            call=call, entry=entry_name(entry.kind, sys._getframe(3)), thread=recorder.timeline().thread,
            moment_before=moment, moment_after=moment, site=site, roots=self._roots(roots, entry.given),
            retain_graph_given=entry.retain_graph, accumulate_grad=entry.kind == "backward", outcome="raised",
        )  # fmt: skip
        row = msgspec.structs.replace(row, exception=recorder.failures.left_call(error, call))
        recorder.writer.add("backward_calls", row)
        recorder.writer.flush()

    # ---- the engine

    def begin(self, outputs: Sequence[Any], args: Sequence[Any], options: dict[str, Any]) -> None:
        """Note that the engine is called: record the state before, walk the graph, put sentinels."""
        recorder = self._recorder
        timeline = recorder.timeline()
        self.reached += 1
        if self._transformed.takes(timeline):
            recorder.passes.open(None, _Walk())
            return
        self.unseen.settle()
        site = recorder.calling_site()
        timeline.close(site)
        call = self.number()
        moment = recorder.moments.new("before-backward", site, call)  # first: what is found now did not hold before
        recorder.bury()
        self._times[site] = times = self._times.get(site, 0) + 1
        sampled = recorder.options.walks and recorder.sampler.keeps_walk(times)
        recorder.look_at_all(Cause(site=site), leaves_only=not recorder.is_small)
        row, roots = self._row(call, moment, site, outputs, args, options)
        graph_walk = self._walk(outputs, sampled=sampled, whole=row.inputs is None)
        if row.create_graph:
            recorder.nodes.order_of_call[call] = graph_walk.grad_order
        held = graph_walk.held_totals[1]
        row = msgspec.structs.replace(row, nodes_met=len(graph_walk), truncated=graph_walk.truncated, held_bytes=held)
        recorder.writer.add("backward_calls", row)
        recorder.sampler.nodes += len(graph_walk)
        passed = recorder.passes.open(call, graph_walk, detailed=sampled)
        opened = OpenCall(row, passed, roots, _get_current_exception(), recorder.writer.time_ns(), sampled)
        self.open.append(opened)
        timeline.calls.append(call)
        if row.accumulate_grad:
            recorder.sampler.note_roots(outputs)
        recorder.writer.flush()

    def result(self, given: Any) -> None:
        """Record what the engine returns: `autograd.grad` returns gradients that no sentinel sees."""
        opened = self._mine()
        if opened is None or not isinstance(given, tuple) or opened.row.accumulate_grad:
            return
        opened.returned = tuple(gradient is not None for gradient in given)
        for root, gradient in zip(opened.row.inputs or (), given, strict=False):
            if root.tensor is not None and isinstance(gradient, torch.Tensor):
                self._recorder.passes.record_returned(opened.passed, root.tensor, gradient)

    def end(self, outputs: Sequence[Any]) -> None:
        """Record that the engine is left, by return or by exception."""
        recorder, opened = self._recorder, self._mine()
        timeline = recorder.timeline()
        if opened is None:
            if timeline.calls and (number := timeline.calls.pop()) < 0:
                recorder.passes.close(None)
                self._transformed.end(number)
            return
        self.unseen.settle()
        duration = recorder.writer.time_ns() - opened.started_ns
        error = None if (found := _get_current_exception()) is opened.before else found
        row, call = opened.row, opened.row.call
        timeline.close(row.site)
        timeline.calls.pop()
        self.open.remove(opened)
        recorder.passes.close(opened.passed)
        recorder.guard.own_ns += opened.passed.own_ns
        moment = recorder.moments.new("after-backward", row.site, call)
        cause = Cause(site=row.site, call=call, creates=row.create_graph)
        if opened.sampled:
            recorder.nodes.complete(outputs)
        freed = recorder.passes.write(opened.passed, moment, keeps=row.retain_graph, raised=error is not None)
        self._leaves(opened, cause)
        row = msgspec.structs.replace(
            row,
            moment_after=moment,
            returned=opened.returned,
            nodes_run=len(opened.passed),
            nodes_freed=freed,
            freed_bytes=max(0, row.held_bytes - opened.passed.walk.held_totals[1]),
            duration_ns=duration,
            own_ns=recorder.guard.own_ns,
            outcome="finished" if error is None else "raised",
        )
        if error is not None:
            recorder.writer.add("backward_calls", row)
            row = msgspec.structs.replace(row, exception=recorder.failures.left_call(error, call))
        recorder.writer.add("backward_calls", row)
        if opened.sampled:
            for root in opened.roots:
                after_call(recorder, root, opened.passed.walk, row, moment)
            self._growth.after_call(row, moment)
        recorder.bury()
        recorder.writer.flush()
        recorder.sampler.backward_ended(error, row.accumulate_grad)

    def arrive(self) -> None:
        """Compare tensors before the engine calls a function of the program: the changes are the call's."""
        opened, recorder = self._mine(), self._recorder
        if opened is not None and recorder.is_small:
            recorder.states.touched = opened.touched
            recorder.look_at_all(Cause(site=opened.row.site, call=opened.row.call, creates=opened.row.create_graph))

    # ---- parts

    def walk(self, roots: Iterable[Any] = (), *, whole: bool = False) -> Walk:
        """Walk the graphs behind root nodes; without any, a walk that met nothing."""
        return _walk(roots, self._recorder.nodes, self._recorder.writer, whole=whole)

    def number(self) -> int:
        """Return the number of a call that begins."""
        self._next += 1
        return self._next - 1

    def _mine(self) -> OpenCall | None:
        """Return the innermost call that is open in this thread."""
        calls = self._recorder.timeline().calls
        if not calls:
            return None
        return next((opened for opened in reversed(self.open) if opened.row.call == calls[-1]), None)

    def _row(
        self,
        call: int,
        moment: int,
        site: int | None,
        outputs: Sequence[Any],
        args: Sequence[Any],
        options: dict[str, Any],
    ) -> tuple[BackwardCall, tuple[int, ...]]:
        recorder = self._recorder
        timeline = recorder.timeline()
        retain_graph, create_graph = bool(args[1]), bool(args[2])
        inputs = args[3] if len(args) > 3 else ()
        accumulate = bool(options.get("accumulate_grad", True))
        entry: Any = timeline.entries[-1] if timeline.entries else None
        entry = None if type(entry) is LightEntry else entry
        roots = self._roots(outputs, () if entry is None else entry.given)
        row = BackwardCall(
            call=call,
            entry=entry_name(None if entry is None else entry.kind, sys._getframe(4)),
            thread=timeline.thread,
            moment_before=moment,
            site=site,
            parent=open_call(timeline),
            roots=roots,
            inputs=self._roots(inputs, ()) if inputs else None,
            retain_graph=retain_graph,
            retain_graph_given=None if entry is None else entry.retain_graph,
            create_graph=create_graph,
            accumulate_grad=accumulate,
            allow_unused=bool(args[4]) if len(args) > 4 and not accumulate else False,
        )
        return row, tuple(root.tensor for root in roots if root.tensor is not None)

    def _roots(self, tensors: Sequence[Any], given: Sequence[bool]) -> tuple[Root, ...]:
        """Tensors, or graph edges, that a call was given."""
        found: list[Root] = []
        for index, tensor in enumerate(tuple(tensors)[:_ROOTS]):
            handed = index < len(given) and given[index]
            known = self._recorder.see(tensor) if isinstance(tensor, torch.Tensor) else None
            if known is None:
                found.append(Root(tensor=None, name=None, shape=None, gradient_given=handed))
                continue
            label = known.name or known.row.fqn
            label = None if label is None else name(label)
            found.append(Root(tensor=known.number, name=label, shape=known.row.shape, gradient_given=handed))
        return tuple(found)

    def _walk(self, outputs: Sequence[Any], *, sampled: bool, whole: bool) -> Walk:
        recorder = self._recorder
        if not sampled:
            if recorder.options.walks:
                recorder.writer.cut("walks of backward calls", "more calls than are walked of one site, or in one step")
            return _Walk()
        roots: list[Any] = []
        for output in outputs:
            if not isinstance(output, torch.Tensor):
                roots.append(output.node)
            elif recorder.nodes.has_room:
                roots.append(node_of(output))
            else:
                recorder.nodes.refuse()
                return _Walk(truncated=True)
        return self.walk(roots, whole=whole)

    def _leaves(self, opened: OpenCall, cause: Cause) -> None:
        """Record what the call did to `.grad`."""
        recorder = self._recorder
        recorder.states.touched = opened.touched
        recorder.look_at_all(cause, leaves_only=not recorder.is_small)
        if not opened.row.accumulate_grad or not opened.sampled or not recorder.is_small:
            return
        for known in list(recorder.tensors.live.values()):
            if known.state and known.state[0][0] and known.state[0][1] and known.number not in opened.touched:
                recorder.states.record_untouched(known, cause)


def _get_current_exception() -> BaseException | None:
    """Return the exception that is being handled."""
    return sys.exc_info()[1]
