"""States of modules that a program keeps, and where it reads them when training has gone on."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import Function, last_name, scope_of
from backprobe.rules.analysis.source.syntax import Tree, method_called, parts_of, site_of, statement_at, tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site


def read_after_training(record: Record, site: Site) -> ast.stmt | None:
    """The statement behind the training that reads what this one keeps: the best state, or the one before training.

    A state that is taken in each turn, or behind the last step, is what it should be.
    """
    node, tree = statement_at(record, site.site), tree_of(record, site)
    if not isinstance(node, ast.Assign) or tree is None or not _is_state(record, node.value):
        return None
    target = kept_in(record, node)
    scope = scope_of(tree, node)
    steps = [
        (place, event.moment)
        for event in record.optimizer_events
        if event.kind == "step" and event.site is not None and (place := site_of(record, event.site))
    ]
    runs = [row.moment for row in record.moments if row.site == site.site]
    loops = [one for one in _inside(tree, node, scope) if isinstance(one, ast.For | ast.While)]
    since = kept_since(tree, node, runs) if runs else None
    later = [place for place, moment in steps if since is not None and moment > since and place.source == site.source]
    if target is None or not later or (loops and not _conditions(tree, node)):
        return None
    end = max(one.end_lineno or 0 for one in loops) if loops else max(place.end_line for place in later)
    if not loops and min(place.line for place in later) < site.line:
        return None
    for part in ast.walk(scope):
        if isinstance(part, ast.Name) and part.id == target and part.lineno > end and _takes_values(tree, part):
            reader = next((one for one in tree.ancestors(part) if isinstance(one, ast.stmt)), None)
            calls = {method_called(one) for one in parts_of(reader)}
            return None if "load_state_dict" in calls or not _rebound_once(scope, target, node) else reader
    return None


def kept_since(tree: Tree, node: ast.stmt, runs: list[int]) -> int:
    """The moment whose state the name is meant to hold, of those at which the statement ran.

    Of a running best, the first: which turn is the best is chance, so that the last may be. Else the last: what is
    bound in every turn, or in chosen ones, is the state of its last turn, and right where no step follows.
    """
    return runs[0] if any(_is_running_best(tree, one) for one in _conditions(tree, node)) else runs[-1]


def _inside(tree: Tree, node: ast.AST, scope: ast.AST) -> list[ast.AST]:
    """The nodes around a node within its function, innermost first."""
    return list(itertools.takewhile(lambda one: one is not scope, tree.ancestors(node)))


def _conditions(tree: Tree, node: ast.AST) -> list[ast.If]:
    """The `if` statements that choose the turns in which a node runs.

    Those within its outermost loop: one around the loop chooses no turn. In a function without a loop around the node,
    which a loop may call, all of them, and one before it in its block that returns.
    """
    scope = scope_of(tree, node)
    around = _inside(tree, node, scope)
    last = max((place for place, one in enumerate(around) if isinstance(one, ast.For | ast.While)), default=-1)
    if last < 0 and isinstance(scope, Function):
        above = [one for one in scope.body if one.lineno < getattr(node, "lineno", 0) and isinstance(one, ast.If)]
        return [*(one for one in around if isinstance(one, ast.If)), *(one for one in above if _leaves(one))]
    return [one for one in around[: last + 1] if isinstance(one, ast.If)]


def _leaves(condition: ast.If) -> bool:
    return isinstance(condition.body[-1], ast.Return)


def _is_running_best(tree: Tree, condition: ast.If) -> bool:
    """It orders a value against what earlier turns left: a name that it sets anew, or the least or most of several.

    A flag stands for the comparison that it was given. What is set from the loop's own counter is a period. Without a
    loop in the function, what outlives a call of it: an attribute or an element.
    """
    scope = scope_of(tree, condition)
    loop = next((one for one in _inside(tree, condition, scope) if isinstance(one, ast.For | ast.While)), scope)
    given = [one for one in ast.walk(loop) if isinstance(one, ast.Assign)]
    flags = {part.id for part in ast.walk(condition.test) if isinstance(part, ast.Name)}
    behind = [one.value for one in given if any(isinstance(to, ast.Name) and to.id in flags for to in one.targets)]
    tests = [part for one in (condition.test, *behind) for part in ast.walk(one) if isinstance(part, ast.Compare)]
    ordered = [one for one in tests if any(isinstance(sign, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for sign in one.ops)]
    counters = _places(loop.target) if isinstance(loop, ast.For) else set[str]()
    kept = {
        name
        for one in given
        if not _places(one.value) & counters
        for target in one.targets
        for name in _places(target)
        if _within(tree, one, condition) or _leaves(condition) or name in _places(one.value)
        if loop is not scope or not name.isidentifier()
    }
    return any(_places(one) & kept or (loop is not scope and _least_or_most(one)) for one in ordered)


def _places(node: ast.AST) -> set[str]:
    """The names, attributes and elements in an expression, as they are written."""
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)}


def _within(tree: Tree, node: ast.AST, above: ast.AST) -> bool:
    return any(one is above for one in tree.ancestors(node))


def _least_or_most(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) and last_name(part.func) in ("min", "max") for part in ast.walk(node))


def _is_state(record: Record, value: ast.expr) -> bool:
    """`model.state_dict()`, or a dict of it, which holds the same tensors."""
    if isinstance(value, ast.Tuple):
        return any(_is_state(record, one) for one in value.elts)
    if isinstance(value, ast.Call) and last_name(value.func) in ("dict", "OrderedDict") and len(value.args) == 1:
        return _is_state(record, value.args[0])
    if not isinstance(value, ast.Call) or method_called(value) != "state_dict" or value.args:
        return False
    return isinstance(value.func, ast.Attribute) and ast.unparse(value.func.value) in _modules(record)


_OF_KEYS = frozenset({"sorted", "len", "list", "set", "tuple", "iter", "enumerate", "print"})


def _takes_values(tree: Tree, part: ast.Name) -> bool:
    """What is read there are the tensors, not the names alone."""
    above = tree.parents.get(part)
    if isinstance(above, ast.Subscript):
        return above.value is part and isinstance(part.ctx, ast.Load)
    if isinstance(above, ast.Attribute):
        return above.attr in ("values", "items", "get")
    return isinstance(above, ast.Call) and part in above.args and last_name(above.func) not in _OF_KEYS


@table
def _modules(record: Record) -> frozenset[str]:
    """What the program calls its modules."""
    named = {str(row.arguments.get("name")) for row in record.watched_calls if row.function == "="}
    return frozenset(named | {row.binding for row in record.modules if row.binding})


def kept_in(record: Record, node: ast.Assign) -> str | None:
    """The one name that the state is bound to."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        found = [one for one, given in zip(target.elts, value.elts, strict=True) if _is_state(record, given)]
        target = found[0] if found else target
    return target.id if isinstance(target, ast.Name) else None


def _rebound_once(scope: ast.AST, name: str, node: ast.Assign) -> bool:
    """No other statement gives the name a value, but a constant to begin with."""
    for one in ast.walk(scope):
        if isinstance(one, ast.Assign) and one is not node:
            flat = [part for target in one.targets for part in ast.walk(target)]
            gives = any(isinstance(part, ast.Name) and part.id == name for part in flat)
            if gives and any(_is_method(part) for part in ast.walk(one.value)):
                return False
    return True


def _is_method(part: ast.AST) -> bool:
    """A dict that is made anew, or what a method gave."""
    called = part.func if isinstance(part, ast.Call) else None
    return isinstance(part, ast.DictComp) or isinstance(called, ast.Attribute)
