"""Terms of a loss that count twice: walked back alone and inside a later root, or added twice into one root.

first.backward(retain_graph=True)        total = task + aux
(first + second).backward()              loss = total + aux
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.carried_graphs import is_used_between
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.walks import node_of, op, operands
from backprobe.rules.analysis.modules.training_modes import used_by_updates
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record

_WINDOW: Final = 64
"""Calls before one that are compared with it: those that fill one `.grad` together are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A term of one backward call's root that counts twice in the gradient.

    Attributes:
        call: The call that counts it the second time. first: the call that walked it before; None: `call` counts twice.
        site: The statement that makes it count again. term: its node. adds: of a term added twice, the two sums.
    """

    call: BackwardCall
    site: int
    term: int
    first: BackwardCall | None = None
    adds: tuple[int, ...] = ()


def stores(call: BackwardCall) -> bool:
    """It added to `.grad` of all leaves that it met."""
    return call.accumulate_grad and call.inputs is None and call.outcome == "finished" and not call.create_graph


@table
def walked_before(record: Record) -> tuple[Repeated, ...]:
    """Roots that a call walked alone and a later call walked again as a part of its own root, with nothing between.

    An update or a read of `.grad` must use the sum: without one nobody is hurt.
    """
    found: list[Repeated] = []
    walks = _walks(record)
    waiting: deque[BackwardCall] = deque(maxlen=_WINDOW)
    for call in record.backward_calls:
        if not stores(call) or call.site is None:
            continue
        walk = walks[call.call]
        for first in [one for one in waiting if walk.holds(walks[one.call])]:
            if is_used_between(record, first, call):
                waiting.remove(first)
            elif _is_used_after(record, call):
                site = first.site if first.site is not None else call.site
                found.append(Repeated(call=call, site=site, term=walks[first.call].roots[0], first=first))
        if len(call.roots) == 1 and not call.roots[0].gradient_given and walk.roots:
            waiting.append(call)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """What a call is compared with others by.

    Attributes:
        roots: As of `_root_nodes`. ran: nodes that it executed.
        terms: The scalar terms of its root that are no sums themselves; empty where the root is no sum.
    """

    roots: list[int]
    ran: frozenset[int]
    terms: frozenset[int]

    def holds(self, first: _Walk) -> bool:
        """It walks the root of the first one, or a sum of all its terms, and more."""
        if first.roots == self.roots:
            return False
        return first.roots[0] in self.ran or (bool(first.terms) and self.terms > first.terms)


@table
def _walks(record: Record) -> dict[int, _Walk]:
    """By call: each is compared with all of the last ones."""
    terms, reached = _all_terms(record), reaches(record)
    return {
        call.call: _Walk(roots=_root_nodes(record, call), ran=reached[call.call].ran, terms=terms[call.call])
        for call in record.backward_calls
    }


@table
def _all_terms(record: Record) -> dict[int, frozenset[int]]:
    nodes = lookup(record).nodes
    return {
        call.call: frozenset(term for term in _summands(record, call) if op(nodes[term]) != "Add")
        for call in record.backward_calls
    }


def _root_nodes(record: Record, call: BackwardCall) -> list[int]:
    """The nodes that a call began at; of a root without a row, such as `sum(losses)`, the node that ran first."""
    known_roots = _roots_by_call(record)
    if call.call not in known_roots:
        known_roots[call.call] = _found_roots(record, call)
    return known_roots[call.call]


@table
def _roots_by_call(_: Record) -> dict[int, list[int]]:
    """What `_root_nodes` has found: a call is compared with each of the last ones."""
    return {}


def _found_roots(record: Record, call: BackwardCall) -> list[int]:
    known = [node for root in call.roots if (node := node_of(record, root.tensor)) is not None]
    if known or len(call.roots) != 1:
        return known
    ran = [row for row in lookup(record).passes_of_call[call.call] if row.position is not None]
    return [min(ran, key=lambda row: row.position or 0).node] if ran else []


def _is_used_after(record: Record, call: BackwardCall) -> bool:
    """An update used what the call brought, or the program read it."""
    leaves = reaches(record)[call.call].leaves
    read = any(row.tensor in leaves and row.moment >= call.moment_before for row in record.grad_reads)
    return bool(leaves) and (read or call.call in used_by_updates(record))


@table
def added_twice(record: Record) -> tuple[Repeated, ...]:
    """Scalar terms that two sums of different statements add into one root."""
    return tuple(one for call in record.backward_calls if stores(call) for one in _added_twice(record, call))


def _added_twice(record: Record, call: BackwardCall) -> Iterator[Repeated]:
    index = lookup(record)
    for term, sums in _summands(record, call).items():
        adds = sorted(sums, key=lambda node: index.nodes[node].seq or 0)
        sites = [index.nodes[node].site for node in adds]
        if len(adds) < 2 or sites[-1] is None or sites[0] is None or sites[-1] == sites[0]:
            continue
        weighted = any(sums.values())
        if weighted and site_of(record, sites[0]).function == site_of(record, sites[-1]).function:
            continue  # two weights of one term, written side by side, may be meant; across functions nobody sees both
        if call.call in used_by_updates(record):
            yield Repeated(call=call, site=sites[-1], term=term, adds=(adds[0], adds[-1]))


def _summands(record: Record, call: BackwardCall) -> dict[int, dict[int, bool]]:
    """The scalar terms of a call's root: term -> the sums that add it -> whether with a constant factor."""
    found: dict[int, dict[int, bool]] = {}
    waiting = [*_root_nodes(record, call)]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if node in seen or op(lookup(record).nodes[node]) != "Add":
            continue
        seen.add(node)
        for one in operands(record, node):
            if one is None or not _is_scalar(record, one):
                continue
            term, weighted = _without_factor(record, one)
            found.setdefault(term, {})[node] = weighted
            waiting.append(term)
    return found


def _without_factor(record: Record, node: int) -> tuple[int, bool]:
    """The node whose value a constant scales, and whether one does."""
    start = node
    while op(lookup(record).nodes[node]) in ("Mul", "Div"):
        tracked = [one for one in operands(record, node) if one is not None]
        if len(tracked) != 1 or not _is_scalar(record, tracked[0]):
            break
        node = tracked[0]
    return node, node != start


def _is_scalar(record: Record, node: int) -> bool:
    row = lookup(record).nodes[node]
    return row.variable is None and len(row.outputs) == 1 and row.outputs[0].shape == ()
