"""Where a leaf's ledger does not add up: gradients used twice, never, or together with those of another loss."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from backprobe.rules.analysis.invariants.grad_ledger import Contribution, Entry, Source, grad_ledgers, sources_of_calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record

Kind = Literal[
    "used-again", "only-old", "other-loss", "other-loss-before-step", "added-after-clip", "clipped-in-vain",
    "walked-twice", "lost", "left-over",
]  # fmt: skip

_REPEATED: Final = 2
"""Steps in which a breach must be seen: a single one can be the last step, or a warm-up."""

_NEAR: Final = 400
"""Statements after a clear among which its caller is looked for."""

_SHORT_RUN: Final = 3
"""A run of at most so many steps may show a breach in one of them."""


class Breach(NamedTuple):
    """One kind of breach in the ledgers of one optimizer's leaves.

    Attributes:
        moments: In order, one for each step or clear concerned. site: the place to show. tensors: the leaves concerned.
    """

    kind: Kind
    optimizer: int
    site: int
    moments: tuple[int, ...]
    tensors: tuple[int, ...]


class _Row(NamedTuple):
    tensor: int
    site: int | None
    moment: int
    event: int
    """The moment of the step, or of the clear, that shows it."""


_Rows = defaultdict[tuple[Kind, int], list[_Row]]


@table
def ledger_breaches(record: Record) -> tuple[Breach, ...]:
    """Return the breaches that show in enough steps, in order of the optimizers."""
    rows: _Rows = defaultdict(list)
    held = in_optimizers(record)
    closures = {row.optimizer for row in record.optimizers if row.cls == "LBFGS"}
    for tensor, entries in grad_ledgers(record).items():
        optimizers = set(held.get(tensor, ()))
        if optimizers and not optimizers & closures:
            _check_steps(record, tensor, entries, rows)
            _check_clears(record, tensor, entries, min(optimizers), rows)
            _check_counts(record, tensor, entries, rows)
    return tuple(breach for key in sorted(rows) if (breach := _breach(record, *key, rows[key])) is not None)


def _check_steps(record: Record, tensor: int, entries: Sequence[Entry], rows: _Rows) -> None:
    is_written, clip = False, None
    for entry in entries:
        if entry.kind == "write":
            if entry.moment in _moments_of_scaling(record):
                clip = entry
            else:
                is_written = True
        elif entry.kind == "clear":
            is_written, clip = False, None
        elif entry.event is not None and entry.event.optimizer is not None:
            for kind, contribution in _faults(record, tensor, entry, entry.event, clip, is_written=is_written):
                rows[kind, entry.event.optimizer].append(_Row(tensor, *contribution, entry.moment))
            is_written, clip = False, None


def _faults(
    record: Record, tensor: int, entry: Entry, step: OptimizerEvent, clip: Entry | None, *, is_written: bool
) -> Iterator[tuple[Kind, tuple[int | None, int]]]:
    """Yield what is wrong with the gradient that a step used, each with the site and moment to show."""
    old = [part for part in entry.contributions if _was_used(part, step)]
    fresh = [part for part in entry.contributions if not _was_used(part, step)]
    state = state_at(record, tensor, step.moment - 1)
    is_there = state is None or state.grad == "present"
    if old and is_there and not is_written:
        if fresh:
            yield "used-again", (fresh[0].site, fresh[0].moment)
        elif old[0].call is not None:
            yield "only-old", (step.site, step.moment)
    for part in fresh:
        others = [] if part.call is None else _steps_of_calls(record)[part.call]
        earlier = [other for other in others if other.optimizer != step.optimizer and other.moment < step.moment]
        own = [other for other in fresh if other.source != part.source]
        if earlier and any(other.moment > earlier[0].moment for other in own):
            yield "other-loss", (part.site, part.moment)
        elif any(other.optimizer in _unused_by(record)[contribution.call] for other in others for contribution in own):
            yield "other-loss-before-step", (part.site, part.moment)
    if clip is not None and not old and 0 < len(clip.contributions) < len(entry.contributions):
        yield "added-after-clip", (clip.site, clip.moment)
    for first in fresh:
        for second in fresh:
            if first.moment < second.moment and _walks_again(record, first, second):
                yield "walked-twice", (second.site, second.moment)
                return


def _was_used(part: Contribution, step: OptimizerEvent) -> bool:
    return any(used.optimizer == step.optimizer and used.moment < step.moment for used in part.steps)


def _walks_again(record: Record, first: Contribution, second: Contribution) -> bool:
    """The second call walked through the roots of the first one, and so brought its gradients once more."""
    if first.call is None or second.call is None:
        return False
    index = lookup(record)
    named = (root.tensor for root in index.calls[first.call].roots if root.tensor is not None)
    roots = {index.node_of[tensor].node for tensor in named if tensor in index.node_of}
    return bool(roots) and roots <= {row.node for row in index.passes_of_call[second.call]}


def _check_clears(record: Record, tensor: int, entries: Sequence[Entry], optimizer: int, rows: _Rows) -> None:
    clip: Entry | None = None
    lost: defaultdict[tuple[Source | None, int | None], list[int]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "write" and entry.moment in _moments_of_scaling(record):
            clip = entry
        elif entry.kind == "step":
            clip = None
        elif entry.kind == "clear":
            if clip is not None and entry.contributions and _is_clipped_after_use(entry, clip):
                rows["clipped-in-vain", optimizer].append(_Row(tensor, clip.site, clip.moment, entry.moment))
            for part in entry.contributions if clip is None else ():  # a clip reads the norm, which may decide to skip
                if part.call is not None and not part.steps and part.source not in _read_sources(record):
                    lost[part.source, entry.site].append(entry.moment)
            clip = None
    for (source, site), moments in lost.items():
        used = any(part.source == source and part.steps for entry in entries for part in entry.contributions)
        if used and len(moments) >= _REPEATED:
            rows["lost", optimizer] += [_Row(tensor, site, moments[-1], moment) for moment in moments]


def _is_clipped_after_use(clear: Entry, clip: Entry) -> bool:
    steps = [step.moment for part in clear.contributions for step in part.steps]
    return all(part.steps for part in clear.contributions) and any(moment < clip.moment for moment in steps)


def _check_counts(record: Record, tensor: int, entries: Sequence[Entry], rows: _Rows) -> None:
    """A step that uses more backward calls than usual, from one statement: something was left over."""
    used: defaultdict[int, list[tuple[Entry, list[Contribution]]]] = defaultdict(list)
    for entry in entries:
        if entry.event is not None and entry.event.optimizer is not None:
            fresh = [part for part in entry.contributions if not _was_used(part, entry.event)]
            if fresh and fresh[0].call is not None:
                used[entry.event.optimizer].append((entry, fresh))
    last = entries[-1] if entries and entries[-1].kind == "end" else None
    pending = [] if last is None or any(part.steps for part in last.contributions) else list(last.contributions)
    clear = next(
        (row for row in entries if row.kind == "clear" and any(part.steps for part in row.contributions)), None
    )
    for optimizer, steps in used.items():
        counts = [len(fresh) for _entry, fresh in steps]
        usual, times = Counter(counts).most_common(1)[0]
        if times <= len(counts) / 2:
            continue
        if len(pending) > usual and {part.source for part in pending} == {steps[-1][1][0].source}:
            rows["left-over", optimizer].append(
                _Row(tensor, _place_of_clear(record, clear, pending[0].site), pending[0].moment, steps[-1][0].moment)
            )
        for at, (entry, fresh) in enumerate(steps):
            is_between = usual in counts[:at] and usual in counts[at + 1 :]
            is_same = len({part.source for part in fresh}) == 1
            if counts[at] > usual and is_between and is_same and not _has_own_loop(record, fresh[0].site, entry.site):
                rows["left-over", optimizer].append(
                    _Row(tensor, _place_of_clear(record, clear, fresh[0].site), fresh[0].moment, entry.moment)
                )


def _has_own_loop(record: Record, call: int | None, step: int | None) -> bool:
    """A loop before the step makes the calls, as many as it likes in each turn of the step's loop."""
    if call is None or step is None:
        return False
    first, second = lookup(record).sites[call], lookup(record).sites[step]
    return first.function == second.function and first.loop_line != second.loop_line


def _place_of_clear(record: Record, clear: Entry | None, call: int | None) -> int | None:
    """Return the statement that clears after other steps, or in the backward call's function the one that led to it."""
    sites = lookup(record).sites
    if clear is None or clear.site is None or call is None:
        return call
    if sites[clear.site].function == sites[call].function:
        return clear.site
    after = (row.site for row in record.moments if row.moment > clear.moment and row.site is not None)
    return next((site for site in islice(after, _NEAR) if sites[site].function == sites[call].function), call)


def _breach(record: Record, kind: Kind, optimizer: int, rows: Sequence[_Row]) -> Breach | None:
    events = sorted({row.event for row in rows})
    steps = sum(event.kind == "step" for event in record.optimizer_events)
    is_rare = len(events) < _REPEATED and steps > _SHORT_RUN and kind not in ("left-over", "lost")
    site = rows[0].site
    if site is None or is_rare:
        return None
    tensors = tuple(sorted({row.tensor for row in rows}))
    if kind == "lost" and len(tensors) * 2 < _leaves_with_steps(record).get(optimizer, 0):
        return None
    return Breach(kind, optimizer, site, tuple(events), tensors)


@table
def _steps_of_calls(record: Record) -> Mapping[int | None, list[OptimizerEvent]]:
    """Return the steps that used a gradient of a backward call, of any leaf, by call."""
    found: defaultdict[int | None, list[OptimizerEvent]] = defaultdict(list)
    for entries in grad_ledgers(record).values():
        for entry in entries:
            if entry.event is not None:
                for part in entry.contributions:
                    found[part.call].append(entry.event)
    return found


@table
def _unused_by(record: Record) -> Mapping[int | None, set[int]]:
    """Return, by backward call, the optimizers that cleared all it had brought their leaves before they stepped.

    Such a call is meant for another optimizer alone: it reached these leaves on its way.
    """
    unused: defaultdict[int | None, set[int]] = defaultdict(set)
    used: defaultdict[int | None, set[int]] = defaultdict(set)
    for tensor, entries in grad_ledgers(record).items():
        for entry in entries:
            for part in entry.contributions if entry.kind == "clear" else ():
                (used if part.steps else unused)[part.call].update(in_optimizers(record).get(tensor, ()))
    for call in unused:
        unused[call] -= used[call]
    return unused


@table
def _leaves_with_steps(record: Record) -> Mapping[int, int]:
    """Return how many leaves of each optimizer it ever stepped on with a gradient."""
    counts: Counter[int] = Counter()
    for tensor, entries in grad_ledgers(record).items():
        if any(entry.kind == "step" and entry.contributions for entry in entries):
            counts.update(set(in_optimizers(record).get(tensor, ())))
    return counts


@table
def _read_sources(record: Record) -> frozenset[Source | None]:
    """Return the sources whose gradients the program ever read: reads are thinned out, so one stands for all."""
    ledgers = grad_ledgers(record)
    parts = (part for rows in ledgers.values() for entry in rows for part in entry.contributions)
    found = {part.source for part in parts if part.was_read}
    for read in record.grad_reads:
        if not read.was_none and read.tensor not in ledgers:  # of a result that retains its gradient
            before = [call for call in record.backward_calls if call.moment_before <= read.moment]
            if before:
                found.add(sources_of_calls(record)[before[-1].call])
    return frozenset(found)


@table
def _moments_of_scaling(record: Record) -> frozenset[int]:
    """Return the moments at which gradients were clipped or a scaler divided them."""
    kinds = ("clip", "scaler")
    return frozenset(event.moment for event in record.optimizer_events if event.kind.startswith(kinds))
