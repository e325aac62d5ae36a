"""Which leaves training passes over: held without a gradient, not held, or stepped without effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.invariants.coverage_facts import REPEATED, Breach, Kind, steps
from backprobe.rules.analysis.invariants.grad_ledger import sources_of_calls
from backprobe.rules.analysis.invariants.lost_updates import find_equal_rows, find_unchanged, find_zero_gradients
from backprobe.rules.analysis.invariants.replaced_values import is_chosen, replaced_values
from backprobe.rules.analysis.invariants.stopping_hooks import hook_before
from backprobe.rules.analysis.invariants.unreached_leaves import owners, site_of_cut
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.optimizers.schedules import may_share_groups
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at, step_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import updates_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record


@table
def coverage_breaches(record: Record) -> tuple[Breach, ...]:
    """Return the breaches of a run with optimizer steps, one at most for each kind."""
    if not steps(record):
        return ()
    of_optimizers = (_not_held, _never_stepped, _idle_optimizer, _wrapper, _nothing_trained)
    of_values = (find_unchanged, find_zero_gradients, find_equal_rows)
    found = [*_held_without_gradient(record), *(check(record) for check in (*of_optimizers, *of_values))]
    return tuple(breach for breach in found if breach is not None)


def _held_without_gradient(record: Record) -> Iterator[Breach | None]:
    """Leaves of optimizers that step, which never get a gradient."""
    assigned = {row.tensor for row in record.leaf_grads if row.kind == "assigned"}
    frozen: list[int] = []
    others: defaultdict[Kind, list[int]] = defaultdict(list)
    holder: Optimizer | None = None
    for optimizer in record.optimizers:
        events = [event for event in steps(record) if event.optimizer == optimizer.optimizer]
        if len(events) < REPEATED or not any(event.with_grad for event in events):
            continue
        for group in _groups(optimizer):
            without = [tensor for tensor in group if tensor not in grad_lives(record) and tensor not in assigned]
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
    site = _site_of_freeze(record, tensors[0]) if tensors else None
    if not tensors:
        return None
    site = optimizer.site if site is None else site
    return None if site is None else Breach("frozen", site, tuple(tensors), optimizer.optimizer)


def _site_of_freeze(record: Record, tensor: int) -> int | None:
    """Return the statement after which a leaf was first seen not to require grad."""
    index = lookup(record)
    first = next((row for row in index.snapshots_of[tensor] if not row.requires_grad), None)
    moment = None if first is None else index.moments.get(first.moment)
    return None if moment is None else moment.site


def _without_gradient(record: Record, optimizer: Optimizer, kind: Kind, tensors: Sequence[int]) -> Breach | None:
    module = owners(record).get(tensors[0])
    calls = [] if module is None else calls_of_modules(record).get(module.module, [])
    cut = site_of_cut(record, calls[0], tensors[0]) if calls else None
    called = calls[0].site if calls else None if module is None else module.site
    hook = hook_before(record, tensors)
    stopped = None if hook is None else hook.site
    site = next((known for known in (stopped, cut, called, optimizer.site) if known is not None), None)
    if site is not None and site == cut and site in replaced_values(record):
        if is_chosen(record, site):
            return None
        kind = "overwritten"
    return None if site is None else Breach(kind, site, tuple(tensors), optimizer.optimizer)


def _not_held(record: Record) -> Breach | None:
    """Leaves that get gradients in several steps, though no optimizer that steps holds them and nothing writes them."""
    written = {event.tensor for event in record.inplace_events if event.done_by == "statement"}
    asked = {root.tensor for call in record.backward_calls for root in call.inputs or ()}
    read = {row.tensor for row in record.grad_reads if row.use == "used"}  # the program may update them by hand
    stepping = {event.optimizer for event in steps(record)}
    last = steps(record)[-1].moment
    found: list[int] = []
    for tensor, life in grad_lives(record).items():
        history = lookup(record).snapshots_of[tensor]
        times = {step_of(record, row.moment) for row in life.arrivals if row.moment < last}
        is_held = not stepping.isdisjoint(in_optimizers(record).get(tensor, ()))
        is_used = is_held or tensor in written | asked | read or tensor in updates_of(record)
        if len(times) >= REPEATED and not is_used and history and history[-1].is_leaf:
            found.append(tensor)
    site = record.optimizers[-1].site if record.optimizers else None
    return Breach("not-held", site, tuple(found), None) if found and site is not None else None


def _never_stepped(record: Record) -> Breach | None:
    """An optimizer whose leaves get gradients in several steps of others, and that never steps."""
    stepping = {event.optimizer for event in steps(record)}
    for optimizer in record.optimizers:
        if optimizer.optimizer in stepping:
            continue
        tensors = [
            row.tensor
            for row in optimizer.tensors
            if row.tensor in grad_lives(record)
            and len(grad_lives(record)[row.tensor].steps) >= REPEATED
            and stepping.isdisjoint(in_optimizers(record).get(row.tensor, ()))
        ]
        site = grad_lives(record)[tensors[0]].arrivals[0].site if tensors else None
        if site is not None:
            return Breach("never-stepped", site, tuple(tensors), optimizer.optimizer)
    return None


def _idle_optimizer(record: Record) -> Breach | None:
    """A schedule of an optimizer that never steps, while another one steps the same leaves at other rates."""
    stepping = {event.optimizer for event in steps(record)}
    leaves = {row.optimizer: {tensor.tensor for tensor in row.tensors} for row in record.optimizers}
    found: defaultdict[tuple[int, int], int] = defaultdict(int)
    for event in record.optimizer_events:
        own = leaves.get(event.optimizer if event.optimizer is not None else -1, set())
        is_idle = event.kind == "scheduler_step" and event.optimizer not in stepping
        if is_idle and event.site is not None and any(own & leaves.get(other or 0, set()) for other in stepping):
            found[event.site, event.optimizer or 0] += 1
    for (site, optimizer), times in found.items():
        others = [other for other in stepping if other is not None and not may_share_groups(record, optimizer, other)]
        if times >= REPEATED and any(leaves[optimizer] & leaves.get(other, set()) for other in others):
            return Breach("idle-optimizer", site, tuple(sorted(leaves[optimizer])), optimizer)
    return None


def _wrapper(record: Record) -> Breach | None:
    """A data-parallel wrapper that is never called, while what it wraps is trained: it averages no gradient."""
    called = {call.module for call in record.module_calls}
    for module in record.modules:
        if "DataParallel" in module.cls and module.module not in called:
            calls = [call for call in record.backward_calls if call.accumulate_grad]
            source = sources_of_calls(record)[calls[0].call] if calls else None
            site = None if source is None else source.root_site if source.root_site is not None else source.call_site
            tensors = tuple(sorted(grad_lives(record)))
            if site is not None and tensors:
                return Breach("wrapper-passed-by", site, tensors, None)
    return None


def _nothing_trained(record: Record) -> Breach | None:
    """Optimizers that step again and again, of which none ever found a gradient."""
    if len(steps(record)) < REPEATED or any(event.with_grad for event in steps(record)):
        return None
    holder = next((row for row in record.optimizers if row.optimizer == steps(record)[0].optimizer), None)
    if holder is None:
        return None
    tensors = tuple(row.tensor for row in holder.tensors)
    frozen = [tensor for tensor in tensors if _is_frozen(record, tensor, steps(record)[0].moment)]
    site = _site_of_freeze(record, frozen[0]) if frozen and len(frozen) == len(tensors) else None
    site = holder.site if site is None else site
    return None if site is None else Breach("nothing-trained", site, tensors, holder.optimizer)
