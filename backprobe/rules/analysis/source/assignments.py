"""What gives a name its value in the program's source: assignments, loops, what is appended, what functions return.

    total = total + f(loss)   # gives `total` a value; reads `total`, `loss` and what `f` returns

Each expression is read once, however often it is asked for: names that a loop feeds to each other lead from one to all.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.scopes import Function, Scope, assigned, parameters_of, scope_of, target_names
from backprobe.rules.analysis.source.syntax import Tree, blocks, site_at, trees
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site

_DEEPEST: Final = 5
"""Names of names that are followed: as many as people put between a value and its use."""
_GROWS: Final = frozenset({"append", "extend", "insert", "add", "update"})
_Name = tuple[Scope, str] | str
"""A name of a function or module; a function of the program by its plain name."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value in the source, and what it reads.

    Attributes:
        site: Of the statement around it. scope: the function around that, or the module.
        names: The plain names that it reads; called: the functions that it calls by name.
        tracked: What it reads by a name that held a tensor which requires grad at some time of the run, with its text.
    """

    value: ast.expr
    around: ast.stmt
    site: Site
    tree: Tree
    scope: Scope
    names: tuple[str, ...]
    called: tuple[str, ...]
    tracked: tuple[tuple[ast.expr, str], ...]


def given_at(record: Record, value: ast.expr, around: ast.stmt) -> Given | None:
    """What an expression of a statement reads; None where the record has no site of the statement."""
    known = _known(record)
    if value not in known:
        known[value] = _read(record, value, around)
    return known[value]


@table
def _known(_record: Record) -> dict[ast.expr, Given | None]:
    """Filled as it is asked for."""
    return {}


def _read(record: Record, value: ast.expr, around: ast.stmt) -> Given | None:
    site = site_at(record, around)
    if site is None:
        return None
    tree, every = trees(record)[site.source], list(ast.walk(value))
    read = [one for one in every if isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load)]
    held = _tracked_names(record)
    tracked: list[tuple[ast.expr, str]] = []
    for one in read:
        text = ast.unparse(one)
        names = [(name, within) for name in (text, f"{text}[0]") for within in (site.function, "<module>")]
        if any(name in held for name in names):
            tracked.append((one, text))
    return Given(
        value=value,
        around=around,
        site=site,
        tree=tree,
        scope=scope_of(tree, around),
        names=tuple(dict.fromkeys(one.id for one in read if isinstance(one, ast.Name))),
        called=tuple(one.func.id for one in every if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)),
        tracked=tuple(tracked),
    )


@table
def _tracked_names(record: Record) -> frozenset[tuple[str, str]]:
    """The names that held a tensor which requires grad at some time, each with the function that it was bound in."""
    rows = ((row, state_at(record, row.tensor, row.moment)) for row in record.bindings)
    return frozenset((row.name, row.function) for row, state in rows if state is not None and state.requires_grad)


def givers(record: Record, given: Given) -> Iterator[Given]:
    """The values that went into what an expression reads by name, then those that the functions it calls return.

    Of a name first what stands before the statement, the nearest first; then what stands behind it in its loops.
    """
    known = _of_names(record)
    line = given.around.lineno
    loops = [above for above in given.tree.ancestors(given.around) if isinstance(above, ast.For | ast.While)]
    last = (loops[-1].end_lineno or 0) if loops else 0
    for name in given.names:
        rows = known.get((given.scope, name), [])
        here, end = bisect_right(rows, line, key=_line), bisect_right(rows, last, key=_line)
        yield from (rows[at] for at in range(here - 1, -1, -1) if rows[at].around is not given.around)
        yield from (rows[at] for at in range(end - 1, here - 1, -1))
    for name in given.called:
        yield from known.get(name, ())


def _line(given: Given) -> int:
    return given.around.lineno


@table
def _of_names(record: Record) -> dict[_Name, list[Given]]:
    """What gives each name its value, by the functions around it and the module; and what functions return."""
    found: defaultdict[_Name, list[Given]] = defaultdict(list)
    for tree in trees(record).values():
        for node in tree.nodes:
            names, value = _given(node)
            one = None if value is None or not isinstance(node, ast.stmt) else given_at(record, value, node)
            if one is None:
                continue
            for above in tree.ancestors(node):
                if isinstance(above, Function | ast.Module):
                    for name in names:
                        found[above, name].append(one)
                if isinstance(node, ast.Return) and isinstance(above, Function):
                    found[above.name].append(one)
    return {key: sorted(rows, key=_line) if isinstance(key, tuple) else rows for key, rows in found.items()}


def _given(node: ast.AST) -> tuple[set[str], ast.expr | None]:
    """The names that a statement gives a value, or adds it to; and the value, which may also be returned."""
    if isinstance(node, ast.Assign):
        return {name for target in node.targets for name in target_names(target)}, node.value
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return set(target_names(node.target)), node.value
    if isinstance(node, ast.For):
        return set(target_names(node.target)), node.iter
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _GROWS and call.args:
        return set(target_names(call.func.value)), call.args[-1]
    return set(), node.value if isinstance(node, ast.Return) else None


def leads_to_tracked(record: Record, given: Given) -> bool:
    """What an expression reads may have come from a tensor that requires grad, however far back."""
    known = _leading(record)
    return bool(given.tracked) or any(name in known for name in _reads(given))


@table
def _leading(record: Record) -> set[_Name]:
    """The names that such tensors lead to, and the functions that return what came from one."""
    readers: defaultdict[_Name, list[_Name]] = defaultdict(list)
    waiting: list[_Name] = []
    for name, rows in _of_names(record).items():
        for one in rows:
            for read in _reads(one):
                readers[read].append(name)
        if any(one.tracked for one in rows):
            waiting.append(name)
    found = set(waiting)
    while waiting:
        for name in readers.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _reads(given: Given) -> Iterator[_Name]:
    yield from ((given.scope, name) for name in given.names)
    yield from given.called


def last_assigned(record: Record, tree: Tree, name: ast.Name) -> ast.Assign | None:
    """The plain assignment `t = f(x)` that gave a name its value where it is read; None where another one may have.

    It stands before that in the same function, in the block of the read or in one around it.
    """
    rows = _stores(record).get((scope_of(tree, name), name.id), [])
    around = [*tree.ancestors(name)]
    own = next(one for one in around if isinstance(one, ast.stmt))
    at = bisect_left(rows, _position(own), key=_position) - 1
    given = tree.parents[rows[at]] if at >= 0 else None
    if not isinstance(given, ast.Assign) or rows[at] not in given.targets:
        return None
    above = tree.parents[given]
    if above not in around:
        return None
    inner = around[: around.index(above)]
    beside = [block for block in blocks(above) if given in block]
    if not beside or inner[-1] not in beside[0]:
        return None
    ends = [one.end_lineno or 0 for one in inner if isinstance(one, ast.For | ast.While)]
    if ends and any(row.lineno <= ends[-1] for row in rows[at + 1 :]):
        return None  # in a turn before
    return given


def spelled_out(record: Record, tree: Tree, value: ast.expr) -> ast.expr:
    """What a name stands for where it is read, by a plain assignment there or to a constant of the module; else itself.

    `parts` of `parts = net.state_dict(); other.load_state_dict(parts)` is `net.state_dict()`.
    """
    for _name_of_a_name in range(_DEEPEST):
        if not isinstance(value, ast.Name):
            break
        given = last_assigned(record, tree, value) or _constant(record, tree, value)
        if given is None or not isinstance(given.targets[0], ast.Name):
            break
        value = given.value
    return value


def _constant(record: Record, tree: Tree, name: ast.Name) -> ast.Assign | None:
    """The one assignment outside of functions to a name that a function only reads."""
    scope = scope_of(tree, name)
    inner = not isinstance(scope, Function) or (scope, name.id) in _stores(record) or name.id in parameters_of(scope)
    rows = assigned(record).get((tree.module, name.id), []) if not inner else []
    stores = _stores(record).get((tree.module, name.id), [])  # none of an import whose element is assigned
    return rows[0] if len(rows) == 1 == len(stores) else None


def reads_behind(record: Record, tree: Tree, value: ast.expr | None) -> set[str]:
    """The plain names that an expression reads, and those read by what its names stand for, as `spelled_out` has it."""
    found: set[str] = set()
    waiting = [] if value is None else [value]
    while waiting:
        read = [one for one in ast.walk(waiting.pop()) if isinstance(one, ast.Name) and one.id not in found]
        found |= {one.id for one in read}
        waiting += [behind for one in read if (behind := spelled_out(record, tree, one)) is not one]
    return found


def _position(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


@table
def _stores(record: Record) -> dict[tuple[Scope, str], list[ast.Name]]:
    """Where each function binds a name, in the order of the lines."""
    found: defaultdict[tuple[Scope, str], list[ast.Name]] = defaultdict(list)
    for tree in trees(record).values():
        for node in tree.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found[scope_of(tree, node), node.id].append(node)
    return {key: sorted(rows, key=_position) for key, rows in found.items()}
