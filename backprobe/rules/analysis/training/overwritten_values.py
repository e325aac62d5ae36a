"""Values that a container takes in turn by turn, although they are one memory that was written in between.

for x in batches:
    self.state += f(x)  # the write
    path.append(self.state)  # every element is the last state
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.retained_values import executions
from backprobe.rules.analysis.modules.second_names import held_by, module_names
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.scopes import Function, last_name, names, scope_of
from backprobe.rules.analysis.source.syntax import Tree, method_called, statement, tree_of
from backprobe.rules.analysis.tensors.collected_values import stored
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record, Site

LEAST: Final = 2
"""Times that a kept value was overwritten before the next one was kept: once may be a correction."""
_FEW: Final = 40
"""Turns of a statement that are compared."""
_SAME_MEMORY: Final = frozenset({"detach", "data", "cpu", "numpy", "squeeze"})
"""Methods that hand on the memory of their tensor; `cpu()` of one that is there."""
_GIVE_BACK: Final = frozenset({"pop", "popleft", "popitem", "clear", "remove"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwritten:
    """A statement that keeps one memory again and again.

    Attributes:
        kept: The expression that is kept, as written; container: what takes it in.
        site: The statement that takes it in; taken: the one that first met what is kept, if that is another.
        tensors: What was kept. writes: the changes between, in order.
    """

    kept: str
    container: str
    site: int
    taken: int | None
    tensors: tuple[int, ...]
    writes: tuple[InplaceEvent, ...]


@table
def overwritten_values(record: Record) -> tuple[Overwritten, ...]:
    """All of them, one for each statement."""
    found = (_overwritten(record, site) for site in record.sites if record.inplace_events)
    return tuple(one for one in found if one is not None)


def _overwritten(record: Record, site: Site) -> Overwritten | None:
    node, tree = statement(record, site), tree_of(record, site)
    held = stored(node) if site.kind in ("call", "inplace") else None
    if node is None or tree is None or held is None or not isinstance(held[0], ast.Name | ast.Attribute):
        return None
    loop = _loop_that_fills(tree, node, held[0])
    if loop is None or not _is_read(record, site, node, held[0]):
        return None
    for part in _elements(held[1]):
        one = _kept(record, site, loop, part, ast.unparse(held[0]))
        if one is not None:
            return one
    return None


def _elements(value: ast.expr) -> Iterator[ast.expr]:
    """What is kept as it is: the value itself, or the elements of a tuple, list or dict."""
    if isinstance(value, ast.Tuple | ast.List):
        for one in value.elts:
            yield from _elements(one)
    elif isinstance(value, ast.Dict):
        for one in value.values:
            yield from _elements(one)
    else:
        yield value


def _kept(record: Record, site: Site, loop: ast.AST, part: ast.expr, container: str) -> Overwritten | None:
    turns: list[tuple[int, dict[int, int]]] = [
        (moment, {_memory(record, one): one for one in _tensors(record, site, part, moment)})
        for moment in executions(record).get(site.site, [])[:_FEW]
    ]
    borders, writes = _outside(record, site, loop), list["InplaceEvent"]()
    tensors: dict[int, None] = {}
    overwritten = 0
    for (before, kept), (after, again) in pairwise(turns):
        if bisect_right(borders, before) != bisect_left(borders, after):
            continue
        same = [memory for memory in kept if memory in again and memory >= 0]
        changed = [event for memory in same for event in _writes(record, memory, before, after)]
        if same and changed and _same_place(record, kept[same[0]], again[same[0]]):
            overwritten += 1
            writes += changed[:1]
            tensors |= dict.fromkeys((kept[same[0]], again[same[0]]))
    if overwritten < LEAST:
        return None
    first = lookup(record).tensors[next(iter(tensors))]
    is_alias = first.created_by != "user" and first.fqn is None and first.site != site.site
    return Overwritten(
        kept=ast.unparse(part), container=container, site=site.site, taken=first.site if is_alias else None,
        tensors=tuple(tensors), writes=tuple(writes),
    )  # fmt: skip


def _memory(record: Record, tensor: int) -> int:
    storage = lookup(record).tensors[tensor].storage
    return -1 if storage is None else storage


def _same_place(record: Record, one: int, other: int) -> bool:
    first, second = lookup(record).tensors[one], lookup(record).tensors[other]
    return (first.storage_offset, first.shape) == (second.storage_offset, second.shape)


def _tensors(record: Record, site: Site, part: ast.expr, moment: int) -> list[int]:
    """What the expression held: a tensor, the values of a dict of tensors, or the state of a module."""
    while True:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _SAME_MEMORY:
            part = part.func.value
        elif isinstance(part, ast.Attribute) and part.attr in _SAME_MEMORY:
            part = part.value
        else:
            break
    if isinstance(part, ast.Call) and method_called(part) == "state_dict" and isinstance(part.func, ast.Attribute):
        return _state(record, ast.unparse(part.func.value))
    if not isinstance(part, ast.Name | ast.Attribute):
        return []
    name = ast.unparse(part)
    own = tensor_named(record, name, site, moment)
    if own is not None:
        return [own]
    found: dict[str, int] = {}
    for row in _elements_named(record).get((name, site.function), ()):
        if row[0] <= moment:
            found[row[1]] = row[2]
    return list(found.values())


def _state(record: Record, name: str) -> list[int]:
    """The parameters of the module with this name, if it is one."""
    modules = {module for module, rows in module_names(record).items() if any(row.name == name for row in rows)}
    modules |= {row.module for row in record.modules if row.binding == name}
    return sorted(held_by(record, next(iter(modules)))) if len(modules) == 1 else []


@table
def _elements_named(record: Record) -> dict[tuple[str, str], list[tuple[int, str, int]]]:
    """The elements that a name of a function was bound with: moment, name and tensor."""
    found: defaultdict[tuple[str, str], list[tuple[int, str, int]]] = defaultdict(list)
    for name, rows in bindings_named(record).items():
        root, bracket, _rest = name.partition("['")
        for row in rows if bracket else ():
            found[root, row.function].append((row.moment, name, row.tensor))
    return {key: sorted(rows) for key, rows in found.items()}


@table
def _events_in(record: Record) -> dict[int, list[InplaceEvent]]:
    """The changes in place of each memory, in order."""
    found: defaultdict[int, list[InplaceEvent]] = defaultdict(list)
    for event in record.inplace_events:
        found[_memory(record, event.tensor)].append(event)
    return dict(found)


def _writes(record: Record, memory: int, after: int, until: int) -> list[InplaceEvent]:
    return [event for event in _events_in(record).get(memory, ()) if after < event.moment <= until]


def _loop_that_fills(tree: Tree, node: ast.stmt, container: ast.expr) -> ast.AST | None:
    """What runs the statement again and again while the container stays: a loop behind the container's birth.

    For an attribute that is made once and never emptied, the statement's function.
    """
    scope = scope_of(tree, node)
    around = [one for one in tree.ancestors(node) if isinstance(one, ast.For | ast.While)]
    written = ast.unparse(container)
    where = scope if isinstance(container, ast.Name) else tree.module
    births = [one for one in ast.walk(where) if isinstance(one, ast.Assign | ast.AnnAssign) and _binds(one, written)]
    if len(births) != 1 or _is_emptied(where, container):
        return None
    if isinstance(container, ast.Attribute) and scope_of(tree, births[0]) is not scope:
        return scope
    above = set(tree.ancestors(births[0]))
    inside = [one for one in around if one not in above and scope_of(tree, one) is scope]
    return inside[-1] if inside else None


def _binds(node: ast.Assign | ast.AnnAssign, written: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(ast.unparse(part) == written for target in targets for part in _flat(target))


def _flat(target: ast.expr) -> list[ast.expr]:
    return [part for one in target.elts for part in _flat(one)] if isinstance(target, ast.Tuple) else [target]


def _is_emptied(where: ast.AST, container: ast.expr) -> bool:
    """Something is taken out of it, or only its last elements are kept: what was kept may be read in time."""
    name = last_name(container)
    for part in ast.walk(where):
        called = part.func if isinstance(part, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _GIVE_BACK and last_name(called.value) == name:
            return True
        if isinstance(part, ast.Delete) and any(last_name(_root(one)) == name for one in part.targets):
            return True
    return False


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_read(record: Record, site: Site, node: ast.stmt, container: ast.expr) -> bool:
    """Another statement reads more of the container than its length or its last element."""
    file = names(record).get(site.source)
    if file is None:
        return False
    name, own = last_name(container), set(ast.walk(node))
    scope = scope_of(file.tree, node)
    for part in ast.walk(scope if isinstance(container, ast.Name) else file.tree.module):
        if not isinstance(part, ast.Name | ast.Attribute) or last_name(part) != name or part in own:
            continue
        if not isinstance(part.ctx, ast.Load):
            continue
        above = file.tree.parents.get(part)
        if isinstance(above, ast.Call) and part in above.args and last_name(above.func) == "len":
            continue
        last = isinstance(above, ast.Subscript) and isinstance(above.slice, ast.UnaryOp)
        fills = isinstance(above, ast.Attribute) and stored(_statement(file.tree, part)) is not None
        if not last and not fills:
            return True
    return False


def _statement(tree: Tree, part: ast.AST) -> ast.stmt | None:
    return next((one for one in tree.ancestors(part) if isinstance(one, ast.stmt)), None)


def _outside(record: Record, site: Site, loop: ast.AST) -> list[int]:
    """The moments at which a statement ran that the loop does not run: there another container may begin.

    One of the function outside of the loop, one that calls the function, or of the module, for one in a function.
    """
    if isinstance(loop, Function | ast.Module):
        return []
    first, last = getattr(loop, "lineno", 0), getattr(loop, "end_lineno", 0)
    called = site.function.rpartition(".")[2]
    sites = {
        one.site
        for one in record.sites
        if (one.function != site.function and (one.function == "<module>" or _reads(one, called)))
        or (one.source == site.source and one.function == site.function and not first <= one.line <= last)
    }
    return sorted(row.moment for row in record.moments if row.site in sites and row.kind == "after-statement")


def _reads(site: Site, function: str) -> bool:
    return any(name.rpartition(".")[2] == function for name in site.reads)
