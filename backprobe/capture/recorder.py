"""The recorder of one run: what every tap does, from parts that each keep one kind of fact."""

from __future__ import annotations

import sys
from typing import Any

import torch

from backprobe import stack
from backprobe.capture.options import Options, is_kept
from backprobe.capture.output.writer import Sink, Writer
from backprobe.capture.rewriting.sites import SiteFacts, Sites
from backprobe.capture.torch_access import native
from backprobe.capture.torch_access.fence import Guard
from backprobe.capture.torch_access.torch_internals import is_compiled_region
from backprobe.capture.tracking.cause import Cause
from backprobe.capture.tracking.exceptions import Failures
from backprobe.capture.tracking.graph.backward_calls import Calls
from backprobe.capture.tracking.graph.nodes import Nodes
from backprobe.capture.tracking.graph.passes import Passes
from backprobe.capture.tracking.graph.retention import at_end
from backprobe.capture.tracking.graph.saved_tensors import SavedTensors
from backprobe.capture.tracking.moments import Moments
from backprobe.capture.tracking.sampler import Sampler
from backprobe.capture.tracking.shown_warnings import Warnings
from backprobe.capture.tracking.stacks import Stacks
from backprobe.capture.tracking.statements import Statements
from backprobe.capture.tracking.tensors.bindings import Names
from backprobe.capture.tracking.tensors.operations import Operations
from backprobe.capture.tracking.tensors.snapshots import States
from backprobe.capture.tracking.tensors.tensor_registry import Tensors, TrackedTensor
from backprobe.capture.tracking.timeline import Threads, Timeline
from backprobe.capture.tracking.training.modules import Modules
from backprobe.capture.tracking.training.optimizers import Optimizers
from backprobe.record import GradRead


class CaptureSession:
    """The capture of one run: everything that its taps share."""

    def __init__(self, options: Options, sink: Sink, sites: type[Sites] = Sites) -> None:
        self.options = options
        self.writer = Writer(options.caps, sink)
        self.sites = sites(self.writer)
        self.guard = Guard(self.sites.is_user_file)
        self.threads = native.choose_class(Threads)(self.writer)
        stacks = native.choose_class(Stacks)(self.writer, self.sites)
        self.moments = native.choose_class(Moments)(self.writer, self.threads, stacks)
        self.nodes = native.chosen_beside("States", Nodes)(self.writer, self.threads, self.moments, stack.own_budget())
        self.tensors = native.choose_class(Tensors)(self.writer, self.moments, options)
        self.states = native.choose_class(States)(self.writer, self.moments, self.tensors, self.nodes, options)
        self.names = native.choose_class(Names)(self.writer, self.moments, options)
        self.saved = native.chosen_beside("States", SavedTensors)(self.writer, self.tensors)
        self.nodes.saved, self.nodes.see = self.saved, self.see
        self.failures = Failures(self)
        self.modules = Modules(self)
        self.optimizers = Optimizers(self)
        self.passes = native.chosen_beside("States", Passes)(self.writer, self.nodes, self.states, options, self.guard)
        self.calls = Calls(self)
        self.warnings, self.sampler = Warnings(self), Sampler(self)
        self.main: Any = None
        self.was_left_to = False
        self._nones: dict[int, int] = {}
        self.operations = Operations(self)
        self.statements = native.choose_class(Statements)(self)

    # ---- what rare taps call

    def caught(self) -> None:
        """Note that an `except` block begins: which statement issued the last numbers is unknown."""
        if self.sampler.detail:
            self.threads.here().close(None)
            self.operations.given_up()
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
        if number is not None and self._is_kept_read(facts, was_none=given is None):
            self._write_read(facts, number, was_none=given is None)

    def none_read(self, site: int) -> None:
        """`.grad` was read in a step that is not taken in full, and was None."""
        base, facts = self.calls.light.take_base(site), self.sites.facts[site]
        if base is None or self.writer.is_closed:
            return
        facts.times += 1
        if not self._is_kept_read(facts, was_none=True):
            return
        tensor = base()  # None: what it was read of is gone already
        self.moments.statement(site)
        known = None if tensor is None else self.see(tensor)
        if known is not None and tensor is not None:
            self.look(known, tensor, Cause(unseen=True))
            self._write_read(facts, known.number, was_none=True)
        self.sampler.went_wrong("none-read", None if known is None else known.number)
        self.moments.close_statement()

    def _is_kept_read(self, facts: SiteFacts, *, was_none: bool) -> bool:
        """Thin out reads as a statement's are; those that use a None have a separate count."""
        most = self.options.caps.site_times
        if not was_none or facts.how == "tested":
            return is_kept(facts.times, most)
        self._nones[facts.site] = times = self._nones.get(facts.site, 0) + 1
        return is_kept(times, most)

    def _write_read(self, facts: SiteFacts, number: int, *, was_none: bool) -> None:
        moment = self.moments.now()
        use: Any = facts.how if facts.how in ("used", "tested") else "unknown"
        self.writer.add(
            "grad_reads", GradRead(tensor=number, site=facts.site, moment=moment, was_none=was_none, use=use)
        )

    def finish(self) -> None:
        """Record the last state of everything at the program's end, and what its graphs still hold."""
        site = None
        for _ in range(self.guard.without_room):
            self.writer.cut("statements near the recursion limit", "there were too few frames left for Backprobe")
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
        self.writer.values.settle()

    def close(self) -> None:
        """Let go of everything."""
        self.main = None
        for part in (self.nodes, self.tensors, self.modules, self.optimizers):
            self.guard.apart(part.close)

    # ---- what the parts share

    def see(self, tensor: torch.Tensor, site: int | None = None, how: str = "") -> TrackedTensor | None:
        """Meet a tensor and look at its state."""
        return self.statements.see(tensor, site, how)

    def look_at_all(self, cause: Cause, *, leaves_only: bool = False) -> None:
        """Compare every live tensor with its last state."""
        self.statements.look_at_all(cause, leaves_only=leaves_only)

    def look(self, known: TrackedTensor, tensor: torch.Tensor, cause: Cause) -> None:
        """Compare one tensor with its last state; an internal error costs this comparison, not the others."""
        self.statements.look(known, tensor, cause)

    @property
    def is_small(self) -> bool:
        """So few tensors live that all of them are compared after a statement."""
        return len(self.tensors.live) <= self.options.caps.exact_tensors

    def bury(self) -> None:
        """Write down what died."""
        self.statements.bury()

    def calling_site(self, depth: int = 1) -> int | None:
        """Return the statement of the user's innermost frame. Frames of Backprobe and of libraries are skipped.

        Args:
            depth: Frames to leave out first, where the innermost one of the user's is not meant.
        """
        frame = sys._getframe(depth)
        while frame is not None:
            filename = frame.f_code.co_filename
            if self.sites.is_user_file(filename) and not is_compiled_region(frame):
                return self.sites.of_frame(frame)
            frame = frame.f_back
        return None

    def is_users_frame(self, depth: int) -> bool:
        """Return whether the frame at this depth is the user's."""
        return self.sites.is_user_file(sys._getframe(depth).f_code.co_filename)

    def timeline(self) -> Timeline:
        """Return this thread's timeline."""
        return self.threads.here()
