"""What the terms of a loss were made of: their tensors with a history, and the leaves that they train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.graph.walks import node_of
from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.modules.training_modes import called_modules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.analysis.terms.terms import PRODUCTS, SUMS
from backprobe.rules.analysis.training.steps import state_at

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.analysis.terms.terms import Term

_DETACHED: Final = frozenset({"detach", "data", "item", "float", "cpu", "tolist", "numpy"})

_MOST: Final = 200
"""Operations that one term is followed through."""


def linear_sources(record: Record, term: Term) -> tuple[set[int], set[int], list[Operation]]:
    """The tensors that require grad which sums, scalings and detaching alone lead from to an untracked term.

    And the tensors without a history that lie between, and the operations at which such a way ends: an exponential, a
    square.
    """
    found: set[int] = set()
    passed: set[int] = set() if term.tensor is None else {term.tensor}
    bent: list[Operation] = []
    waiting: list[int | Operation] = [one for one in (term.operation or term.tensor,) if one is not None]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        if isinstance(one, int):
            state = state_at(record, one, term.call.moment_before)
            if state is not None and state.requires_grad:
                found.add(one)
                continue
            passed.add(one)
            made = made_by(record).get(one)
            if made is None:
                continue
            one = made
        if one.operation in seen:
            continue
        seen.add(one.operation)
        name = one.function.rpartition(".")[2]
        if name not in SUMS and name not in PRODUCTS and name not in _DETACHED:
            bent.append(one)
            continue
        known = operations_by_number(record)
        waiting += [*one.operands, *(known[inner] for inner in one.inner if inner in known)]
    return found, passed, bent


def trained_by(record: Record, value: int | Operation | None) -> frozenset[int]:
    """The leaves that a gradient of a value goes on to; empty where that is not known."""
    known, index = operations_by_number(record), lookup(record)
    waiting: list[int | Operation] = [] if value is None else [value]
    found: set[int] = set()
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        if isinstance(one, int):
            made = node_of(record, one)
            history = index.snapshots_of[one]
            if made is not None:
                found |= leaves_behind(record, made)
            elif history and history[-1].is_leaf and history[-1].requires_grad:
                found.add(one)
            continue
        if one.operation not in seen:
            seen.add(one.operation)
            found |= _held_by_called(record, one)
            waiting += [*one.operands, *(known[inner] for inner in one.inner if inner in known)]
    return frozenset(found)


def _held_by_called(record: Record, made: Operation) -> set[int]:
    """The parameters of the modules that an operation calls."""
    node = expression_of(record, made)
    numbers = called_modules(record).get(node, frozenset()) if node is not None else frozenset[int]()
    rows = (one for number in numbers for one in modules_by_number(record)[number].parameters)
    tensors = (one.tensor for one in rows if one.tensor is not None)
    return {one for one in tensors if (was := state_at(record, one, made.moment or 0)) and was.requires_grad}


def takes_tracked(record: Record, made: Operation) -> bool:
    """Something with a history went into an operation, be it that its history was cut on the way."""
    known, makers = operations_by_number(record), made_by(record)
    waiting, seen = [made], set[int]()
    while waiting and len(seen) < _MOST:
        row = waiting.pop()
        if row.operation in seen:
            continue
        seen.add(row.operation)
        for one in row.operands:
            state = state_at(record, one, row.moment or 0)
            if state is not None and state.requires_grad:
                return True
            waiting += [makers[one]] if one in makers else []
        inner = [known[one] for one in row.inner if one in known]
        if any(one.requires_grad for one in inner):
            return True
        waiting += inner
    return False


def may_have_had_history(record: Record, tensor: int) -> bool:
    """Something with a history went into a tensor, or something unknown, as a distribution that it was drawn from.

    What a program makes of numbers, or gets from a loader, is data: it never had one.
    """
    known, makers, index = operations_by_number(record), made_by(record), lookup(record)
    waiting: list[int | Operation] = [tensor]
    seen = set[tuple[bool, int]]()
    while waiting and len(seen) < _MOST:
        one = waiting.pop()
        key = (True, one) if isinstance(one, int) else (False, one.operation)
        if key in seen:
            continue
        seen.add(key)
        if isinstance(one, int):
            if one != tensor and any(row.requires_grad for row in index.snapshots_of[one]):
                return True
            made = makers.get(one)
            waiting += (
                [parent for row in index.bindings_of[one][:1] for parent in row.parents] if made is None else [made]
            )
        elif one.requires_grad or not one.complete:
            return True
        elif one.operands or one.inner:
            waiting += [*one.operands, *(known[inner] for inner in one.inner if inner in known)]
        elif not one.function.startswith("torch."):
            return True
    return bool(waiting)
