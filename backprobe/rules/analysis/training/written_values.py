"""Whether a statement that writes a leaf takes its gradient: itself, or by what its names were made from."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import last_name, parameters_of, target_names
from backprobe.rules.analysis.source.syntax import Tree, statement, tree_of, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site


def takes_gradient(record: Record, site: Site) -> bool:
    """What the statement writes may be made from a gradient; True where the source does not tell.

    Names are followed through the whole file, by assignments, loops, methods that are given something and arguments.
    """
    node = statement(record, site)
    if node is None or tree_of(record, site) is None:
        return True
    made, seen = _made_from(record)[site.source], set[str]()
    waiting = list(_written(node))
    while waiting:
        for part in ast.walk(waiting.pop()):
            name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
            if name == "grad":
                return True
            if name and name not in seen:
                seen.add(name)
                waiting += made.get(name, ())
    return False


def _written(node: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement that give the new value: not the tensor that it is written into."""
    match node:
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            yield value
        case ast.Expr(value=ast.Call() as call):
            above: ast.expr = call
            while isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute):
                yield from (*above.args, *above.keywords)
                above = above.func.value
            if not isinstance(call.func, ast.Attribute):
                yield call
        case _:
            yield node


@table
def _made_from(record: Record) -> dict[int, dict[str, list[ast.AST]]]:
    """By file and name: the expressions that went into it."""
    return {source: _of_file(tree) for source, tree in trees(record).items()}


def _of_file(tree: Tree) -> dict[str, list[ast.AST]]:
    found: defaultdict[str, list[ast.AST]] = defaultdict(list)
    parameters: defaultdict[str, list[str]] = defaultdict(list)
    calls: defaultdict[str, list[ast.Call]] = defaultdict(list)
    for node in tree.nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _put(found, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                _put(found, target, value)
            case ast.NamedExpr(target=target, value=value):
                _put(found, target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                _put(found, target, value)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
                _put(found, target, value)
            case ast.Call(func=func):
                calls[last_name(func)].append(node)
                found[_held(func)] += [*node.args, *node.keywords]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name].append(node)
                parameters[node.name] += parameters_of(node)
            case ast.Lambda():
                parameters[""] += [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            case _:
                pass
    unknown: ast.AST = ast.Name(id="grad", ctx=ast.Load())
    for function, names in parameters.items():
        given: list[ast.AST] = [*calls.get(function, ())] if function else []
        for name in names:
            found[name] += given or [unknown]  # where no call is seen, anything may be given
    return found


def _put(found: defaultdict[str, list[ast.AST]], target: ast.expr, value: ast.expr) -> None:
    """The value went into each name that the target binds, and into the object that holds its element or attribute."""
    for name in {*target_names(target), *(part.attr for part in ast.walk(target) if isinstance(part, ast.Attribute))}:
        found[name].append(value)


def _held(func: ast.expr) -> str:
    """`v` of the methods in `v.mul_(0.9).add_(g)`, `total` of that in `self.total[0].add_`."""
    node = func.value if isinstance(func, ast.Attribute) else None
    while isinstance(node, ast.Subscript | ast.Call):
        inner = node.func if isinstance(node, ast.Call) else node.value
        node = inner.value if isinstance(node, ast.Call) and isinstance(inner, ast.Attribute) else inner
    return last_name(node) if node is not None else ""
