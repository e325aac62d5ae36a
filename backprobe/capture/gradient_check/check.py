"""The check of gradients in a run: when a step is checked, and what becomes of a ghost.

    step() of an optimizer ends            a segment may begin
    a module is called, a leaf is used     ghosts are sent; they and the parent go on from here
    backward()                             each keeps the value of its roots; the parent also what arrived
    step() of an optimizer begins          a ghost tells its roots and ends; the parent compares, and writes rows

1. Nothing here raises into the program, draws its random numbers, or changes a value of it.
2. A ghost never gets past the step, nor past the program's end.
"""

from __future__ import annotations

import builtins
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from backprobe.capture.gradient_check.closures import Closures
from backprobe.capture.gradient_check.confinement import why_not_checked
from backprobe.capture.gradient_check.directions import MOST_PROBES, move, probes_of
from backprobe.capture.gradient_check.functions import Applied, is_in_function
from backprobe.capture.gradient_check.ghosts import Answer, Ghost
from backprobe.capture.gradient_check.measuring import Budget, measure
from backprobe.capture.gradient_check.perturbed_step import Moved, PerturbedMode
from backprobe.capture.gradient_check.reporting import Reports, note_call
from backprobe.capture.gradient_check.segment import Segment, root_value
from backprobe.capture.gradient_check.uses import LeafUses
from backprobe.capture.torch_access.torch_internals import (
    current_pass,
    next_sequence_number,
    own_hook_numbers,
    without_torch_function,
)

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession
    from backprobe.capture.torch_access.code_patch import Swaps

_ROUNDS: Final = (0, 2)
"""Steps of each optimizer that are checked: at the first many things are still zero, the third has a history."""

_MOST_SEGMENTS: Final = 8


class GradientChecks:
    """The check of one run."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._optimizers: list[weakref.ref[Any]] = []
        self._reports = Reports(recorder)
        self._steps: dict[int, int] = {}
        self._segment: Segment | None = None
        self._ghost: Ghost | None = None
        self._mode: PerturbedMode | None = None
        self._ghost_roots: list[float] = []
        self._armed = self._compiled = self._busy = False
        self._segments = 0
        self._budget = Budget(recorder.writer.time_ns, is_brief=recorder.options.check == "brief")
        self._uses = LeafUses(self, recorder.sites.is_user_file, self._reports.unseen)
        self._closures = Closures(self)
        self._hooks: list[Any] = []
        self._plain: dict[str, Any] = {}
        self._pid = os.getpid()

    # ---- put in and taken out

    def put(self, swaps: Swaps) -> None:
        """Install, after all else."""
        taps = {"optimizer": self._note_optimizer, "compiles": self._compiles, "nothing": lambda: None}
        for name, tap in taps.items():
            setattr(builtins, f"__bp_check_{name}__", tap)
        swaps.put(Optimizer.__init__, "__bp_check_nothing__()", "__bp_check_optimizer__(self)")
        swaps.put(torch.compile, "__bp_check_compiles__()", "__bp_check_nothing__()")
        Applied.put()
        Applied.before = self._uses.note_application
        self._wrap("__bp_module__", self._module)
        self._wrap("__bp_engine__", self._engine)
        self._wrap("__bp_engine_left__", self._end_measurements)
        with own_hook_numbers():
            self._hooks.append(register_optimizer_step_pre_hook(self._step_begins))
            self._hooks.append(register_optimizer_step_post_hook(self._step_ended))

    def _wrap(self, name: str, ours: Any) -> None:
        plain = self._plain[name] = getattr(builtins, name)

        def both(*given: Any) -> None:
            plain(*given)
            ours(*given)

        setattr(builtins, name, both)

    def take_out(self) -> None:
        """Give back what was there."""
        for name, plain in self._plain.items():
            setattr(builtins, name, plain)
        Applied.take_out()
        for hook in self._hooks:
            hook.remove()
        self._uses.leave()
        self._segment = None

    @contextmanager
    def around(self) -> Iterator[None]:
        """Around the program: a ghost does not leave it."""
        try:
            yield
        except BaseException as error:
            self._end(f"{type(error).__name__}: {str(error)[:200]}")
            raise
        self._end("the program ended without a step")

    def _end(self, error: str) -> None:
        if self._ghost is not None:
            self._ghost.end(Answer(error=error))

    # ---- when

    def _note_optimizer(self, optimizer: Any) -> None:
        if self._ghost is None and all(ref() is not optimizer for ref in self._optimizers):
            self._optimizers.append(weakref.ref(optimizer))
            self._steps[id(optimizer)] = 0
            self.arm()

    def _compiles(self) -> None:
        self._compiled = True
        Applied.take_out()

    def _live(self) -> list[Any]:
        return [optimizer for ref in self._optimizers if (optimizer := ref()) is not None]

    def _is_due(self) -> bool:
        wanted = any(self._steps.get(id(optimizer), 0) in _ROUNDS for optimizer in self._live())
        return wanted and self._segments < _MOST_SEGMENTS and self._is_parent()

    def _is_parent(self) -> bool:
        return os.getpid() == self._pid

    def arm(self) -> None:
        """Let a segment begin with the next use of a leaf."""
        self._armed = self._is_due()
        if self._armed:
            self._uses.watch(self._live())

    @property
    def armed(self) -> bool:
        """The next use of a leaf begins a segment."""
        return self._armed and not self._busy

    def _module(self, module: Any) -> None:
        if not self._armed or self._busy or self._uses.is_other(module):
            return
        if torch.is_grad_enabled() or is_in_function(sys._getframe(1)) or self._uses.is_wanted(module.parameters()):
            self.begin()
        else:
            self._uses.note_unrecorded(module)

    def begin(self) -> None:
        """Send the ghosts before a leaf is used. In a ghost this returns as well."""
        self._armed, self._busy = False, True
        self._uses.look_away()
        try:
            self._begin()
        except Exception as error:
            self._recorder.guard.note(error)
        finally:
            self._busy = False

    def _begin(self) -> None:
        segment = self._segment = Segment(next_sequence_number(), self._recorder.optimizers.told)
        segment.earlier, segment.read = self._uses.earlier(), self._uses.read()
        self._segments += 1
        live = self._live()
        segment.why = why_not_checked(live, is_compiled=self._compiled) or self._budget.why_spent()
        if segment.why is not None:
            return
        generator = torch.Generator().manual_seed(self._segments)
        wanted = [optimizer for optimizer in live if self._steps.get(id(optimizer), 0) in _ROUNDS]
        with torch.no_grad(), without_torch_function():
            suspects = self._reports.suspects
            most = 1 if self._budget.is_brief and not suspects else max(1, MOST_PROBES // max(1, len(wanted)))
            probes = [probe for optimizer in wanted for probe in probes_of(optimizer, most, suspects, generator)]
            going_on = measure(segment, probes, self._become, self._budget)
        if not going_on and self._mode is not None:
            self._mode.__enter__()

    def _become(self, ghost: Ghost, moved: Moved) -> None:
        """Make this process a ghost."""
        self._ghost, self._segment = ghost, None
        if not moved.wide:
            move(self._live(), moved.leaves)
            moved.leaves, moved.themselves = {}, moved.leaves
        self._mode = PerturbedMode(moved, self._recorder.sites.is_user_file)
        self._mode.watch_functions()

    # ---- backward calls

    def _engine(self, outputs: Any, args: Any, options: Any) -> None:
        if not options.get("accumulate_grad", True):
            return
        if self._ghost is None:
            self._recorder.guard.run(self._reports.note_kept)
        if self._ghost is None and self._segment is None:
            return
        if current_pass() != -1:  # of a reentrant checkpoint, inside a backward call, whose root has it all
            return
        gradients = args[0] if args and args[0] is not None else ()
        try:
            if self._ghost is not None:
                hold = None if self._mode is None else self._mode.hold_gradient
                self._ghost_roots.append(root_value(outputs, gradients, hold))
                if self._mode is not None and len(self._ghost_roots) == self._mode.roots:
                    self._tell(self._ghost, self._mode)
            elif self._segment is not None:
                inputs = args[3] if len(args) > 3 else ()
                note_call(self._recorder, self._segment, outputs, gradients, inputs, sys._getframe(1))
        except Exception as error:
            self._end("the value of a root could not be taken")
            self._recorder.guard.note(error)

    def _end_measurements(self, _outputs: Any) -> None:
        segment = self._segment
        if segment is None or self._ghost is not None or not segment.roots:
            return
        with torch.no_grad(), without_torch_function():
            for measured in segment.measured:
                measured.leave()

    # ---- steps

    def _tell(self, ghost: Ghost, mode: PerturbedMode | None) -> None:
        roots = tuple(self._ghost_roots)
        if mode is None:
            ghost.end(Answer(roots))
            return
        seen = mode.seen
        cuts, changed, functions = tuple(seen.cuts), tuple(seen.changed), tuple(seen.functions)
        ghost.end(Answer(roots, cuts, changed, "", functions, unheld=seen.unheld, half=seen.half))

    def end_ghost(self) -> None:
        """Send this process's answer if it is a ghost: the answer is known now."""
        if self._ghost is not None:
            self._tell(self._ghost, self._mode)

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        self.end_ghost()
        if any(map(callable, (*args[1:], *kwargs.values()))):
            return self._closures.begin(optimizer, args, kwargs, self._steps.get(id(optimizer), 0))
        if self._steps.get(id(optimizer), 0) + 1 in _ROUNDS:
            self.note_use(optimizer)
        if self._segment is not None or (self.is_due(optimizer) and self._armed):
            self.compare(optimizer, "no use of its tensors was seen before the step")
        return None

    def note_use(self, optimizer: Any) -> None:
        """Note that what is in `.grad` is used."""
        if self._segments < _MOST_SEGMENTS and self._steps.get(id(optimizer), 0) <= _ROUNDS[-1] and self._is_parent():
            self._recorder.guard.run(self._reports.note_use, optimizer)

    def is_due(self, optimizer: Any) -> bool:
        """Return whether this step of the optimizer is checked."""
        return self._steps.get(id(optimizer), 0) in _ROUNDS and self._is_due()

    def compare(self, optimizer: Any, why: str) -> None:
        """Write the rows of an optimizer.

        Args:
            why: There is nothing to compare, where no segment began.
        """
        self._armed = self._armed and self._segment is not None
        self._segment = self._segment or Segment(0, 0, why=why)
        self._recorder.guard.run(self._write, self._segment, optimizer)

    def _write(self, segment: Segment, optimizer: Any) -> None:
        with torch.no_grad():
            self._reports.write(segment, optimizer, segment.why)

    def drop(self) -> None:
        """Drop the segment that was begun: it is no longer compared."""
        self._segment, self._armed = None, False
        self._uses.leave()

    def _step_ended(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if self._ghost is not None:
            return
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        self._uses.step_ended(optimizer)
        if self._segment is not None:
            self._segment.stepped = True
        self._uses.leave()
        self.arm()
        if not self._is_due():
            self._segment = None
