"""What a program keeps of tracked values from step to step: what takes them in, and whether they are walked."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.completeness import is_walked_whole
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.expression_places import operations_at
from backprobe.rules.analysis.tensors.parents import undetached_from
from backprobe.rules.analysis.terms.tracked_operands import Operand, operands
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site

LEAST: Final = 3
"""Times that something is taken in before it is a pattern (to be repeated takes two, to have a shape three)."""


MANY: Final = 10
"""Times in a row, with no backward call between, after which what an evaluation takes in is a pattern."""


@table
def executions(record: Record) -> dict[int, list[int]]:
    """The moments after which each statement had run, by site, in order.

    `self.total += loss` and `losses.append(loss)` bind no name and may have no moment of their own: they are taken to
    have run before each new value of `loss`; `losses.append(self.validate(x))` when its operations ended.
    """
    found: defaultdict[int, list[int]] = defaultdict(list)
    for row in record.moments:
        if row.kind == "after-statement" and row.site is not None:
            found[row.site].append(row.moment)
    for site in record.sites:
        if site.kind in ("inplace", "call", "assign") and site.site not in found:
            found[site.site] = _ends_of_values(record, site) or _ends_of_operations(record).get(site.site, [])
    return dict(found)


@table
def _ends_of_operations(record: Record) -> dict[int, list[int]]:
    """The last moments before the operations of each statement ended, each once."""
    found: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for row in record.operations:
        if row.moment is not None:
            found[row.statement][row.moment] = None
    return {site: list(moments) for site, moments in found.items()}


def _ends_of_values(record: Record, site: Site) -> list[int]:
    """The last moments of the values that a name read there had, of the name that had most.

    Of a dict or list, as in `outputs.append(log)`, the values of what it was bound with: `log['loss']`.
    """
    sites, best = lookup(record).sites, list[int]()
    for name in [part for read in site.reads for part in (read, *_parts(record).get(read, ()))]:
        rows = [row for row in bindings_named(record).get(name, ()) if row.function == site.function]
        rows = [row for row in rows if sites[row.site].loop_line == site.loop_line]
        ends = [row.moment - 1 for row in rows[1:]]  # of the last value the end is not known
        if len(ends) > len(best):
            best = ends
    return best


@table
def _parts(record: Record) -> dict[str, list[str]]:
    """The names of what lists and dicts were bound with, by the name of the whole: `log['loss']` of `log`."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in bindings_named(record):
        whole, bracket, _ = name.partition("[")
        if bracket:
            found[whole].append(name)
    return found


@table
def walks(record: Record) -> list[int]:
    """The moments of the backward calls that finished and stored gradients, and of the optimizer steps, in order."""
    calls = [row.moment_before for row in record.backward_calls if row.accumulate_grad and row.outcome == "finished"]
    return sorted(calls + [row.moment for row in record.optimizer_events if row.kind == "step"])


def crossing(record: Record, moments: list[int]) -> list[int]:
    """Those of some moments before each of which, since the one before, a backward call or a step was made."""
    marks = walks(record)
    found: list[int] = []
    for moment in moments:
        if not found or bisect_right(marks, moment) > bisect_right(marks, found[-1]):
            found.append(moment)
    return found


def unwalked_run(record: Record, moments: list[int]) -> list[int]:
    """The longest run of moments, `MANY` at least, between which neither a backward call nor a step was made.

    Empty in a program that makes no step: nothing tells there that an evaluation is no training.
    """
    marks, groups = walks(record), defaultdict[int, list[int]](list)
    for moment in moments:
        groups[bisect_right(marks, moment)].append(moment)
    longest = max(groups.values(), key=len, default=list[int]())
    steps = any(row.kind == "step" for row in record.optimizer_events)
    return longest if steps and len(longest) >= MANY else []


def taken_unwalked(record: Record, site: Site, value: ast.expr, run: list[int]) -> list[tuple[int, list[Operand]]]:
    """What a run takes in, each tensor once; empty where any of it may ever be walked, in this run or in another."""
    if not all(map(is_walked_whole, record.backward_calls)):
        return []
    found: list[tuple[int, list[Operand]]] = []
    seen: set[int] = set()
    for moment in run:
        new = [
            one
            for one in operands(record, site, value, moment)
            if one.tensor not in seen and not _is_leaf(record, one.tensor, moment)
        ]
        if any(one.tensor in _walked_tensors(record) for one in new):
            return []
        seen.update(one.tensor for one in new)
        if new:
            found.append((moment, new))
    return found if len(found) >= MANY else []


def _is_leaf(record: Record, tensor: int, moment: int) -> bool:
    """A parameter has no history that a list could keep."""
    state = state_at(record, tensor, moment)
    return state is not None and state.is_leaf


@table
def _walked_tensors(record: Record) -> frozenset[int]:
    """The tensors that a backward call started from, or whose nodes one met."""
    met = {node for reach in reaches(record).values() for node in reach.met}
    made = {row.tensor for row in record.tensor_nodes if row.node in met}
    return frozenset(
        made | {root.tensor for call in record.backward_calls for root in call.roots if root.tensor is not None}
    )


def may_be_walked_after(record: Record, tensor: int, moment: int) -> bool:
    """A backward call after a moment starts from the tensor, meets the node that made it, or was not walked whole."""
    made = lookup(record).node_of.get(tensor)
    return any(
        call.moment_before > moment
        and (
            not is_walked_whole(call)
            or any(root.tensor == tensor for root in call.roots)
            or (made is not None and made.node in reaches(record)[call.call].met)
        )
        for call in record.backward_calls
    )


def alive(record: Record, site: Site, value: ast.expr, moment: int, last: int) -> list[Operand]:
    """The tracked tensors that one execution took in, whose nodes live at a later moment and are not walked again."""
    every = operands(record, site, value, moment)
    return [
        operand
        for operand in every
        if _lives(record, operand, last) and not may_be_walked_after(record, operand.tensor, moment)
    ]


def _lives(record: Record, one: Operand, last: int) -> bool:
    """What made the operand is there at a moment."""
    index = lookup(record)
    made = index.node_of.get(one.tensor)
    # a graph that no backward call walked has no nodes in the record: it lives as long as its result
    known = made is not None or isinstance(one.part, ast.Call)
    died = index.tensors[one.tensor].died if made is None else index.nodes[made.node].died
    return known and (died is None or died > last)


def kept_alive(record: Record, site: Site, value: ast.expr, turns: list[int]) -> list[tuple[int, list[Operand]]]:
    """The turns that took in tracked tensors which live on, each tensor in one turn only.

    Where a statement runs often, its name may be known only from an earlier turn; that tensor counts once.
    """
    found: list[tuple[int, list[Operand]]] = []
    seen: set[int] = set()
    for moment in turns:
        new = [one for one in alive(record, site, value, moment, turns[-1]) if one.tensor not in seen]
        seen.update(one.tensor for one in new)
        if new:
            found.append((moment, new))
    return found


def kept_walked(record: Record, site: Site, value: ast.expr, turns: list[int]) -> list[tuple[int, list[Operand]]]:
    """The turns that took in tracked tensors which their own step walked afterwards, no later one, and which live on.

    A list that is made anew in each step lets them go, and what a later step walks was collected for it.
    """
    found: list[tuple[int, list[Operand]]] = []
    seen: set[int] = set()
    for moment, following in pairwise(turns):
        new = [
            operand
            for operand in operands(record, site, value, moment)
            if operand.tensor not in seen
            and _lives(record, operand, turns[-1])
            and may_be_walked_after(record, operand.tensor, moment)
            and not may_be_walked_after(record, operand.tensor, following)
        ]
        seen.update(one.tensor for one in new)
        if new:
            found.append((moment, new))
    return found


def results_kept(record: Record, site: int, turns: list[int]) -> list[tuple[int, int]]:
    """The turns with what a statement gave an element without a name, `shadow[key] = ...`, made of what it gave before.

    The longest chain of tracked results, each of which went into the next one with its history.
    """
    chains: dict[int, tuple[int, int, int | None]] = {}  # tensor -> its place in a chain, its moment, the one before
    for row in operations_at(record).get(site, ()):
        if row.is_value and row.tensor is not None and row.requires_grad and row.moment is not None:
            before = max(undetached_from(record, row.tensor) & chains.keys(), default=None)
            chains[row.tensor] = (1 if before is None else chains[before][0] + 1, row.moment, before)
    last = max(chains, key=lambda one: chains[one][0], default=None)
    found: list[tuple[int, int]] = []
    while last is not None:
        found.append((chains[last][1], last))
        last = chains[last][2]
    return found[::-1] if len(found) <= len(turns) else []
