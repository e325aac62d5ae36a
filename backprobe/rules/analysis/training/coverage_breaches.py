"""Which leaves training passes over: held without a gradient, not held, or stepped without effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.equal_rows import equal_rows
from backprobe.rules.analysis.training.steps import state_at, step_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers, parameters
from backprobe.rules.analysis.training.unreached_leaves import calls_of_modules, owners, site_of_cut, site_of_zero
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Module, Optimizer, OptimizerEvent, Record, Statistics

Kind = Literal[
    "frozen",
    "never-called",
    "no-gradient",
    "not-held",
    "not-changed",
    "zero-gradient",
    "never-stepped",
    "idle-optimizer",
]

_REPEATED: Final = 2
"""Steps in which a breach must be seen."""

_SMALLEST_CHANGE: Final = 1e-4
"""Share of a parameter's norm that learning rate times gradient must exceed before an equal value is a breach.
Statistics are float32, whose relative precision is 6e-8; the rest is a margin for many elements."""

_MANY: Final = 5
"""Steps with a zero gradient from which on it is a breach and no note: a start at a stationary point is left sooner."""


class Breach(NamedTuple):
    """What training passes over.

    Attributes:
        site: The statement to show. tensors: the leaves concerned. optimizer: the one concerned. None: none.
        may_be_meant: A correct program can look like this: the finding is a note.
    """

    kind: Kind
    site: int
    tensors: tuple[int, ...]
    optimizer: int | None
    may_be_meant: bool = False


@table
def coverage_breaches(record: Record) -> tuple[Breach, ...]:
    """Return the breaches of a run with optimizer steps, one at most for each kind."""
    if not steps(record):
        return ()
    found = (*_held_without_gradient(record), _not_held(record), _not_changed(record))
    more = (
        _zero_gradient(record),
        _never_stepped(record),
        _idle_optimizer(record),
        _rows_equal(record),
        _wrapper(record),
    )
    return tuple(breach for breach in (*found, *more) if breach is not None)


@table
def steps(record: Record) -> tuple[OptimizerEvent, ...]:
    """Return the optimizer steps in order."""
    return tuple(event for event in record.optimizer_events if event.kind == "step")


@table
def arrivals(record: Record) -> Mapping[int, list[LeafGrad]]:
    """Return the gradients that backward calls brought, by leaf."""
    found: defaultdict[int, list[LeafGrad]] = defaultdict(list)
    for row in record.leaf_grads:
        if row.call is not None and row.kind != "untouched":
            found[row.tensor].append(row)
    return found


def _held_without_gradient(record: Record) -> Iterator[Breach | None]:
    """Leaves of optimizers that step, which never get a gradient."""
    assigned = {row.tensor for row in record.leaf_grads if row.kind == "assigned"}
    frozen: list[int] = []
    others: defaultdict[Kind, list[int]] = defaultdict(list)
    holder: Optimizer | None = None
    for optimizer in record.optimizers:
        events = [event for event in steps(record) if event.optimizer == optimizer.optimizer]
        if len(events) < _REPEATED or not any(event.with_grad for event in events):
            continue
        for group in _groups(optimizer):
            without = [tensor for tensor in group if not arrivals(record).get(tensor) and tensor not in assigned]
            if without:
                holder = holder or optimizer
            still = [tensor for tensor in without if _is_frozen(record, tensor, events[0].moment)]
            if still and len(still) == len(group):
                frozen += still
            for tensor in without:
                if tensor not in still:
                    module = owners(record).get(tensor)
                    is_called = module is None or calls_of_modules(record).get(module.module)
                    others["no-gradient" if is_called else "never-called"].append(tensor)
    if holder is not None:
        yield _frozen(record, holder, frozen)
        for kind, tensors in others.items():
            yield _without_gradient(record, holder, kind, tensors)


def _groups(optimizer: Optimizer) -> list[list[int]]:
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for row in optimizer.tensors:
        groups[row.group].append(row.tensor)
    return list(groups.values())


def _is_frozen(record: Record, tensor: int, since: int) -> bool:
    """The leaf did not require grad at the first step, nor later while the program trained."""
    first, last = state_at(record, tensor, since), steps(record)[-1].moment
    later = (row for row in lookup(record).snapshots_of[tensor] if since <= row.moment <= last)
    return first is not None and not first.requires_grad and not any(row.requires_grad for row in later)


def _frozen(record: Record, optimizer: Optimizer, tensors: Sequence[int]) -> Breach | None:
    if not tensors:
        return None
    index = lookup(record)
    first = next((row for row in index.snapshots_of[tensors[0]] if not row.requires_grad), None)
    moment = None if first is None else index.moments.get(first.moment)
    site = optimizer.site if moment is None or moment.site is None else moment.site
    return None if site is None else Breach("frozen", site, tuple(tensors), optimizer.optimizer, may_be_meant=True)


def _without_gradient(record: Record, optimizer: Optimizer, kind: Kind, tensors: Sequence[int]) -> Breach | None:
    module = owners(record).get(tensors[0])
    calls = [] if module is None else calls_of_modules(record).get(module.module, [])
    cut = site_of_cut(record, calls[0], tensors[0]) if calls else None
    called = calls[0].site if calls else None if module is None else module.site
    site = next((known for known in (cut, called, optimizer.site) if known is not None), None)
    return None if site is None else Breach(kind, site, tuple(tensors), optimizer.optimizer, may_be_meant=cut is None)


def _not_held(record: Record) -> Breach | None:
    """Leaves that get gradients in several steps, though no optimizer that steps holds them and nothing writes them."""
    written = {event.tensor for event in record.inplace_events if event.done_by == "statement"}
    asked = {root.tensor for call in record.backward_calls for root in call.inputs or ()}
    stepping = {event.optimizer for event in steps(record)}
    first, last = steps(record)[0].moment, steps(record)[-1].moment
    found: list[int] = []
    for tensor, rows in arrivals(record).items():
        history = lookup(record).snapshots_of[tensor]
        times = {step_of(record, row.moment) for row in rows if row.moment <= first or row.moment < last}
        is_held = not stepping.isdisjoint(in_optimizers(record).get(tensor, ()))
        if (
            len(times) >= _REPEATED
            and not is_held
            and tensor not in written | asked
            and history
            and history[-1].is_leaf
        ):
            found.append(tensor)
    site = record.optimizers[-1].site if record.optimizers else None
    if not found or site is None:
        return None
    return Breach("not-held", site, tuple(found), None, may_be_meant=not _is_part_of_trained_model(record, found))


def _is_part_of_trained_model(record: Record, tensors: Sequence[int]) -> bool:
    """An optimizer that steps holds other parameters of the same root module."""
    roots = _roots_of_parameters(record)
    stepping = {event.optimizer for event in steps(record)}
    held = in_optimizers(record)
    trained = {root for tensor, root in roots.items() if not stepping.isdisjoint(held.get(tensor, ()))}
    return any(roots.get(tensor) in trained for tensor in tensors)


@table
def _roots_of_parameters(record: Record) -> Mapping[int, str]:
    """Return the name of the root module that holds a parameter, by tensor."""
    roots = sorted((row.binding for row in record.modules if row.fqn is None and row.binding), key=len, reverse=True)
    names = parameters(record)
    return {
        tensor: root
        for tensor, name in names.items()
        if (root := next((root for root in roots if name.startswith(f"{root}.")), None)) is not None
    }


def _not_changed(record: Record) -> Breach | None:
    """Leaves that were stepped on with a gradient that is not zero, and whose values are the same afterwards."""
    found: list[int] = []
    for optimizer in record.optimizers:
        for row in optimizer.tensors if optimizer.cls != "LBFGS" else ():
            events = [event for event in steps(record) if event.optimizer == optimizer.optimizer]
            equal = [
                same for event in events if (same := _is_unchanged(record, row.tensor, row.group, event)) is not None
            ]
            if len(equal) >= _REPEATED and (all(equal[-_REPEATED:]) or all(equal[:_REPEATED])):
                found.append(row.tensor)
    if not found:
        return None
    loads = [event.site for event in record.optimizer_events if event.kind == "load_state_dict"]
    site = loads[0] if loads and loads[0] is not None else record.optimizers[-1].site
    return None if site is None else Breach("not-changed", site, tuple(found), record.optimizers[-1].optimizer)


def _is_unchanged(record: Record, tensor: int, group: int, step: OptimizerEvent) -> bool | None:
    """Return whether a step left the values as they were; None if not measured, or if the step was too small."""
    before, after = state_at(record, tensor, step.moment - 1), state_at(record, tensor, step.moment)
    if before is None or after is None or after.moment != step.moment or before.grad != "present":
        return None
    history = lookup(record).snapshots_of[tensor]
    old = next((row.value for row in reversed(history) if row.moment < step.moment and row.value), None)
    gradient, new = before.grad_stats, after.value
    if old is None or new is None or gradient is None or not old.norm or not gradient.norm:
        return None
    rate = step.learning_rates[min(group, len(step.learning_rates) - 1)] if step.learning_rates else 0
    if rate and rate * gradient.norm <= _SMALLEST_CHANGE * old.norm:
        return None
    return _numbers(old) == _numbers(new)


def _numbers(measured: Statistics) -> tuple[float | None, ...]:
    return measured.norm, measured.sum, measured.min, measured.max


def _zero_gradient(record: Record) -> Breach | None:
    """Leaves of optimizers whose gradient is zero in every element whenever it was measured."""
    found: dict[int, int] = {}
    for tensor in arrivals(record):
        measured = [
            (row.moment, row.grad_stats) for row in lookup(record).snapshots_of[tensor] if row.grad == "present"
        ]
        rows = [(moment, stats) for moment, stats in measured if stats is not None]
        times = len({step_of(record, moment) for moment, _stats in rows})
        is_zero = all(stats.counted and stats.zeros == stats.counted for _moment, stats in rows)
        if in_optimizers(record).get(tensor) and is_zero and times >= _REPEATED:
            found[tensor] = times
    site = site_of_zero(record) if found else None  # without one, gradients that are not zero cancel in a sum
    if site is None:
        return None
    whole = [
        module for tensor in found if (module := owners(record).get(tensor)) is not None and _is_within(module, found)
    ]
    may_be_meant = not whole or max(found.values()) < _MANY  # the gradient of one bias alone may be zero by the formula
    return Breach("zero-gradient", site, tuple(found), None, may_be_meant=may_be_meant)


def _is_within(module: Module, tensors: Container[int]) -> bool:
    return all(row.tensor is None or row.tensor in tensors for row in module.parameters)


def _never_stepped(record: Record) -> Breach | None:
    """An optimizer whose leaves get gradients in several steps of others, and that never steps."""
    stepping = {event.optimizer for event in steps(record)}
    for optimizer in record.optimizers:
        if optimizer.optimizer in stepping:
            continue
        tensors = [
            row.tensor
            for row in optimizer.tensors
            if len({step_of(record, got.moment) for got in arrivals(record).get(row.tensor, ())}) >= _REPEATED
            and stepping.isdisjoint(in_optimizers(record).get(row.tensor, ()))
        ]
        site = arrivals(record)[tensors[0]][0].site if tensors else None
        if site is not None:
            return Breach("never-stepped", site, tuple(tensors), optimizer.optimizer)
    return None


def _idle_optimizer(record: Record) -> Breach | None:
    """A schedule of an optimizer that never steps, while another one steps the same leaves."""
    stepping = {event.optimizer for event in steps(record)}
    leaves = {row.optimizer: {tensor.tensor for tensor in row.tensors} for row in record.optimizers}
    found: defaultdict[tuple[int, int], int] = defaultdict(int)
    for event in record.optimizer_events:
        own = leaves.get(event.optimizer if event.optimizer is not None else -1, set())
        is_idle = event.kind == "scheduler_step" and event.optimizer not in stepping
        if is_idle and event.site is not None and any(own & leaves.get(other or 0, set()) for other in stepping):
            found[event.site, event.optimizer or 0] += 1
    for (site, optimizer), times in found.items():
        if times >= _REPEATED:
            return Breach("idle-optimizer", site, tuple(sorted(leaves[optimizer])), optimizer)
    return None


def _rows_equal(record: Record) -> Breach | None:
    """Weights of whose units each step changes all in the same way."""
    found = equal_rows(record)
    return Breach("rows-equal", next(iter(found.values())), tuple(found), None) if found else None


def _wrapper(record: Record) -> Breach | None:
    """A data-parallel wrapper that is never called, while what it wraps is trained: it averages no gradient."""
    called = {call.module for call in record.module_calls}
    for module in record.modules:
        if "DataParallel" in module.cls and module.module not in called:
            calls = [call for call in record.backward_calls if call.accumulate_grad and call.site is not None]
            tensors = tuple(sorted(arrivals(record)))
            if calls and calls[0].site is not None and tensors:
                return Breach("wrapper-passed-by", calls[0].site, tensors, None)
    return None
