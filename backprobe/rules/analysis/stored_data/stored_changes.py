"""Which name's tensor a statement changes in place, and whether it changes more each time it runs.

x += noise;  return x.add_(noise), noise;  img[:, r : r + 5] = 0.0;  F.dropout(x, 0.1, inplace=True)
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.handed_arguments import all_handed_in
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.scopes import Function, root_name, scope_of, target_names
from backprobe.rules.analysis.source.syntax import method_called, parts_of, site_of, statement_at, tree_of, value_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backprobe.record import Record
    from backprobe.rules.analysis.source.syntax import Tree

RANDOM: Final = (
    "rand",
    "normal",
    "bernoulli",
    "uniform",
    "multinomial",
    "choice",
    "sample",
    "permut",
    "binom",
    "gauss",
)
"""How functions begin whose result is drawn."""
_SETS: Final = frozenset({"copy_", "fill_", "zero_", "set_", "normal_", "uniform_", "bernoulli_", "random_"})
"""Methods whose result does not depend on what was there."""
_AT_ONCE: Final = frozenset(
    {"clamp_", "clip_", "clamp_min_", "clamp_max_", "abs_", "relu_", "sign_", "round_", "floor_", "ceil_", "trunc_"}
) | {"nan_to_num_", "requires_grad_", "share_memory_", "detach_"}
"""Methods that change nothing the second time."""
_AT_PLACES: Final = frozenset({"masked_fill_", "index_fill_", "masked_scatter_", "index_copy_"})
"""Methods that write what does not depend on what was there, where their first arguments say."""
_IN_PLACE: Final = frozenset({"dropout", "alpha_dropout", "dropout1d", "dropout2d", "normalize", "erase"})
"""Functions with an argument `inplace`, by which they change more each time."""
_DEPTH: Final = 6
"""Assignments that are followed to what was drawn."""


def changed_name(node: ast.stmt | None) -> str:
    """The plain name whose tensor a statement changes in place; "" if it is no plain name."""
    target = _written(node)
    if target is not None:
        held = target.value if isinstance(target, ast.Subscript) else target
        return held.id if isinstance(held, ast.Name) else ""
    for call in _calls(node):
        if isinstance(call.func, ast.Attribute) and _is_method(call.func.attr):
            return root_name(call)
        if call.args and isinstance(call.args[0], ast.Name):
            return call.args[0].id
    return ""


def changes_more(record: Record, site: int) -> bool:
    """Each run of the statement changes what the one before left, other than a write of the same to the same place."""
    node = statement_at(record, site)
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Assign) and _written(node) is not None:
        return writes_by_chance(record, site)
    called = {method_called(call) or "" for call in _calls(node)} - _AT_ONCE
    if called & _AT_PLACES and not writes_by_chance(record, site):
        called -= _AT_PLACES
    return bool(called) and not called & _SETS


def fills_anew(record: Record, site: int) -> bool:
    """The statement writes what does not depend on what was there, at elements that were not drawn."""
    node = statement_at(record, site)
    if isinstance(node, ast.Assign) and isinstance(_written(node), ast.Subscript):
        return not writes_by_chance(record, site)
    return any(method_called(call) in _SETS for call in _calls(node))


def writes_by_chance(record: Record, site: int) -> bool:
    """The statement writes elements that were drawn: `x[mask] = 0`, `x.masked_fill_(mask, 0)` with a random mask."""
    known = _by_chance(record)
    if site not in known:
        node = statement_at(record, site)
        target = _written(node)
        parts: list[ast.expr] = []
        if isinstance(node, ast.Assign) and isinstance(target, ast.Subscript):
            parts = [target.slice]
        elif target is None:
            parts = [one for call in _calls(node) if method_called(call) in _AT_PLACES for one in call.args[:2]]
        own = _taken_of(record, site, changed_name(node)) if parts else set[tuple[int, str]]()
        known[site] = any(_is_drawn(record, site, one, own) for one in parts)
    return known[site]


@table
def _by_chance(_record: Record) -> dict[int, bool]:
    """What `writes_by_chance` has found, by statement."""
    return {}


def is_handed_out(function: ast.AST, name: str) -> bool:
    """What a function returns or yields is made of the name: a count that it keeps beside is not."""
    out: set[str] = set()
    for part in ast.walk(function):
        if isinstance(part, ast.Return | ast.Yield) and part.value is not None:
            out |= _names(part.value)
    made = [(set(target_names(target)), _names(value)) for target, value, _by in _assigned(function)]
    for _ in range(_DEPTH):
        more = {one for targets, read in made if targets & out for one in read}
        if more <= out:
            break
        out |= more
    return name in out


def _written(node: ast.stmt | None) -> ast.expr | None:
    """What `x += y`, `x[i] += y` or `x[i] = y` writes to; None for a statement of another form."""
    if isinstance(node, ast.AugAssign):
        return node.target
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0]
    return None


def _calls(node: ast.stmt | None) -> list[ast.Call]:
    """The calls of a statement that change something in place, the outermost first."""
    calls = (part for part in parts_of(value_of(node)) if isinstance(part, ast.Call))
    return [one for one in calls if _is_method(method_called(one) or "") or _is_told(one)]


def _is_method(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _is_told(call: ast.Call) -> bool:
    """`dropout(x, 0.1, inplace=True)`."""
    told = any(
        one.arg == "inplace" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in call.keywords
    )
    return told and method_called(call) in _IN_PLACE


def _is_drawn(record: Record, site: int, part: ast.expr, seen: set[tuple[int, str]]) -> bool:
    """A value is drawn anew each time: by the assignments of its function, or by what the function is given.

    Args:
        seen: Names that are known not to be, by the number of their function.
    """
    if _draws(part):
        return True
    row, node = site_of(record, site), statement_at(record, site)
    tree = tree_of(record, row)
    if node is None or tree is None:
        return False
    function = scope_of(tree, node)
    for name in _names(part):
        if (id(function), name) in seen or len(seen) > _DEPTH * _DEPTH:
            continue
        seen.add((id(function), name))
        made = [one for one in _assigned(function) if name in set(target_names(one[0]))]
        if any(_is_drawn(record, site, value, seen) for _target, value, by in made if _runs_with(tree, node, by)):
            return True
        given = () if made or not isinstance(function, Function) else all_handed_in(record, row, name)
        if any(_is_drawn(record, one.site.site, one.part, seen) for one in given):
            return True
        held = [] if made or given else bindings_named(record).get(name, [])
        born = {lookup(record).tensors[one.tensor].site for one in held if one.function == row.function}
        several = len({one.tensor for one in held}) > 1
        if several and any(_draws(value_of(statement_at(record, one))) for one in born if one is not None):
            return True
    return False


def _runs_with(tree: Tree, node: ast.stmt, other: ast.AST) -> bool:
    """A statement of the same function runs anew for each run of the first: what is drawn before a loop stays."""
    function = scope_of(tree, node)
    loops = [one for one in takewhile(lambda above: above is not function, tree.ancestors(node)) if _is_loop(one)]
    return not loops or any(one in loops for one in tree.ancestors(other))


def _is_loop(node: ast.AST) -> bool:
    return isinstance(node, ast.For | ast.While)


def _taken_of(record: Record, site: int, name: str) -> set[tuple[int, str]]:
    """The name whose tensor is changed, and those that it is taken of: what the data say is not drawn."""
    row, node = site_of(record, site), statement_at(record, site)
    tree = tree_of(record, row)
    if node is None or tree is None:
        return set()
    function, found = scope_of(tree, node), {name}
    for _ in range(_DEPTH):
        found |= {
            one
            for target, value, _by in _assigned(function)
            if found & set(target_names(target))
            for one in _names(value)
        }
    return {(id(function), one) for one in found}


def _draws(part: ast.AST | None) -> bool:
    return any((method_called(one) or "").startswith(RANDOM) for one in parts_of(part))


def _assigned(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr, ast.AST]]:
    """What each assignment and loop of a function binds, from what, and the node that does."""
    for part in ast.walk(function):
        if isinstance(part, ast.Assign):
            yield from ((one, part.value, part) for one in part.targets if not isinstance(one, ast.Attribute))
        elif isinstance(part, ast.NamedExpr | ast.AugAssign | ast.AnnAssign):
            if part.value is not None:
                yield part.target, part.value, part
        elif isinstance(part, ast.For):
            yield part.target, part.iter, part


def _names(part: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
