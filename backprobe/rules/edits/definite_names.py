"""Whether a name is bound wherever the flow of a function comes to it, as far as the syntax tells.

1. The bodies of loops count as run, of an `if` both branches must bind, of a `try` its body need not.
2. A function's names are looked up when it is called: those of the module are bound if the module binds them anywhere.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from backprobe.rules.analysis.source.scopes import Function, parameters_of

_BUILTINS: Final = frozenset(dir(builtins)) | {"__file__"}
_EVERYWHERE: Final = "*"
"""What `from module import *` binds."""

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def is_bound(name: ast.Name, parents: dict[ast.AST, ast.AST]) -> bool:
    """The name is bound whenever its expression is evaluated; a `lambda` may be called where it stands."""
    if name.id in _BUILTINS:
        return True
    node: ast.AST = name
    is_own = True
    while (above := parents.get(node)) is not None:
        if name.id in _given_to(above):
            return True
        if isinstance(above, Function | ast.Module | ast.ClassDef) and node in above.body:
            binds = _bound_in(above) if is_own or not isinstance(above, ast.ClassDef) else set[str]()
            if _EVERYWHERE in binds:
                return True
            if name.id in binds:
                return not is_own or _is_bound_before(name, above, parents)
            is_own = False
        node = above
    return False


def _given_to(node: ast.AST) -> Collection[str]:
    """The names that hold in a function, a `lambda` or a comprehension from its start."""
    if isinstance(node, Function):
        return parameters_of(node)
    if isinstance(node, ast.Lambda):
        return [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
    return [name for part in getattr(node, "generators", ()) for name in _stored(part.target)]


def _bound_in(scope: _Scope) -> set[str]:
    """The names that a scope binds itself; what it declares global is the module's."""
    found: set[str] = set()
    declared: set[str] = set()
    for node in _of_scope(scope.body):
        found |= bound_by(node)
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
    if isinstance(scope, ast.Module):
        declared = set()
        found |= {name for node in ast.walk(scope) if isinstance(node, ast.Global) for name in node.names}
    return found - declared


def _of_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Nodes and what stands below them, without what binds in another scope: functions, targets of comprehensions."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.comprehension):
            waiting += [node.iter, *node.ifs]
        elif not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def bound_by(node: ast.AST) -> set[str]:
    """The names that one node binds, without those that are bound below it."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Store) else set()
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {_EVERYWHERE if one.name == "*" else (one.asname or one.name).partition(".")[0] for one in node.names}
    if isinstance(node, Function | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return {node.name} if node.name else set()
    return {node.rest} if isinstance(node, ast.MatchMapping) and node.rest else set()


def _stored(target: ast.AST) -> set[str]:
    return {name for part in ast.walk(target) for name in bound_by(part)}


def _is_bound_before(name: ast.Name, scope: _Scope, parents: dict[ast.AST, ast.AST]) -> bool:
    """A statement on every way from the start of a scope to a name binds it."""
    node: ast.AST = name
    while node is not scope:
        above = parents[node]
        if isinstance(above, ast.For | ast.AsyncFor) and node in above.body and name.id in _stored(above.target):
            return True
        if isinstance(above, ast.With | ast.AsyncWith) and node in above.body and name.id in _of_items(above):
            return True
        if isinstance(above, ast.ExceptHandler) and above.name == name.id:
            return True
        if isinstance(above, ast.match_case) and name.id in _stored(above.pattern):
            return True
        if isinstance(node, ast.stmt):
            for block in _blocks(above):
                if node in block and name.id in _after(block[: block.index(node)]):
                    return True
        node = above
    return False


def _of_items(node: ast.With | ast.AsyncWith) -> set[str]:
    return {name for item in node.items if item.optional_vars is not None for name in _stored(item.optional_vars)}


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block


def _after(block: Sequence[ast.stmt]) -> set[str]:
    """The names that are bound when a block has run to its end."""
    found: set[str] = set()
    for node in block:
        found |= _after_one(node)
        if isinstance(node, ast.Delete):
            found -= {part.id for part in node.targets if isinstance(part, ast.Name)}
    return found


def _after_one(node: ast.stmt) -> set[str]:
    head = {name for one in _of_scope(head_of(node)) for name in bound_by(one)}
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return set()
    if isinstance(node, Function | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.If):
        return head | _after_both([node.body, node.orelse])
    if isinstance(node, ast.Match):
        return head | _after_both([case.body for case in node.cases])
    if isinstance(node, ast.For | ast.AsyncFor):
        return head | _stored(node.target) | _after(node.body)
    if isinstance(node, ast.While):
        return head | _after(node.body)
    if isinstance(node, ast.With | ast.AsyncWith):
        return head | _of_items(node) | _after(node.body)
    if isinstance(node, ast.Try | ast.TryStar):
        ways = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
        return _after_both(ways) | _after(node.finalbody)
    return head


def _after_both(blocks: Sequence[Sequence[ast.stmt]]) -> set[str]:
    """The names that every block binds that can run to its end."""
    ends = [_after(block) for block in blocks if not _leaves(block)]
    return set[str].intersection(*ends) if ends else set()


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def head_of(node: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates when it is reached."""
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.iter]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [item.context_expr for item in node.items]
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, Function):
        return [*node.decorator_list, *node.args.defaults]
    if isinstance(node, ast.ClassDef):
        return [*node.decorator_list, *node.bases]
    return [] if isinstance(node, ast.Try | ast.TryStar) else [node]
