"""Optimizers: which tensors they hold, their steps and zero_grads."""

from __future__ import annotations

import sys
import threading
from collections import deque
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import torch

from backprobe.capture.output.text import class_name, name
from backprobe.capture.torch_access.torch_internals import flags_of
from backprobe.capture.tracking.cause import Cause
from backprobe.capture.tracking.tensors.identity import OwnRef
from backprobe.capture.tracking.tensors.tensor_registry import TrackedTensor
from backprobe.capture.tracking.training.events import rates_of
from backprobe.capture.tracking.training.step_values import StepValues
from backprobe.record import Optimizer, OptimizerEvent, OptimizerTensor

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_WRAPPER = 3
"""Frames from a hook's body to torch's wrapper of `step`."""

_RECENT = 32
"""Events that are at hand for the check of gradients."""

_MOST_TENSORS = 20_000
"""Tensors of one optimizer that are listed: more would not fit a frame."""


@dataclass(slots=True)
class KnownOptimizer:
    """An optimizer as long as it lives; `before`: its tensors before the step in progress."""

    number: int
    ref: OwnRef[Any]
    row: Optimizer
    before: StepValues
    times: int = 0


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A `step` in progress: the thread and the frame it runs in, by their ids."""

    thread: int
    frame: int
    site: int | None
    optimizer: KnownOptimizer


class Optimizers:
    """Meets optimizers and follows what they do.

    Attributes:
        told: How many events were written. recent: the last ones.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._known: dict[int, KnownOptimizer] = {}
        self.open_steps: list[OpenStep] = []
        self._next = self.told = self._steps = 0
        self.recent: deque[OptimizerEvent] = deque(maxlen=_RECENT)

    def bind(self, optimizer: torch.optim.Optimizer, binding: str | None, site: int | None) -> None:
        """Write an optimizer that got a name."""
        self._write(optimizer, binding, site)

    @property
    def any(self) -> bool:
        """An optimizer was met."""
        return bool(self._known)

    def list_parameters(self) -> list[torch.Tensor]:
        """List the parameters of the optimizers that live, each once."""
        return list({id(tensor): tensor for group in self.lists() for tensor in group}.values())

    def lists(self) -> list[list[torch.Tensor]]:
        """Return the lists of parameters that the groups hold."""
        living = [optimizer for known in self._known.values() if (optimizer := known.ref()) is not None]
        return [group["params"] for optimizer in living for group in optimizer.param_groups]

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """`step` begins: what it finds is put down to the statements before it."""
        if not self._recorder.sampler.detail:
            return
        known = self._known_or_met(optimizer)
        known.times += 1
        site = self._recorder.calling_site()
        self._recorder.moments.statement(site)
        found = self._tensors(optimizer)
        self._recorder.states.look_many(found, Cause(site=site))
        known.before = StepValues(found)
        self.open_steps.append(OpenStep(threading.get_ident(), id(sys._getframe(_WRAPPER)), site, known))

    def look_in_step(self) -> None:
        """Attribute to an open `step` (LBFGS and its closure) what changed before a function of the user begins."""
        step = self._innermost()
        optimizer = None if step is None else step.optimizer.ref()
        if step is None or optimizer is None:
            return
        cause = Cause(site=step.site, step=step.optimizer.number)
        self._recorder.moments.statement(step.site)
        for tracked, tensor in self._tensors(optimizer):
            self._recorder.look(tracked, tensor, cause)
        self._recorder.moments.close_statement()

    def _innermost(self) -> OpenStep | None:
        """Find the `step` that this thread is in. One that raised has no frame any more, and is forgotten."""
        if not self.open_steps:
            return None
        me = threading.get_ident()
        frames: set[int] = set()
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            frames.add(id(frame))
            frame = frame.f_back
        self.open_steps[:] = [step for step in self.open_steps if step.thread != me or step.frame in frames]
        return next((step for step in reversed(self.open_steps) if step.thread == me), None)

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """`optimizer.step()` ended: record what it changed if this training step is sampled, else only count it."""
        if self._recorder.sampler.detail:
            self._record_step(optimizer)
        else:
            self._steps, self._recorder.moments.steps = self._steps + 1, self._recorder.moments.steps + 1
        self._recorder.sampler.optimizer_stepped(optimizer)

    def only_counts(self, optimizer: Any) -> bool:
        """`step` ended in a step that is not read: whether that is counted here, and nothing else is to be done."""
        counted = self._recorder.sampler.passes(optimizer)
        self._steps, self._recorder.moments.steps = self._steps + counted, self._recorder.moments.steps + counted
        return counted

    def _record_step(self, optimizer: Any) -> None:
        recorder, known = self._recorder, self._known_or_met(optimizer)
        site = recorder.calling_site()
        frame = id(sys._getframe(_WRAPPER))
        self.open_steps[:] = [step for step in self.open_steps if step.frame != frame]
        recorder.timeline().close(site)
        moment = recorder.moments.new("optimizer-step", site, self._steps)
        recorder.bury()
        self._steps += 1
        recorder.moments.steps += 1
        cause = Cause(site=site, step=known.number)
        found = self._tensors(optimizer)
        recorder.states.look_many(found, cause)
        changed, unchanged = known.before.count_changed(found), known.before.list_unchanged_tensors(found)
        rates = rates_of(optimizer)
        self._event(known, "step", moment, site, found, changed=changed, learning_rates=rates, unchanged=unchanged)
        if known.times == 1:
            self._write(optimizer, known.row.binding, known.row.site)
        recorder.writer.flush_if_due()

    def after_zero_grad(self, optimizer: Any, set_to_none: Any) -> None:
        """`zero_grad` ended."""
        if not self._recorder.sampler.detail:
            return
        recorder, known = self._recorder, self._known_or_met(optimizer)
        site = recorder.calling_site()
        recorder.moments.statement(site)
        found = self._tensors(optimizer)
        moment = recorder.moments.now()
        recorder.states.look_many(found, Cause(site=site))
        self._event(known, "zero_grad", moment, site, found, set_to_none=bool(set_to_none))

    def refresh_all(self) -> None:
        """List again what the known optimizers hold, where it changed."""
        for known in list(self._known.values()):
            optimizer = known.ref()
            if optimizer is not None:
                self._write(optimizer, known.row.binding, known.row.site)

    def close(self) -> None:
        """Forget everything."""
        self._known.clear()

    def _event(
        self,
        known: KnownOptimizer,
        kind: Literal["step", "zero_grad"],
        moment: int,
        site: int | None,
        found: list[tuple[TrackedTensor, torch.Tensor]],
        **facts: Any,
    ) -> None:
        having = sum(1 for tracked, _ in found if tracked.grad is not None)
        row = OptimizerEvent(
            n=0, optimizer=known.number, kind=kind, moment=moment, site=site,
            with_grad=having, without_grad=len(found) - having, **facts,
        )  # fmt: skip
        self.tell(row)

    def tell(self, row: OptimizerEvent) -> None:
        """Write an event, which gets the next number."""
        row = msgspec.structs.replace(row, n=self.told)
        self._recorder.writer.add("optimizer_events", row)
        self.recent.append(row)
        self.told += 1

    def number_of(self, optimizer: Any) -> int | None:
        """Return the number of an optimizer, and meet it if it is of torch's class; None for anything else."""
        return self._known_or_met(optimizer).number if isinstance(optimizer, torch.optim.Optimizer) else None

    def steps_of(self, optimizer: Any) -> int:
        """How many steps of an optimizer were seen."""
        known = self._known.get(id(optimizer))
        return known.times if known is not None and known.ref() is optimizer else 0

    def holding(self, numbers: set[int]) -> int | None:
        """Return the only optimizer that holds all of these tensors; None if none or several do."""
        found = [
            known.number
            for known in self._known.values()
            if numbers and numbers <= {t.tensor for t in known.row.tensors}
        ]
        return found[0] if len(found) == 1 else None

    def _known_or_met(self, optimizer: Any) -> KnownOptimizer:
        known = self._known.get(id(optimizer))
        if known is not None and known.ref() is optimizer:
            return known
        return self._write(optimizer, None, self._recorder.calling_site())

    def _tensors(self, optimizer: Any) -> list[tuple[TrackedTensor, torch.Tensor]]:
        found: list[tuple[TrackedTensor, torch.Tensor]] = []
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                known = self._recorder.see(tensor)
                if known is not None and len(found) < _MOST_TENSORS:
                    found.append((known, tensor))
        return found

    def _write(self, optimizer: Any, binding: str | None, site: int | None) -> KnownOptimizer:
        """Write an optimizer's row, the first time or where it changed."""
        recorder, known = self._recorder, self._known.get(id(optimizer))
        if known is not None and known.ref() is not optimizer:
            known = None
        old = None if known is None else known.row
        number = self._next if known is None else known.number
        self._next += known is None
        if old is not None:  # the first sight of it is its construction; a later name does not move it
            site = site if old.site is None else old.site
            binding = binding or old.binding
        row = Optimizer(
            optimizer=number,
            cls=class_name(optimizer),
            moment=recorder.moments.now() if old is None else old.moment,
            binding=None if binding is None else name(binding),
            site=site,
            learning_rates=tuple(_number(group.get("lr")) for group in optimizer.param_groups)[:4096],
            tensors=self._list_tensors(optimizer),
        )
        if known is not None and row == old:
            return known
        recorder.writer.add("optimizers", row)
        if known is None:
            known = self._known[id(optimizer)] = KnownOptimizer(number, OwnRef(optimizer), row, StepValues())
        known.row = row
        return known

    def _list_tensors(self, optimizer: Any) -> tuple[OptimizerTensor, ...]:
        recorder = self._recorder
        counts: dict[int, int] = {}
        rows: list[tuple[int, int, bool]] = []
        for index, group in enumerate(optimizer.param_groups):
            for tensor in group["params"]:
                known = recorder.see(tensor)
                if known is None or len(rows) >= _MOST_TENSORS:
                    continue
                counts[known.number] = counts.get(known.number, 0) + 1
                flags = flags_of(tensor)
                rows.append((known.number, index, flags is not None and flags[0]))
        held = recorder.modules.held_numbers() if recorder.modules.any else None
        return tuple(
            OptimizerTensor(
                tensor=number,
                group=group,
                stale=held is not None and number not in held and recorder.tensors.live[number].row.fqn is not None,
                non_leaf=not leaf,
                foreign=held is not None and number not in held and recorder.tensors.live[number].row.fqn is None,
                duplicated=counts[number] > 1,
            )
            for number, group, leaf in rows
        )


def _number(rate: Any) -> float:
    try:
        return float(rate)
    except (TypeError, ValueError):
        return 0.0
