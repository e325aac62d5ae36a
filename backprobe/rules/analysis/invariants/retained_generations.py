"""Graphs of earlier training steps that are still alive: how many, of which statements, and what keeps them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from backprobe.rules.analysis.invariants.grad_ledger import first_unseen_step
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import step_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Tensor

_GENERATIONS: Final = 3
"""Steps whose graphs must be alive at once. Two are alive wherever a value of the last step is used in this one."""

_MOST_TENSORS: Final = 200
"""Living tensors that the search for a carried graph looks at."""


class Retention(NamedTuple):
    """Graphs of several steps that are alive at once.

    Attributes:
        generations: The greatest number of steps whose graphs were alive at one time.
        is_carried: One living tensor leads to the graphs of several steps. Else several tensors are kept.
        is_freed: Backward calls have freed what the graphs saved: nodes and named tensors are all that stays.
        sites: The statements to show, at most two: those that keep the tensors, else those that made them.
        tensors: Some of what is kept.
    """

    generations: int
    is_carried: bool
    is_freed: bool
    sites: tuple[int, ...]
    tensors: tuple[int, ...]


@table
def turn_ends(record: Record) -> tuple[int, ...]:
    """Return when training turns end: at the steps of the optimizer that steps least, else at backward calls."""
    by_optimizer: defaultdict[int | None, list[int]] = defaultdict(list)
    for event in record.optimizer_events:
        if event.kind == "step":
            by_optimizer[event.optimizer].append(event.moment)
    several = [moments for moments in by_optimizer.values() if len(moments) >= 4]
    ends = min(several, key=len) if several else [moment for moments in by_optimizer.values() for moment in moments]
    if not ends:
        unwalked = min((call.moment_before for call in record.backward_calls if not call.nodes_met), default=None)
        calls = [call for call in record.backward_calls if call.accumulate_grad and call.moment_after]
        ends = [call.moment_after for call in calls if call.moment_after is not None]
        if unwalked is not None:
            ends = [moment for moment in ends if moment < unwalked][:-1]
    unseen = first_unseen_step(record)
    return tuple(sorted({moment for moment in ends if unseen is None or step_of(record, moment) < unseen - 1}))


@table
def retained_generations(record: Record) -> Retention | None:
    """Return the graphs of earlier steps that are alive at once; None if there are fewer than `_GENERATIONS`."""
    ends = turn_ends(record)
    if len(ends) < _GENERATIONS or not record.nodes:
        return None
    generations = max(_alive_by_site(record, ends).values(), default=0)
    if generations < _GENERATIONS:
        return None
    kept, is_freed = _kept_tensors(record, ends), _is_freed(record, ends)
    carrier = _carrier(record, ends, kept, min(_GENERATIONS + 1, generations))
    if carrier is not None and carrier.site is not None:
        return Retention(
            generations, is_carried=True, is_freed=is_freed, sites=(carrier.site,), tensors=(carrier.tensor,)
        )
    makers = _makers(ends, kept, min(_GENERATIONS, generations)) or list(_alive_by_site(record, ends))[:1]
    tensors = {tensor.tensor for site in makers for tensor in kept.get(site, [])}
    inner = _inner_sites(record, kept)
    sites = _keeping_statements(record, tensors) or [site for site in makers if site not in inner] or makers
    return Retention(
        generations, is_carried=False, is_freed=is_freed, sites=tuple(sites[:2]), tensors=tuple(sorted(tensors)[:8])
    )


def _is_freed(record: Record, ends: Sequence[int]) -> bool:
    """Backward calls freed each node that outlives its turn, as far as it saved anything."""
    births = _births(record)
    for node in record.nodes:
        died = bisect_left(ends, node.died) if node.died is not None else len(ends) + 1
        is_old = node.node in births and died > bisect_left(ends, births[node.node]) + 2
        if is_old and node.saved_bytes and node.freed_by is None:
            return False
    return True


def _alive_by_site(record: Record, ends: Sequence[int]) -> Mapping[int, int]:
    """Return, by statement, of how many turns nodes that it made were alive at once after a later turn had ended."""
    births = _births(record)
    alive: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    for node in record.nodes:
        if node.node not in births or node.site is None:
            continue
        born = bisect_left(ends, births[node.node])
        died = bisect_left(ends, node.died) if node.died is not None else len(ends) + 1
        if born < len(ends):
            alive[node.site] |= {(turn, born) for turn in range(born + 2, min(died, len(ends)) + 1)}
    return {site: max(Counter(turn for turn, _born in pairs).values()) for site, pairs in alive.items() if pairs}


def _births(record: Record) -> Mapping[int, int]:
    """Return when each node was first walked, for what is kept until then is kept to be walked; else when it was made.

    It was made by the moment of the first named tensor that was made with it or after it.
    """
    index = lookup(record)
    first: dict[int, int] = {}
    for row in record.tensor_nodes:
        first.setdefault(row.node, row.tensor)
    known = sorted(
        (node.seq, index.tensors[first[node.node]].moment)
        for node in record.nodes
        if node.seq is not None and first.get(node.node) in index.tensors
    )
    numbers = [number for number, _moment in known]
    births: dict[int, int] = {}
    for node in record.nodes:
        if node.seq is not None and node.type != "AccumulateGrad":
            at = bisect_left(numbers, node.seq)
            made = min(node.first_seen, known[at][1] if at < len(known) else node.first_seen)
            passes = (row for row in index.passes_of_node[node.node] if row.position is not None)
            walks = (index.calls[row.call].moment_before for row in passes)
            births[node.node] = min(walks, default=made)
    return births


def _kept_tensors(record: Record, ends: Sequence[int]) -> Mapping[int | None, list[Tensor]]:
    """Return the results of operations that outlive the turn after theirs, and the living ones, by statement."""
    kept: defaultdict[int | None, list[Tensor]] = defaultdict(list)
    for row in record.tensors:
        if row.created_by == "op" and row.role is None:
            died = bisect_left(ends, row.died) if row.died is not None else len(ends) + 2
            if died > bisect_left(ends, row.moment) + 1:
                kept[row.site].append(row)
    return kept


def _inner_sites(record: Record, kept: Mapping[int | None, list[Tensor]]) -> set[int | None]:
    """Return the statements whose kept tensors another statement made a kept tensor of: its graph keeps them."""
    sites = {row.tensor: site for site, rows in kept.items() for row in rows}
    found: set[int | None] = set()
    for row in record.operations:
        if row.tensor is not None and row.tensor in sites:
            inner = {sites[operand] for operand in row.operands if operand in sites}
            found |= inner - {sites[row.tensor]}
    return found


def _carrier(record: Record, ends: Sequence[int], kept: Mapping[int | None, list[Tensor]], least: int) -> Tensor | None:
    """Return the living tensor that leads to the graphs of most turns, if those are enough."""
    living = [row for rows in kept.values() for row in rows if row.died is None][-_MOST_TENSORS:]
    index, births = lookup(record), _births(record)
    best, most = None, 0
    for row in living:
        seen: set[int] = set()
        waiting = [index.node_of[row.tensor].node] if row.tensor in index.node_of else []
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += [edge.to_node for edge in index.edges_of[node] if edge.to_node is not None]
        turns = len({bisect_left(ends, births[node]) for node in seen if node in births})
        if turns > most:
            best, most = row, turns
    return best if most >= least else None


def _makers(ends: Sequence[int], kept: Mapping[int | None, list[Tensor]], least: int) -> list[int]:
    """Return the statements that made kept tensors of enough turns, those of most turns first."""
    turns = {site: len({bisect_left(ends, row.moment) for row in rows}) for site, rows in kept.items()}
    known = [(count, site) for site, count in turns.items() if site is not None and count >= least]
    return [site for _count, site in sorted(known, reverse=True)]


def _keeping_statements(record: Record, tensors: set[int]) -> list[int]:
    """Return the statements that took such a tensor and gave none, `kept.append(loss)`.

    Else those that raised an exception which left the function of such a tensor; else where a name at top level got it.
    """
    takers = Counter(
        row.statement for row in record.operations if row.result == "other" and not tensors.isdisjoint(row.operands)
    )
    found = [site for site, times in takers.most_common(2) if times >= 2]
    if found:
        return found
    sites = lookup(record).sites
    makers = {sites[row.site].function for row in record.bindings if row.tensor in tensors}
    left = Counter(row.site for row in record.raised if row.caught and row.site is not None)
    raising = [site for site, times in left.most_common(2) if times >= 2 and sites[site].function in makers]
    if raising:  # the traceback of a kept exception holds the frame, and the frame its values
        return raising
    bound = Counter(row.site for row in record.bindings if row.tensor in tensors and row.function == "<module>")
    return [site for site, _times in bound.most_common(1)]
