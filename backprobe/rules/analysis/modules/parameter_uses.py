"""Where a trained tensor goes into the program: calls of the module that holds it, reads of its names, and the mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.hook_cuts import hook_cuts, hooks_at
from backprobe.rules.analysis.modules.module_sites import (
    calls_by_number,
    entered,
    entering,
    expressions_of,
    outermost_call,
)
from backprobe.rules.analysis.modules.training_modes import inside
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import Ending
from backprobe.rules.analysis.source.data_flow_steps import Program, Step
from backprobe.rules.analysis.source.scopes import Function, last_name, names
from backprobe.rules.analysis.source.syntax import site_of, statement, trees
from backprobe.rules.analysis.training.grad_modes import SWITCHES, switched_off_at, switches_off
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record


def uses_of(record: Record, leaf: int) -> Iterator[tuple[Step, int]]:
    """The expressions that a leaf goes into: calls of the module that holds it, and reads of its names; with when."""
    for owner in owners(record).get(leaf, ()):
        yield from _calls_of(record).get(owner, ())
    yield from _reads(record, leaf)


@table
def owners(record: Record) -> dict[int, list[int]]:
    """The modules that hold a tensor themselves."""
    found: dict[int, list[int]] = {}
    for row in record.modules:
        for one in row.parameters:
            if one.tensor is not None:
                found.setdefault(one.tensor, []).append(row.module)
    return found


@table
def _calls_of(record: Record) -> dict[int, list[tuple[Step, int]]]:
    """By module, the expressions of its calls: one for each place and grad mode."""
    found: dict[int, list[tuple[Step, int]]] = {}
    seen: set[tuple[int, int | None, bool]] = set()
    for call in record.module_calls:
        key = (call.module, outermost_call(record, call).site, call.grad_mode)
        written = expressions_of(record, call) if key not in seen else None
        seen.add(key)
        ending = None if call.grad_mode or key[1] is None else _grad_off_at(record, key[1])
        if (
            written is not None
            and not call.grad_mode
            and ending is None
            and call.module not in _tracked_modules(record)
        ):
            off = _outermost_without(record, call)
            ending = None if off.site is None or off is call else _grad_off_at(record, off.site)
            written = written if ending is None else expressions_of(record, off)
        around = None
        if written is not None and not call.grad_mode and key[1] is not None and ending is None:
            around = _opened_around(record, key[1])
        if written is not None and around is not None:
            found.setdefault(call.module, []).extend(
                (Step(part=part, source=written[0], ending=around[0], ended_in=around[1], origin=part), around[2])
                for part in written[1]
            )
        if written is None or (ending is None and not call.grad_mode):
            continue
        moment = _first_moments(record).get(key[1] or 0, 0)
        steps = found.setdefault(call.module, [])
        file = written[0]
        if ending is None:
            ending, file = _hooked(record, call) or (None, file)
        for part in written[1]:
            steps.append((Step(part=part, source=written[0], ending=ending, ended_in=file, origin=part), moment))
    return found


def _outermost_without(record: Record, call: ModuleCall) -> ModuleCall:
    """The outermost call around one that ran without gradients as well, with none between that had them."""
    known = calls_by_number(record)
    while call.parent is not None and call.parent in known and not known[call.parent].grad_mode:
        call = known[call.parent]
    return outermost_call(record, call)


@table
def _tracked_modules(record: Record) -> frozenset[int]:
    """The modules that ran with gradients at some time."""
    return frozenset(call.module for call in record.module_calls if call.grad_mode)


def _hooked(record: Record, call: ModuleCall) -> tuple[Ending, int] | None:
    """What a forward hook hands back without a history, of a module that runs in the same expression."""
    cuts = hook_cuts(record)
    around = inside(record, outermost_call(record, call)) if cuts else ()
    return next((cuts[one.module] for one in around if one.module in cuts), None)


@table
def _first_moments(record: Record) -> dict[int, int]:
    found: dict[int, int] = {}
    for row in record.moments:
        if row.site is not None:
            found.setdefault(row.site, row.moment)
    return found


def _reads(record: Record, leaf: int) -> Iterator[tuple[Step, int]]:
    """Where the source reads a leaf by a name that it was bound to, or as an attribute of its module.

    `self.weight` in the module's own code, `net.head.weight` and `self.net.head.weight` elsewhere.
    """
    index = lookup(record)
    key = index.tensors[leaf].fqn or ""
    last = key.rpartition(".")[2]
    for number, file in names(record).items():
        for read in file.attributes.get(last, ()) if not last.isdigit() else ():
            owner = ast.unparse(read.value)
            below = owner.removeprefix("self.")
            is_path = f"{owner}.{last}" == key or (below != owner and f".{key}".endswith(f".{below}.{last}"))
            if isinstance(read.ctx, ast.Load) and (
                owner == "self" or (is_path and not _is_written(record, number, read))
            ):
                yield Step(part=read, source=number, origin=read), index.tensors[leaf].moment
    for row in {(one.name, one.function): one for one in index.bindings_of[leaf]}.values():
        for number, read in _loads(record).get((row.function.rpartition(".")[2], row.name.partition("[")[0]), ()):
            yield Step(part=read, source=number, origin=read), row.moment


def _is_written(record: Record, source: int, read: ast.Attribute) -> bool:
    """A statement stores into what is read, `net.weight[:3] = old`, or calls a method of it that writes in place."""
    above = trees(record)[source].parents.get(read)
    into = isinstance(above, ast.Subscript) and isinstance(above.ctx, ast.Store)
    return into or (isinstance(above, ast.Attribute) and above.attr.endswith("_"))


@table
def _loads(record: Record) -> dict[tuple[str, str], list[tuple[int, ast.Name]]]:
    """Where a name is read, by the last part of its function's name and the name."""
    found: dict[tuple[str, str], list[tuple[int, ast.Name]]] = {}
    for number, file in names(record).items():
        for (scope, name), reads in file.loads.items():
            function = scope.name if isinstance(scope, Function) else "<module>"
            found.setdefault((function, name), []).extend((number, read) for read in reads)
    return found


def _grad_off_at(record: Record, site: int) -> Ending | None:
    """The `with` or decorator around a statement that ran without grad mode, as an ending."""
    row = site_of(record, site)
    found = switched_off_at(record, site)
    if found is None:
        return None
    region, name = found
    part = _expressions(record).get((row.source, region.start_line, region.start_col))
    return None if part is None else Ending(kind="no-grad", node=part, how=f"`{name}`")


def _opened_around(record: Record, site: int) -> tuple[Ending, int, int] | None:
    """The `with`, or the decorator of a function, that a caller had gradients off by when a statement first ran so.

    As an ending, its file, and when.
    """
    moments = [row.moment for row in record.moments if row.site == site and not row.grad_mode]
    for row in reversed(record.modes) if moments else ():
        is_open = row.moment is not None and row.moment <= moments[0] and (row.until is None or moments[0] <= row.until)
        node = statement(record, site_of(record, row.site)) if is_open and row.site is not None else None
        if switches_off(row) and row.how == "decorator" and node is not None:
            if any(one.grad_mode for one in record.moments if one.site == site):
                return None  # it runs with gradients too: what is decorated is an evaluation
            found = _decorator(record, site_of(record, row.site or 0).source, node)
            if found is None:
                return None
            source, part = found
            how = f"`{last_name(part.func if isinstance(part, ast.Call) else part)}`"
            return Ending(kind="no-grad", node=part, how=how), source, moments[0]
        if switches_off(row) and row.how == "with" and isinstance(node, ast.With):
            part = _switch(node)
            if part is None:
                return None
            how = f"`{last_name(part.func if isinstance(part, ast.Call) else part)}`"
            return Ending(kind="no-grad", node=part, how=how), site_of(record, row.site or 0).source, moments[0]
    return None


def _switch(node: ast.With) -> ast.expr | None:
    """The expression of a `with` that has gradients off: among several that which is known to; None if none is."""
    given = [one.context_expr for one in node.items]
    if len(given) == 1:
        return given[0]
    return next((one for one in given if last_name(one.func if isinstance(one, ast.Call) else one) in SWITCHES), None)


def _decorator(record: Record, source: int, node: ast.stmt) -> tuple[int, ast.expr] | None:
    """The decorator that has gradients off, of a function that a statement calls; with its file."""
    for part in ast.walk(node):
        called = last_name(part.func) if isinstance(part, ast.Call) else ""
        files = {source: names(record)[source], **names(record)} if called and source in names(record) else {}
        for number, file in files.items():
            for decorator in (one for function in file.functions.get(called, ()) for one in function.decorator_list):
                if last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) in SWITCHES:
                    return number, decorator
    return None


@table
def _expressions(record: Record) -> dict[tuple[int, int, int], ast.expr]:
    """The outermost expression that begins at a place: file, line and column, the first of a line being 1."""
    found: dict[tuple[int, int, int], ast.expr] = {}
    for source, tree in trees(record).items():
        for part in tree.nodes:
            if isinstance(part, ast.expr):
                found.setdefault((source, part.lineno, part.col_offset + 1), part)
    return found


@table
def _off_statements(record: Record) -> dict[ast.stmt, int]:
    """Statements at which every moment had grad mode off, with their site."""
    index = lookup(record)
    on, off = set[int](), set[int]()
    for row in record.moments:
        if row.site is not None and row.kind == "after-statement":
            (on if row.grad_mode else off).add(row.site)
    found: dict[ast.stmt, int] = {}
    for site in off - on:
        node = statement(record, index.sites[site])
        if node is not None:
            found[node] = site
    return found


@table
def program_of(record: Record) -> Program:
    """What following a value through the source needs to know of the run."""
    off = _off_statements(record)

    def grad_off(_source: int, node: ast.stmt) -> Ending | None:
        return _grad_off_at(record, off[node]) if node in off else None

    return Program(
        names=names(record),
        grad_off=grad_off,
        forwards=lambda _source, call: entered(record).get(call, []),
        callers=lambda _source, function: entering(record).get(function, []),
        hooked=lambda call: hooks_at(record).get(call, []),
    )
