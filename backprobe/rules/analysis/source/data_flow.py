"""Where a value goes in the program's source: through expressions, names, calls and returns, up to a backward call.

1. It follows the source, not the run: which way was taken is for the record to say. So nothing is proven by it alone;
   it tells at which expression a history that the record shows to be lost was lost.
2. A value that only decides (a condition, a shape) goes nowhere.
"""

from __future__ import annotations

import ast
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.break_syntax import Ending, ending_at, takes_no_elements
from backprobe.rules.analysis.source.data_flow_steps import Arrival, Key, Program, Step
from backprobe.rules.analysis.source.scopes import (
    Function,
    binder_of,
    inside_comprehension,
    last_name,
    parameters_of,
    root_name,
    scope_of,
    scope_of_class,
)

if TYPE_CHECKING:
    from backprobe.rules.analysis.source.syntax import Tree

_MOST: Final = 4000
"""Places that one value is followed to; beyond, the answer is what was found by then."""

_GROWS: Final = frozenset({"append", "extend", "insert", "add", "update", "appendleft", "copy_", "index_copy_"})
GATHERS: Final = frozenset({"all_gather", "all_gather_into_tensor", "all_to_all", "all_to_all_single"})
"""Functions of `torch.distributed` that fill what they are given first with values, without a history."""

_ROOTED: Final = frozenset({"backward", "manual_backward"})


def arrivals(program: Program, starts: Iterable[Step], stops: frozenset[ast.expr] = frozenset()) -> list[Arrival]:
    """Every way of a value to a backward call, or to one of the stops before: one for each root and ending."""
    walk = _Walk(program, stops)
    walk.waiting.extend(starts)
    return walk.run()


@dataclass(slots=True)
class _Walk:
    program: Program
    stops: frozenset[ast.expr] = frozenset()
    waiting: deque[Step] = field(default_factory=deque[Step])
    seen: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    taken: set[tuple[object, ...]] = field(default_factory=set[tuple[object, ...]])
    found: dict[tuple[ast.expr, ast.AST | None], Arrival] = field(
        default_factory=dict[tuple[ast.expr, "ast.AST | None"], Arrival]
    )

    def run(self) -> list[Arrival]:
        while self.waiting and len(self.seen) < _MOST:
            step = self.waiting.popleft()
            key = (step.part, step.ending.node if step.ending else None, step.key, step.entered)
            if key not in self.seen:
                self.seen.add(key)
                self._climb(step)
        return list(self.found.values())

    def _climb(self, step: Step) -> None:
        """From an expression outwards to its statement."""
        tree = self.program.names[step.source].tree
        inner: ast.AST = step.part
        for above in tree.ancestors(step.part):
            if isinstance(inner, ast.expr) and inner in self.stops:
                self._root(inner, step)
            if isinstance(above, ast.stmt):
                off = self.program.grad_off(step.source, above)
                self._arrive(above, inner, step if off is None else _ended(step, off))
                return
            if takes_no_elements(above, inner):
                return
            on = self._element(above, inner, step)
            if on is None:
                return
            step = on
            ending = ending_at(above, inner)
            if ending is not None:
                whole = tree.parents.get(ending.node)
                called = isinstance(whole, ast.Call) and whole.func is ending.node
                node = whole if called and isinstance(whole, ast.expr) else ending.node
                step = _ended(step, replace(ending, node=node))
            if self._leaves(tree, above, inner, step):
                return
            inner = above

    def _element(self, above: ast.AST, inner: ast.AST, step: Step) -> Step | None:
        """Whether a literal index takes the element that is followed; None: it takes another one."""
        if step.key is None or not isinstance(above, ast.Subscript | ast.Attribute | ast.Call | ast.BinOp):
            return step
        if isinstance(above, ast.Subscript) and inner is above.value and isinstance(above.slice, ast.Constant):
            return replace(step, key=None) if above.slice.value == step.key else None
        return replace(step, key=None)

    def _leaves(self, tree: Tree, above: ast.AST, inner: ast.AST, step: Step) -> bool:
        """The value goes on somewhere else than in the expression around it."""
        if isinstance(above, ast.comprehension):
            self._add(inside_comprehension(tree, above) if inner is above.iter else (), step)
            return True
        if isinstance(above, ast.Attribute) and inner is above.value and above.attr in _ROOTED:
            whole = tree.parents.get(above)
            if isinstance(whole, ast.Call):
                self._root(whole, step)
                return True
        if isinstance(above, ast.NamedExpr):
            self._bind(above.target, above, step)
        return isinstance(above, ast.Call) and inner is not above.func and self._into_call(above, inner, step)

    def _into_call(self, call: ast.Call, inner: ast.AST, step: Step) -> bool:
        names = self.program.names[step.source]
        called = last_name(call.func)
        if called in _ROOTED or ast.unparse(call.func).endswith("autograd.grad"):
            self._root(call, step)
            return True
        if called in _GROWS and isinstance(call.func, ast.Attribute):
            self._bind(call.func.value, call, step)
            return True
        if called in GATHERS and call.args and inner is not call.args[0]:
            how = f"`{ast.unparse(call.func)}()`"
            self._bind(call.args[0], call, _ended(step, Ending(kind="rebuild", node=call, how=how)))
            return True
        library = isinstance(call.func, ast.Attribute) and root_name(call.func) in names.imported
        own = [] if library else [(step.source, one) for one in names.functions.get(called, ())]
        if not own and not library:
            own = [(s, one) for s, file in self.program.names.items() for one in file.functions.get(called, ())]
        for source, function in self.program.hooked(call):
            given = parameters_of(function)[-1:]
            self._add(
                self.program.names[source].loads.get((function, "".join(given)), ()), replace(step, source=source)
            )
        own += self.program.forwards(step.source, call)
        for source, function in own:
            self._into_function(source, function, call, inner, step)
        if called in names.classes:
            for one in names.functions.get("__init__", ()):
                if scope_of_class(names.tree, one) is names.classes[called]:
                    self._into_function(step.source, one, call, inner, step)
            return False
        return bool(own)

    def _into_function(self, source: int, function: Function, call: ast.Call, inner: ast.AST, step: Step) -> None:
        given = parameters_of(function)
        if given[:1] in (["self"], ["cls"]):
            given = given[1:]
        chosen = given
        if inner in call.args:
            at = call.args.index(inner)  # type: ignore[arg-type] # it is one of them
            starred = any(isinstance(one, ast.Starred) for one in call.args[: at + 1])
            chosen = given if starred else given[at : at + 1] or given[-1:]
        else:
            named = next((one.arg for one in call.keywords if one is inner), None)
            chosen = [named] if named in given else given
        names = self.program.names[source]
        for name in chosen:
            self._add(
                names.loads.get((function, name or ""), ()),
                replace(step, source=source, key=None, entered=(function, call)),
            )

    def _arrive(self, node: ast.stmt, inner: ast.AST, step: Step) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node, inner, step)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) or (
            isinstance(node, ast.For | ast.AsyncFor) and inner is node.iter
        ):
            self._bind(node.target, node, replace(step, key=None))
        elif isinstance(node, ast.Return):
            self._returned(node, node.value, step)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            self._returned(node, node.value.value, step)

    def _assign(self, target: ast.expr, node: ast.Assign, inner: ast.AST, step: Step) -> None:
        """Of tuples on both sides, or of a followed element, only its own target."""
        key = step.key
        if isinstance(target, ast.Tuple | ast.List):
            if isinstance(node.value, ast.Tuple) and inner in node.value.elts:
                key = node.value.elts.index(inner)  # type: ignore[arg-type] # it is one of them
            elif inner is node.value and isinstance(node.value, ast.Tuple):
                key = None
            if isinstance(key, int) and key < len(target.elts):
                self._bind(target.elts[key], node, replace(step, key=None))
                return
            step = replace(step, key=None)
        self._bind(target, node, step)

    def _returned(self, node: ast.stmt, value: ast.expr | None, step: Step) -> None:
        """To where the function is called: of what a call handed in, to that call alone."""
        function = scope_of(self.program.names[step.source].tree, node)
        if isinstance(function, ast.Module):
            return
        by = step.entered[1] if step.entered is not None and step.entered[0] is function else None
        step = replace(step, key=_key_in(value, self._around(node, step)), entered=None)
        callers = list(self._callers(step.source, function))
        for source, call in [one for one in callers if one[1] is by] or callers:
            self.waiting.append(replace(step, part=call, source=source))

    def _around(self, node: ast.stmt, step: Step) -> list[ast.AST]:
        """The expressions around a part, up to the statement."""
        above = self.program.names[step.source].tree.ancestors(step.part)
        return [step.part, *itertools.takewhile(lambda one: one is not node, above)]

    def _callers(self, source: int, function: Function) -> Iterator[tuple[int, ast.expr]]:
        yield from self.program.callers(source, function)
        for number, names in self.program.names.items():
            for call in names.calls.get(function.name, ()):
                if not (isinstance(call.func, ast.Attribute) and root_name(call.func) in names.imported):
                    yield number, call
            if any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list):
                for read in names.attributes.get(function.name, ()):
                    yield number, read

    def _bind(self, target: ast.expr, node: ast.AST, step: Step) -> None:
        """To where a name, an attribute, or what holds an element is read."""
        names = self.program.names[step.source]
        if isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self._bind(one, node, step)
        elif isinstance(target, ast.Starred | ast.Subscript):
            self._bind(target.value, node, replace(step, key=None))
        elif isinstance(target, ast.Attribute) and target.attr == "data":
            self._bind(target.value, node, _ended(step, Ending(kind="detach", node=target, how="`.data`")))
        elif isinstance(target, ast.Attribute):
            for number, file in self.program.names.items():
                if self._is_new(step, number, target.attr):
                    reads = (one for one in file.attributes.get(target.attr, ()) if isinstance(one.ctx, ast.Load))
                    self._add(reads, replace(step, source=number, entered=None))
            owner = ast.unparse(target.value)
            self._add(
                (call for call in names.calls.get(last_name(target.value), ()) if ast.unparse(call.func) == owner), step
            )
        elif isinstance(target, ast.Name):
            bound = binder_of(names, node, target.id), target.id
            if step.entered is not None and bound[0] is not step.entered[0]:
                step = replace(step, entered=None)
            if self._is_new(step, *bound):
                self._add(names.loads.get(bound, ()), step)

    def _is_new(self, step: Step, *held_by: object) -> bool:
        """What holds the value was not followed yet with this ending: a loop binds a name again and again."""
        before = len(self.taken)
        self.taken.add((*held_by, step.ending.node if step.ending else None, step.key, step.entered))
        return len(self.taken) > before

    def _add(self, parts: Iterable[ast.expr], step: Step) -> None:
        self.waiting.extend(replace(step, part=part) for part in parts)

    def _root(self, root: ast.expr, step: Step) -> None:
        key = (root, step.ending.node if step.ending else None)
        self.found.setdefault(key, Arrival(root=root, source=step.source, step=step))


def _ended(step: Step, ending: Ending) -> Step:
    """The first ending stays the place; a `detach()` on the way to a number or an array is that one's preparation."""
    if step.ending is None:
        return replace(step, ending=ending, ended_in=step.source)
    if step.ending.kind == "detach" and ending.kind in ("numpy", "item"):
        return replace(step, ending=replace(step.ending, kind=ending.kind))
    return step


def _key_in(value: ast.expr | None, around: list[ast.AST]) -> Key:
    """Which element of a returned tuple or dict a part is in."""
    if isinstance(value, ast.Tuple):
        return next((at for at, one in enumerate(value.elts) if one in around), None)
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        keys = (key.value for key, one in pairs if one in around and isinstance(key, ast.Constant))
        return next((key for key in keys if isinstance(key, str | int)), None)
    return None
