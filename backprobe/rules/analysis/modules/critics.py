"""Modules whose own output is what a root sums up: a critic that judges what something else made.

    loss = -critic(actor(state)).mean()

1. Only sums, means, signs and shapes lie between the module's output and the root: no target is compared with it. Its
   own parameters would have no minimum to go to, so the call is for what lies before the module.
2. What lies before it is held by an optimizer: read off the graph of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import grad_spans
from backprobe.rules.analysis.graph.reach import leaves_behind, reaches
from backprobe.rules.analysis.graph.walks import RESHAPES, node_of, op, operands
from backprobe.rules.analysis.modules.module_sites import calls_by_number
from backprobe.rules.analysis.modules.training_modes import parameters_in, used_by_updates
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, LeafGrad, Record
    from backprobe.rules.analysis.gradients.grad_spans import Span

_LINEAR: Final = RESHAPES | {"Mean", "Sum", "Neg", "Add", "Sub", "Rsub"}

_MOST: Final = 200
"""Nodes that are looked at between a root and the outputs that it sums."""


def judged_by(record: Record, call: BackwardCall) -> frozenset[int]:
    """The leaves of the modules whose outputs a call's root sums, where trained leaves lie before those modules."""
    return _judging(record).get(call.call, frozenset())


@table
def scored_again(record: Record) -> dict[int, list[tuple[Span, LeafGrad, LeafGrad]]]:
    """The calls that walk back through a critic and add to what its own loss left, by statement.

    Of each leaf of the critic the span of its gradient, what this call brought, and what its own loss brought. Steps
    use both calls: what a call leaves in a critic to be cleared is no mistake.
    """
    used, index = used_by_updates(record), lookup(record)
    found: dict[int, list[tuple[Span, LeafGrad, LeafGrad]]] = {}
    for tensor, spans in grad_spans(record).items():
        for span in spans:
            rows = [(row, row.call) for row in span.arrivals if row.call is not None]
            rows = [(row, call) for row, call in rows if tensor in used.get(call, {})]
            scoring = [(row, call) for row, call in rows if tensor in judged_by(record, index.calls[call])]
            own = [(row, call) for row, call in rows if (row, call) not in scoring]
            for row, call in scoring[:1] if own else ():
                judged = used[call].keys() - judged_by(record, index.calls[call])
                if judged and row.site is not None and not judged & reaches(record)[own[0][1]].leaves:
                    found.setdefault(row.site, []).append((span, row, own[0][0]))
    return found


@table
def _judging(record: Record) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for call in record.backward_calls:
        roots = [node for root in call.roots if (node := node_of(record, root.tensor)) is not None]
        leaves = frozenset[int]()
        for start in _summed(record, roots):
            leaves |= _held_after_trained(record, start)
        if leaves:
            found[call.call] = leaves
    return found


def _summed(record: Record, roots: list[int]) -> list[int]:
    """The first nodes below roots that were made in a module: a criterion's own mean is no output that is summed."""
    seen, waiting, found = set(roots), list(roots), list[int]()
    while waiting and len(seen) < _MOST:
        node = waiting.pop()
        row = lookup(record).nodes[node]
        if row.module_call is not None:
            found += [node] if row.outputs and row.outputs[0].shape else []
            continue
        if op(row) not in _LINEAR:
            continue
        below = [one for one in operands(record, node) if one is not None and one not in seen]
        seen.update(below)
        waiting += below
    return found


def _held_after_trained(record: Record, start: int) -> frozenset[int]:
    """The leaves of the outermost module that a node was made in, if what went into it trains something else."""
    known = calls_by_number(record)
    call = known.get(lookup(record).nodes[start].module_call or -1)
    while call is not None and call.parent is not None and call.parent in known:
        call = known[call.parent]
    if call is None:
        return frozenset()
    behind = leaves_behind(record, start)
    held = behind & parameters_in(record, call)
    return frozenset(held) if any(one in in_optimizers(record) for one in behind - held) else frozenset()
