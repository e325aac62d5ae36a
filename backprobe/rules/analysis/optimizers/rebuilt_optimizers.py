"""Optimizers that one statement builds anew, each time around one pass over the same data: an epoch, not a phase."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import target_names
from backprobe.rules.analysis.source.syntax import method_called, site_at, site_of, statement_at, tree_of
from backprobe.rules.analysis.training.enclosing_loops import Loop, called_from, enclosing_loops

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record

_BY_PHASE: Final = "LBFGS"
"""A method that is run to its end on one loss: it is built for each."""
_LENGTHS: Final = frozenset({"len", "size", "numel"})


def is_once_an_epoch(record: Record, found: list[Optimizer], steps: dict[int, list[OptimizerEvent]]) -> bool:
    """Each makes several steps, in one loop over data inside of the loop that builds them; nothing resets between."""
    built, step = found[0].site, steps[found[0].optimizer][0].site
    if found[0].cls == _BY_PHASE or built is None or step is None:
        return False
    if any(len(steps[one.optimizer]) < 2 or steps[one.optimizer][0].site != step for one in found):
        return False
    outside, around = enclosing_loops(record, built), enclosing_loops(record, step)
    if not outside or around is None or around[1:] != outside:
        return False
    written, inner = statement_at(record, built), around[0]
    if isinstance(inner, ast.While) or not _is_over_batches(inner):
        return False
    if written is None or _is_over_tasks(outside[0], inner, written):
        return False
    return not _is_reset(record, found, steps)


def is_once_an_update(record: Record, found: list[Optimizer], steps: dict[int, list[OptimizerEvent]]) -> bool:
    """Each makes the few steps of one call of a function that a loop calls again and again; nothing resets between.

    An optimizer that is kept in an attribute was to outlive the call: of others, fewer steps are a phase.
    """
    built, step = found[0].site, steps[found[0].optimizer][0].site
    if found[0].cls == _BY_PHASE or built is None or step is None:
        return False
    kept = any("." in name for name in site_of(record, built).targets)
    most, least = (_FEW_KEPT, _UPDATES) if kept else (_FEW, _UPDATES + 1)
    if len(found) < least or any(not 2 <= len(steps[one.optimizer]) <= most for one in found):
        return False
    outside, around = enclosing_loops(record, built), enclosing_loops(record, step)
    written, tree = statement_at(record, built), tree_of(record, site_of(record, built))
    if not outside or around is None or around[1:] != outside or written is None or tree is None:
        return False
    if outside[0] in tree.ancestors(written) or isinstance(around[0], ast.While):
        return False
    return not _is_over_tasks(outside[0], around[0], written) and not _is_reset(record, found, steps)


_UPDATES: Final = 5
"""Updates that each built one: fewer may be stages."""
_FEW: Final = 4
_FEW_KEPT: Final = 10
"""Steps of one update; more may be a phase that is run to its end."""


def place_of_rebuild(record: Record, built: int, step: int) -> int:
    """The statement that builds it anew: of a function that only builds, the one that calls it beside the steps."""
    here, stepping = site_of(record, built), site_of(record, step)
    call = called_from(record, built) if here.function != stepping.function else None
    place = None if call is None else site_at(record, call)
    if place is None or place.function != stepping.function:
        return built
    return place.site


def _is_over_batches(loop: ast.For | ast.AsyncFor) -> bool:
    """Not `for step in range(100)`, which may be a phase of any length."""
    call = loop.iter
    if isinstance(call, ast.Call) and method_called(call) == "range" and len(call.args) == 1:
        parts = list(ast.walk(call.args[0]))
        return any(method_called(one) in _LENGTHS or getattr(one, "attr", "") == "shape" for one in parts)
    return True


def _is_over_tasks(outer: Loop, inner: ast.For | ast.AsyncFor, written: ast.stmt) -> bool:
    """What the outer loop goes over gives data, or chooses it: each turn is a task, a fold or a client of its own."""
    if isinstance(outer, ast.While):
        return False
    handed = set(target_names(outer.target))
    is_count = method_called(outer.iter) in ("range", "count", "trange")
    own = {id(part) for part in ast.walk(written)}
    used = [one for one in ast.walk(outer) if isinstance(one, ast.Name) and one.id in handed and id(one) not in own]
    if is_count:
        chosen = {
            part.id for one in _parts(outer, ast.Subscript) for part in ast.walk(one) if isinstance(part, ast.Name)
        }
        return bool(chosen & handed)
    chosen = {part.id for part in ast.walk(inner.iter) if isinstance(part, ast.Name)}
    places = {id(part) for one in _parts(outer, ast.Call) if method_called(one) == "print" for part in ast.walk(one)}
    first = {id(part) for part in ast.walk(outer.target)}
    return bool(chosen & handed) or any(id(one) not in places and id(one) not in first for one in used)


def _parts(node: ast.AST, kind: type[ast.AST]) -> Iterator[ast.AST]:
    return (part for part in ast.walk(node) if isinstance(part, kind))


def _is_reset(record: Record, found: list[Optimizer], steps: dict[int, list[OptimizerEvent]]) -> bool:
    """Between two of them, the program writes a parameter by itself, or loads the state of the optimizer before."""
    numbers = {one.optimizer for one in found}
    if any(row.kind == "load_state_dict" and row.optimizer in numbers for row in record.optimizer_events):
        return True
    first, last = steps[found[0].optimizer][0].moment, steps[found[-1].optimizer][-1].moment
    index = lookup(record).inplace_of
    rows = (event for one in found[0].tensors for event in index[one.tensor])
    return any(first < event.moment <= last and event.done_by != "optimizer" for event in rows)
