"""Calls of modules in training mode whose results were meant to measure or to teach, not to be trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.consumers import Fate, fate_of, operation_of
from backprobe.rules.analysis.modules.module_sites import outermost_call
from backprobe.rules.analysis.modules.training_modes import (
    DROPOUTS,
    inside,
    is_of,
    module_of,
    parameters_in,
    used_by_updates,
    walked_in,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import method_called, parts_of, site_of, statement_at
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import updates
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record

_LEAST: Final = 2
"""Steps in which it is seen: once is no pattern."""

_MOST: Final = 64
"""Calls of one place whose results are followed."""


def measured(record: Record, calls: list[ModuleCall]) -> bool:
    """The results of these calls were compared with something and counted, and nothing is trained on them.

    Where calls of the same place are trained on, the counting must stand where none of those is counted: a loss that
    is looked at before it is walked is no evaluation.
    """
    fates = _fates(record, calls)
    if not fates or any(fate.is_trained_on for fate in fates):
        return False
    walked = [
        one for one in record.module_calls
        if one.site == calls[0].site and one.module == calls[0].module and one.module_call in walked_in(record)
    ]  # fmt: skip
    trained_at = {statement for fate in _fates(record, walked) for statement in fate.measured_at}
    fates = [fate for fate in fates if fate.measured_at - trained_at]
    if not fates or _is_repeated(record, fates) or (walked and not _fates(record, walked)):
        return False
    moments = [fate.made.moment or 0 for fate in fates]
    return len({step_of(record, moment) for moment in moments}) >= _LEAST or min(moments) > _last_update(record)


def _fates(record: Record, calls: list[ModuleCall]) -> list[Fate]:
    """What became of the results of calls; none where one of them may have been walked unseen."""
    rows = [operation_of(record).get(outermost_call(record, call).module_call) for call in calls[:_MOST]]
    known = [row for row in rows if row is not None and row.moment is not None]
    if len(known) < len(rows) or any(step_of(record, row.moment or 0) in _unseen_steps(record) for row in known):
        return []
    return [fate_of(record, row) for row in known]


@table
def _unseen_steps(record: Record) -> frozenset[int]:
    """The steps with a backward call that was not walked, as most are of a loop that runs often."""
    calls = (call for call in record.backward_calls if not call.nodes_met)
    return frozenset(step_of(record, call.moment_before) for call in calls)


@table
def _last_update(record: Record) -> int:
    return max((update.moment for update in updates(record)), default=-1)


def _is_repeated(record: Record, fates: list[Fate]) -> bool:
    """Between two updates the same tensors went in more than once, in a loop or into one value: Monte Carlo dropout."""
    seen: dict[tuple[int, tuple[int, ...]], Fate] = {}
    for fate in fates:
        key = step_of(record, fate.made.moment or 0), fate.made.operands
        before = seen.setdefault(key, fate)
        looped = site_of(record, fate.made.statement).loop_line is not None
        if before is not fate and key[1] and (looped or before.uses & fate.uses):
            return True
    return False


def is_fixed_teacher(record: Record, calls: list[ModuleCall]) -> bool:
    """A module with dropout that was trained or loaded, is written no more, and gives what others are trained on."""
    first = calls[0]
    parameters = parameters_in(record, first)
    fates = _fates(record, calls)
    if not parameters or not fates or not any(is_of(record, one, DROPOUTS) for one in inside(record, first)):
        return False
    start = fates[0].made.moment or 0
    steps = {step_of(record, fate.made.moment or 0) for fate in fates if fate.is_trained_on}
    if len(steps) < _LEAST or _is_written_after(record, parameters, start):
        return False
    return _was_trained(record, parameters, start) or _was_loaded(record, first, parameters, start)


def _is_written_after(record: Record, parameters: set[int], start: int) -> bool:
    """An optimizer that holds them steps on, or something else changes them: an average, a copy of the newest."""
    holding = {one for tensor in parameters for one in in_optimizers(record).get(tensor, ())}
    if any(update.optimizer in holding and update.moment > start for update in updates(record)):
        return True
    return any(row.tensor in parameters and row.moment > start for row in record.inplace_events)


def _was_trained(record: Record, parameters: set[int], start: int) -> bool:
    used = used_by_updates(record)
    return any(leaf in parameters and moments[0] < start for one in used.values() for leaf, moments in one.items())


def _was_loaded(record: Record, call: ModuleCall, parameters: set[int], start: int) -> bool:
    """`load_state_dict` filled it, or it is a copy made behind the first update."""
    written = (row.site for row in record.inplace_events if row.tensor in parameters and row.moment <= start)
    if any(_calls_at(record, site, "load_state_dict") for site in written):
        return True
    module = module_of(record, call)
    made = min((lookup(record).tensors[one].moment for one in parameters), default=0)
    earlier = any(update.moment < made for update in updates(record))
    return earlier and module is not None and _calls_at(record, module.site, "deepcopy")


def _calls_at(record: Record, site: int | None, name: str) -> bool:
    return any(method_called(part) == name for part in parts_of(statement_at(record, site)))
