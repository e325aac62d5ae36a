"""The ledger of each leaf's `.grad`: what each backward call brought in, and which step, clear or write took it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from backprobe.rules.analysis.calls.call_stacks import is_called_by
from backprobe.rules.analysis.gradients.arrivals import is_zero
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at, step_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, OptimizerEvent, Record

EntryKind = Literal["step", "clear", "write", "end"]
_ARRIVES: Final = frozenset({"populate", "accumulate", "accumulate-new-tensor"})


class Source(NamedTuple):
    """Where contributions come from: the site of the backward call, and of the statement that made its root."""

    call_site: int | None
    root_site: int | None


@dataclass(slots=True, eq=False)
class Contribution:
    """What one backward call, or one assignment, brought into one leaf's `.grad`.

    Attributes:
        call: The backward call. None: the program assigned it.
        source: Where it comes from. None: the program assigned it.
        steps: The optimizer steps that used it.
        was_read: The program read `.grad` while it was in it.
    """

    call: int | None
    site: int | None
    moment: int
    source: Source | None
    steps: list[OptimizerEvent] = field(default_factory=list["OptimizerEvent"])
    was_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a ledger.

    Attributes:
        kind: step: an optimizer used the gradient; clear: it was emptied; write: the program changed it; end: the run
            ended.
        contributions: What was in the gradient.
        event: The step. None: another kind.
    """

    kind: EntryKind
    moment: int
    site: int | None
    contributions: tuple[Contribution, ...]
    event: OptimizerEvent | None = None


@table
def first_unseen_step(record: Record) -> int | None:
    """Return the first step that was not recorded in full; None if all were."""
    return min((row.step for row in record.steps if not row.sampled or row.why == "loop-left"), default=None)


@table
def sources_of_calls(record: Record) -> Mapping[int, Source]:
    """Return where each backward call's gradients come from, by call.

    The statement of a root is missing where values were thinned out; it is then that of the other calls of the site, if
    they have only one.
    """
    tensors = lookup(record).tensors
    made: dict[int, int | None] = {}
    known: defaultdict[int | None, set[int]] = defaultdict(set)
    for call in record.backward_calls:
        sites = [tensors[root.tensor].site for root in call.roots if root.tensor is not None and root.tensor in tensors]
        made[call.call] = sites[0] if sites else None
        if sites and sites[0] is not None:
            known[call.site].add(sites[0])
    found: dict[int, Source] = {}
    for call in record.backward_calls:
        root_site = made[call.call]
        if root_site is None and len(known[call.site]) == 1:
            (root_site,) = known[call.site]
        found[call.call] = Source(call.site, root_site)
    return found


@table
def grad_ledgers(record: Record) -> Mapping[int, tuple[Entry, ...]]:
    """Return the ledger of each leaf whose `.grad` ever changed, up to the first step that was not recorded in full."""
    rows: defaultdict[int, list[LeafGrad]] = defaultdict(list)
    for row in record.leaf_grads:
        if row.kind != "untouched":
            rows[row.tensor].append(row)
    return {tensor: tuple(_entries(record, tensor, changes)) for tensor, changes in rows.items()}


class _Ledger:
    """Writes the entries of one leaf."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.entries: list[Entry] = []
        self.contents: list[Contribution] = []

    def step(self, event: OptimizerEvent) -> None:
        self._write("step", event.moment, event.site, event)
        for contribution in self.contents:
            contribution.steps.append(event)

    def read(self) -> None:
        for contribution in self.contents:
            contribution.was_read = True

    def clear(self, moment: int, site: int | None) -> None:
        self._write("clear", moment, site)
        self.contents = []

    def change(self, row: LeafGrad) -> None:
        if row.kind in _ARRIVES:
            self._arrive(row)
        elif row.kind == "set-none" or self._is_zeroed(row):
            self.clear(row.moment, row.site)
        elif row.kind == "assigned":
            if self.contents and not any(contribution.was_read for contribution in self.contents):
                self.clear(row.moment, row.site)
            self.contents = [Contribution(None, row.site, row.moment, None)]
        else:
            self._write("write", row.moment, row.site)

    def end(self) -> None:
        self._write("end", -1, None)

    def _arrive(self, row: LeafGrad) -> None:
        if row.kind == "populate":
            self.contents = []
        if not self.contents or self.contents[-1].call != row.call:
            source = None if row.call is None else sources_of_calls(self._record).get(row.call)
            self.contents = [*self.contents, Contribution(row.call, row.site, row.moment, source)]

    def _is_zeroed(self, row: LeafGrad) -> bool:
        if row.kind != "modified-in-place":
            return False
        state = state_at(self._record, row.tensor, row.moment)
        measured = state.grad_stats if state is not None and state.moment == row.moment else None
        if measured is not None:
            return is_zero(measured)
        return row.moment in _moments_of_clears(self._record)

    def _write(self, kind: EntryKind, moment: int, site: int | None, event: OptimizerEvent | None = None) -> None:
        contents = tuple(self.contents)
        if contents or kind != "clear":
            self.entries.append(Entry(kind=kind, moment=moment, site=site, contributions=contents, event=event))


def _entries(record: Record, tensor: int, changes: list[LeafGrad]) -> list[Entry]:
    ledger, unseen = _Ledger(record), first_unseen_step(record)
    for moment, _order, _number, apply in sorted(_events(record, ledger, tensor, changes), key=lambda event: event[:3]):
        if unseen is not None and step_of(record, moment) >= unseen:
            return ledger.entries
        apply()
    ledger.end()
    return ledger.entries


def _events(
    record: Record, ledger: _Ledger, tensor: int, changes: list[LeafGrad]
) -> Iterator[tuple[int, int, int, Callable[[], None]]]:
    """Yield what concerns one `.grad`; at one moment it arrives, is stepped on, read, and emptied, in this order."""
    for row in changes:
        yield row.moment, 3 if row.kind == "set-none" else 0, row.n, partial(ledger.change, row)
    optimizers = set(in_optimizers(record).get(tensor, ()))
    for event in record.optimizer_events:
        if event.optimizer in optimizers and event.kind == "step" and event.n not in _inner_steps(record):
            yield event.moment, 1, event.n, partial(ledger.step, event)
        elif event.optimizer in optimizers and event.kind == "zero_grad" and event.set_to_none:
            yield event.moment, 4, event.n, partial(ledger.clear, event.moment, event.site)
    for moment in _reads(record).get(tensor, ()):
        yield moment, 2, 0, ledger.read


@table
def _inner_steps(record: Record) -> frozenset[int]:
    """Return the steps that another step of the same optimizer made: a class of the program calls `super().step()`."""
    steps = [event for event in record.optimizer_events if event.kind == "step"]
    found: set[int] = set()
    outer: dict[int | None, OptimizerEvent] = {}
    for event in reversed(steps):
        later = outer.get(event.optimizer)
        if later is not None and is_called_by(record, event.moment, later.site):
            found.add(event.n)
        else:
            outer[event.optimizer] = event
    return frozenset(found)


@table
def _reads(record: Record) -> Mapping[int, list[int]]:
    """Return the moments at which the program read the content of a leaf's `.grad`, by leaf."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for read in record.grad_reads:
        if not read.was_none and read.use != "tested":
            found[read.tensor].append(read.moment)
    return found


@table
def _moments_of_clears(record: Record) -> frozenset[int]:
    return frozenset(event.moment for event in record.optimizer_events if event.kind == "zero_grad")
