"""What statement taps do: names get their tensors, state is compared. The Python twin of the core's `statements.c`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from backprobe.capture.options import is_kept
from backprobe.capture.rewriting.sites import SiteFacts
from backprobe.capture.torch_access.torch_internals import EXACT
from backprobe.capture.tracking.cause import LATE, Cause
from backprobe.capture.tracking.plain_types import PLAIN
from backprobe.capture.tracking.tensors.binder import Binder
from backprobe.capture.tracking.tensors.tensor_registry import TrackedTensor

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_CALLER = 5
"""Frames from `calling_site` to the caller of the function that contains an entry tap."""


class Statements:
    """Takes statements, one at a time."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._binder = Binder(recorder)
        self._tops = 0
        self._operation_times: list[int] = []

    # ---- what taps call

    def end_statement(self, site: int, values: Sequence[Any]) -> None:
        """End a statement; `values` are what its names hold."""
        recorder = self._recorder
        facts = recorder.sites.facts[site]
        facts.times += 1
        timeline = recorder.threads.here()
        timeline.close(site)
        timeline.grad_bases.clear()
        recorder.moments.statement(site)
        self.bury()
        if values:
            self._binder.take(facts, values)
        self._end_values(site)
        self._look_again(facts)
        if facts.top and is_kept(facts.times, recorder.options.caps.site_times):
            recorder.moments.now()
        recorder.moments.close_statement()
        recorder.failures.went_on()
        if facts.top:
            self._flush_top()
        else:
            recorder.writer.flush_if_due()

    def is_idle(self, site: int, values: Sequence[Any]) -> bool:
        """Return whether nothing that a record holds can have changed.

        A statement over numbers costs 0.3 us here and 6 us in `end_statement`. It must call nothing, store into no
        object, and have given numbers or text to names that held no tensor. It must also have run often enough to be
        thinned out; or, in a function, so often that not all tensors are compared, if it reads none and nothing waits.
        """
        recorder = self._recorder
        facts = recorder.sites.facts[site]
        if not facts.is_inert:
            return False
        for given in values:
            if type(given) not in PLAIN:
                return False
        for key in facts.keys:
            if key in recorder.names.held:
                return False
        if facts.times < recorder.options.caps.site_times and not self._is_idle_early(facts):
            return False
        facts.times += 1
        return True

    def _is_idle_early(self, facts: SiteFacts) -> bool:
        recorder, most = self._recorder, self._recorder.options.caps.function_times
        if facts.top or facts.times < most or is_kept(facts.times + 1, most) or recorder.names.read_by(facts):
            return False
        waiting = recorder.tensors.ids.dead or recorder.failures.open or recorder.operations.ended
        return not waiting and not recorder.nodes.dead

    def operation(self, number: int, given: Any) -> None:
        """Take the value of an operation inside a statement."""
        if self._is_followed(number):
            self._recorder.operations.took(number, given)

    def _is_followed(self, number: int) -> bool:
        """Return whether an operation is looked at this time."""
        times = self._operation_times
        if number >= len(times):
            times += [0] * (number + 1 - len(times))
        times[number] += 1
        return is_kept(times[number], self._recorder.options.caps.operation_times)

    def parents_in(self, facts: SiteFacts) -> tuple[int, ...]:
        """Return the tensors that went into the values of a statement that is about to end."""
        seen = self._recorder.operations.parents(facts.site) if self._recorder.operations.ended else None
        return self._recorder.names.held_by(facts.operands) if seen is None else seen

    def _end_values(self, site: int) -> None:
        """End the operations of a statement whose values have their names."""
        if self._recorder.operations.ended:
            self._recorder.operations.end_statement(site)

    def value(self, site: int, given: Any, containers: Sequence[Any]) -> None:
        """Take a value that is returned, or stored into an attribute or a subscript."""
        recorder = self._recorder
        facts = recorder.sites.facts[site]
        recorder.threads.here().close(site)
        if facts.kind == "return":
            self._record_return(facts, given)
            return
        for target in facts.targets:
            self._binder.unbind_other(facts, target, given)
        if type(given) in PLAIN:
            self._end_values(site)
            return
        recorder.moments.statement(site)
        if not any(issubclass(type(container), torch.Tensor) for container in containers):
            parents = self.parents_in(facts)
            for target in facts.targets or (None,):
                self._binder.bind(facts, target, given, parents)
        self._end_values(site)

    def _record_return(self, facts: SiteFacts, given: Any) -> None:
        """No tap follows a `return`: what its value changed in place is looked for here."""
        if facts.is_inert and type(given) in PLAIN:
            self._end_values(facts.site)
            return
        moments = self._recorder.moments
        facts.times += 1
        moments.statement(facts.site)
        self.bury()
        if type(given) not in PLAIN:
            self._binder.bind(facts, None, given, ())
        self._end_values(facts.site)
        if not facts.is_inert or is_kept(facts.times, self._recorder.options.caps.function_times):
            self._look_again(facts)  # a statement before it may have raised, past its own tap
        moments.close_statement()

    def passing(self, site: int) -> None:
        """Note that a test, iterable, context or yielded value was computed."""
        recorder = self._recorder
        facts = recorder.sites.facts[site]
        recorder.threads.here().close(site)
        self._end_values(site)
        if facts.is_inert:
            return
        facts.times += 1
        recorder.moments.statement(site)
        self._look_again(facts)
        recorder.moments.close_statement()

    def enter(self, site: int, arguments: Sequence[Any]) -> None:
        """Note that a function of the user begins."""
        recorder = self._recorder
        timeline, facts = recorder.threads.here(), recorder.sites.facts[site]
        timeline.close(caller := recorder.calling_site(_CALLER))
        recorder.optimizers.look_in_step()
        facts.times += 1
        recorder.moments.statement(site)
        if timeline.calls and not recorder.is_users_frame(_CALLER):
            recorder.calls.arrive()
        elif timeline.modules_ran and recorder.is_small:
            self._look_before(facts, LATE if caller is None else Cause(site=caller))
        timeline.note_comparison()
        self.bury()
        self._binder.take_arguments(facts, arguments)
        recorder.moments.close_statement()

    def take(self, site: int, values: Sequence[Any]) -> None:
        """Bind the targets of a site to the values that they hold now."""
        self._binder.take(self._recorder.sites.facts[site], values)

    def rest(self) -> None:
        """Stop following module calls: those that are open end here."""
        self._recorder.modules.rest()

    def resume(self, open_calls: int) -> None:
        """Follow module calls again, inside so many that were not seen to begin."""
        self._recorder.modules.resume(open_calls)

    # ---- meeting, looking, burying

    def passes_over(self, tensor: torch.Tensor, times: int) -> bool:
        """Return whether a new tensor is left out: its statement or call ran often, and no graph is made.

        Loops of thousands of steps without gradients (rollouts, evaluations) would fill a record with their values.
        """
        most = self._recorder.options.caps.operation_times
        if is_kept(times, most) or torch.is_grad_enabled() or type(tensor) not in EXACT:
            return False
        return not tensor.requires_grad and self._recorder.tensors.find(tensor) is None

    def see(self, tensor: torch.Tensor, site: int | None = None, how: str = "") -> TrackedTensor | None:
        """Meet a tensor and look at its state."""
        if type(tensor) not in EXACT:
            self._recorder.guard.shield()
        known = self._recorder.tensors.meet(tensor, site, how)
        if known is not None and known.is_new:
            self.look(known, tensor, Cause(site=site))
        return known

    def look_at_all(self, cause: Cause, *, leaves_only: bool = False) -> None:
        """Compare every live tensor with its last state."""
        for known in list(self._recorder.tensors.live.values()):
            tensor = known.ref()
            if tensor is not None and (not leaves_only or not known.state or known.state[0][0]):
                self.look(known, tensor, cause)
        if not leaves_only:
            self._recorder.states.full = self._recorder.states.turn

    def look(self, known: TrackedTensor, tensor: torch.Tensor, cause: Cause) -> None:
        """Compare one tensor with its last state; an internal error costs this comparison, not the others."""
        recorder = self._recorder
        try:
            recorder.states.look(known, tensor, cause)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            if recorder.guard.is_users(error):
                raise
            recorder.guard.note(error)
            if not known.failed:
                known.failed = True
                why = f"its state was not read everywhere: {type(error).__name__} in the recorder"
                recorder.tensors.note(known, why)

    def bury(self) -> None:
        """Write down what died."""
        if self._recorder.tensors.ids.dead:
            self._recorder.tensors.bury()
        if self._recorder.nodes.dead:
            self._recorder.nodes.bury()

    def _look_again(self, facts: SiteFacts) -> None:
        """Compare the tensors that a statement names with their last state; if few live, all.

        At a statement that ran often it is the versions of the others; none if it can change nothing but what it names.
        """
        recorder, states = self._recorder, self._recorder.states
        is_full = facts.once or is_kept(facts.times, recorder.options.caps.function_times)
        changes = is_full or not facts.is_inert
        if changes:
            states.turn, states.since = states.turn + 1, states.turn
        if recorder.is_small and is_full:
            self.look_at_all(Cause(site=facts.site))
        else:
            self._look_at_named(facts)
            if recorder.is_small and changes:
                self._look_quickly(Cause(site=facts.site))
        states.since = states.turn
        if changes:
            recorder.threads.here().note_comparison()

    def _look_before(self, facts: SiteFacts, cause: Cause) -> None:
        """Compare tensors where a function begins after calls of modules: the caller made what they changed."""
        states, is_full = self._recorder.states, is_kept(facts.times, self._recorder.options.caps.function_times)
        states.turn, states.since = states.turn + 1, states.turn
        (self.look_at_all if is_full else self._look_quickly)(cause)
        states.since = states.turn

    def _look_quickly(self, cause: Cause) -> None:
        """Compare with its last state every tensor that a quick look finds different."""
        states = self._recorder.states
        for known in list(self._recorder.tensors.live.values()):
            tensor = known.ref()
            if tensor is not None and states.differs(known, tensor):
                self.look(known, tensor, cause)
        states.quick = states.turn

    def _look_at_named(self, facts: SiteFacts) -> None:
        """Compare with their last state the tensors that a statement names."""
        recorder = self._recorder
        cause = Cause(site=facts.site, named=not facts.is_inert)
        numbers = dict.fromkeys(recorder.names.read_by(facts))
        for key in facts.keys:
            number = recorder.names.held.get(key)
            if number is not None:
                numbers[number] = None
        for number in numbers:
            known = recorder.tensors.live.get(number)
            tensor = None if known is None else known.ref()
            if known is not None and tensor is not None:
                self.look(known, tensor, cause)

    def _flush_top(self) -> None:
        writer = self._recorder.writer
        self._tops += 1
        if self._tops <= writer.caps.eager_statements:
            writer.flush()
        else:
            writer.flush_if_due()
