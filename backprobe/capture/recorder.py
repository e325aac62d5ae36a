"""The recorder of one run: what every tap does, from parts that each keep one kind of fact."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from backprobe import stack
from backprobe.capture import core
from backprobe.capture.binder import Binder
from backprobe.capture.calls import Calls
from backprobe.capture.failures import Failures
from backprobe.capture.guard import Guard
from backprobe.capture.modules import Modules
from backprobe.capture.moments import Moments
from backprobe.capture.names import Names
from backprobe.capture.nodes import Nodes
from backprobe.capture.optimizers import Optimizers
from backprobe.capture.options import Options, is_kept
from backprobe.capture.passes import Passes
from backprobe.capture.private import EXACT
from backprobe.capture.retention import at_end
from backprobe.capture.sampler import Sampler
from backprobe.capture.saved import SavedTensors
from backprobe.capture.sequence import Threads, Timeline
from backprobe.capture.sites import SiteFacts, Sites
from backprobe.capture.states import Cause, States
from backprobe.capture.taps import PLAIN
from backprobe.capture.tensors import Known, Tensors
from backprobe.capture.warned import Warnings
from backprobe.capture.writer import Sink, Writer
from backprobe.record import GradRead

_CALLER = 5
"""Frames from `calling_site` to the caller of the function that an entry tap stands in."""


class Recorder:
    """What the taps of one run feed."""

    def __init__(self, options: Options, sink: Sink, sites: type[Sites] = Sites) -> None:
        self.options = options
        self.writer = Writer(options.caps, sink)
        self.sites = sites(self.writer)
        self.guard = Guard(self.sites.is_user_file)
        self.threads = Threads(self.writer)
        self.moments = Moments(self.writer, self.threads)
        self.nodes = core.chosen_beside("States", Nodes)(self.writer, self.threads, self.moments, stack.own_budget())
        self.tensors = Tensors(self.writer, self.moments, options)
        self.states = States(self.writer, self.moments, self.tensors, self.nodes, options)
        self.names = Names(self.writer, self.moments, options)
        self.saved = core.chosen_beside("States", SavedTensors)(self.writer, self.tensors)
        self.nodes.saved, self.nodes.see = self.saved, self.see
        self.failures = Failures(self)
        self.modules = Modules(self)
        self.optimizers = Optimizers(self)
        self.passes = core.chosen_beside("States", Passes)(self.writer, self.nodes, self.states, options, self.guard)
        self.calls = Calls(self)
        self.warnings, self.sampler = Warnings(self), Sampler(self)
        self.main: Any = None
        self.binder = Binder(self)
        self._tops = 0

    # ---- what taps call

    def after(self, site: int, values: Sequence[Any]) -> None:
        """A statement ended; `values` are what its names hold."""
        facts = self.sites.facts[site]
        facts.times += 1
        timeline = self.threads.here()
        timeline.close(site)
        timeline.grad_bases.clear()
        self.moments.statement(site)
        self.bury()
        if values:
            self.binder.take(facts, values)
        self._look_again(facts)
        if facts.top and is_kept(facts.times, self.options.caps.site_times):
            self.moments.now()
        self.moments.close_statement()
        self.failures.went_on()
        if facts.top:
            self._flush_top()
        else:
            self.writer.flush_if_due()

    def is_idle(self, site: int, values: Sequence[Any]) -> bool:
        """Nothing a record holds can have changed: a number loop costs 0.3 us a statement here, 6 us in `after`.

        So it is for a statement that calls nothing and stores into no object, ran often enough to be thinned out, and
        gave numbers or text to names that held no tensor.
        """
        facts = self.sites.facts[site]
        if not facts.is_inert or facts.times < self.options.caps.site_times:
            return False
        for given in values:
            if type(given) not in PLAIN:
                return False
        for key in facts.keys:
            if key in self.names.held:
                return False
        facts.times += 1
        return True

    def value(self, site: int, given: Any, containers: Sequence[Any]) -> None:
        """A value is returned, or stored into an attribute or a subscript."""
        facts = self.sites.facts[site]
        self.threads.here().close(site)
        if facts.kind == "return":
            self._returned(facts, given)
            return
        if type(given) in PLAIN:
            return
        self.moments.statement(site)
        if any(issubclass(type(container), torch.Tensor) for container in containers):
            return
        parents = self.names.parents_in(facts)
        for target in facts.targets or (None,):
            self.binder.bind(facts, target, given, parents)

    def _returned(self, facts: SiteFacts, given: Any) -> None:
        """No tap follows a `return`: what its value changed in place is looked for here."""
        if facts.is_inert and type(given) in PLAIN:
            return
        facts.times += 1
        self.moments.statement(facts.site)
        self.bury()
        if type(given) not in PLAIN:
            self.binder.bind(facts, None, given, ())
        if not facts.is_inert:
            self._look_again(facts)
        self.moments.close_statement()

    def passing(self, site: int) -> None:
        """A test, iterable, context or yielded value was computed."""
        facts = self.sites.facts[site]
        self.threads.here().close(site)
        if facts.is_inert:
            return
        facts.times += 1
        self.moments.statement(site)
        self._look_again(facts)
        self.moments.close_statement()

    def enter(self, site: int, arguments: Sequence[Any]) -> None:
        """A function of the user begins."""
        timeline, facts = self.threads.here(), self.sites.facts[site]
        timeline.close(self.calling_site(_CALLER))
        self.optimizers.look_in_step()
        facts.times += 1
        self.moments.statement(site)
        self.bury()
        for name, argument in zip(facts.targets, arguments, strict=True):
            kind = type(argument)
            if issubclass(kind, torch.Tensor) or kind in (tuple, list, dict):
                self.binder.bind(facts, name, argument, ())
        self.moments.close_statement()

    def caught(self) -> None:
        """An `except` block begins: which statement issued the last numbers is not known."""
        self.threads.here().close(None)
        self.failures.caught(sys.exc_info()[1])

    def grad_base(self, site: int, given: Any) -> None:
        """`.grad` is about to be read of something."""
        number = None
        if issubclass(type(given), torch.Tensor):
            known = self.see(given, site)
            number = None if known is None else known.number
        self.threads.here().grad_bases.append((site, number))

    def grad_read(self, site: int, given: Any) -> None:
        """`.grad` was read."""
        bases = self.threads.here().grad_bases
        while bases:
            base_site, number = bases.pop()
            if base_site == site:
                break
        else:
            return
        facts = self.sites.facts[site]
        facts.times += 1
        if number is None or not is_kept(facts.times, self.options.caps.site_times):
            return
        moment = self.moments.now()
        use: Any = facts.how if facts.how in ("used", "tested") else "unknown"
        self.writer.add(
            "grad_reads", GradRead(tensor=number, site=site, moment=moment, was_none=given is None, use=use)
        )

    def finish(self) -> None:
        """The program ended: the last state of everything, and what its graphs still hold."""
        site = None
        for _ in range(self.guard.without_room):
            self.writer.cut("statements near the recursion limit", "there were too few frames left for a body of ours")
        self.sampler.finish()
        self.threads.here().close(site)
        self.moments.close_statement()
        self.calls.unseen.settle()
        moment = self.moments.new("end", site)
        self.bury()
        self.look_at_all(Cause(site=site))
        self.modules.refresh_all()
        self.optimizers.refresh_all()
        if self.options.walks:
            at_end(self, moment)

    def close(self) -> None:
        """Let go of everything."""
        self.main = None
        self.nodes.close()
        self.tensors.close()
        self.modules.close()
        self.optimizers.close()

    # ---- what the parts share

    def see(self, tensor: torch.Tensor, site: int | None = None, how: str = "") -> Known | None:
        """Meet a tensor and look at its state."""
        if type(tensor) not in EXACT:
            self.guard.shield()
        known = self.tensors.meet(tensor, site, how)
        if known is not None and known.is_new:
            self.look(known, tensor, Cause(site=site))
        return known

    def look_at_all(self, cause: Cause, *, leaves_only: bool = False) -> None:
        """Compare every live tensor with its last state."""
        for known in list(self.tensors.live.values()):
            tensor = known.ref()
            if tensor is not None and (not leaves_only or not known.state or known.state[0]):
                self.look(known, tensor, cause)

    def look(self, known: Known, tensor: torch.Tensor, cause: Cause) -> None:
        """Compare one tensor with its last state; an error of ours costs what it would have told, not the others."""
        try:
            self.states.look(known, tensor, cause)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            if self.guard.is_users(error):
                raise
            self.guard.note(error)
            if not known.failed:
                known.failed = True
                self.tensors.note(known, f"its state was not read everywhere: {type(error).__name__} in the recorder")

    @property
    def is_small(self) -> bool:
        """So few tensors live that all of them are compared after a statement."""
        return len(self.tensors.live) <= self.options.caps.exact_tensors

    def bury(self) -> None:
        """Write down what died."""
        if self.tensors.ids.dead:
            self.tensors.bury()
        if self.nodes.dead:
            self.nodes.bury()

    def calling_site(self, depth: int) -> int | None:
        """The statement of the user's innermost frame, `depth` frames up or further."""
        frame = sys._getframe(depth)
        while frame is not None:
            filename = frame.f_code.co_filename
            if self.sites.is_user_file(filename):
                return self.sites.at_line(filename, frame.f_lineno)
            frame = frame.f_back
        return None

    def timeline(self) -> Timeline:
        """This thread's timeline."""
        return self.threads.here()

    def _look_again(self, facts: SiteFacts) -> None:
        """Compare with their last state all tensors if they are few, else those that the statement names."""
        times = self.options.caps.site_times if facts.top else self.options.caps.function_times
        cause = Cause(site=facts.site)
        if self.is_small and is_kept(facts.times, times):
            self.look_at_all(cause)
            return
        numbers = dict.fromkeys(self.names.read_by(facts))
        for key in facts.keys:
            number = self.names.held.get(key)
            if number is not None:
                numbers[number] = None
        for number in numbers:
            known = self.tensors.live.get(number)
            tensor = None if known is None else known.ref()
            if known is not None and tensor is not None:
                self.look(known, tensor, cause)

    def _flush_top(self) -> None:
        self._tops += 1
        if self._tops <= self.options.caps.eager_statements:
            self.writer.flush()
        else:
            self.writer.flush_if_due()
