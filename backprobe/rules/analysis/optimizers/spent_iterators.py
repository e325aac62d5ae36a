"""Names that hold what gives its elements once, as `params = filter(...)`: a second use finds nothing left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.handed_arguments import handed_in
from backprobe.rules.analysis.source.scopes import Function, last_name, names, scope_of
from backprobe.rules.analysis.source.syntax import site_at, site_of, tree_of

if TYPE_CHECKING:
    from backprobe.record import Record, Site

_ONCE: Final = frozenset({
    "parameters", "named_parameters", "buffers", "children", "modules", "filter", "map", "zip", "iter", "chain",
    "from_iterable", "islice", "takewhile",
})  # fmt: skip
"""What gives its elements once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """The statement that makes it, and its expression."""

    site: Site
    value: ast.expr


def made_once(record: Record, site: Site, argument: ast.expr) -> Once | None:
    """What a name or attribute was given, if that can be walked only once.

    A parameter that its function leaves as it is holds what the one caller gave. All that the name is ever given must
    be of that kind: what was made a list on another way is told by no source.
    """
    tree = tree_of(record, site)
    if tree is None or not isinstance(argument, ast.Name | ast.Attribute):
        return None
    handed = handed_in(record, site, argument.id) if isinstance(argument, ast.Name) else None
    if handed is not None:
        if _is_once(record, handed.part):
            return Once(site=handed.site, value=handed.part)
        return None if isinstance(handed.part, ast.Call) else made_once(record, handed.site, handed.part)
    scope = scope_of(tree, argument)
    given = list(_given(tree.module, argument))
    if isinstance(argument, ast.Name):
        own = [node for node in given if scope_of(tree, node) is scope]
        given = own or [node for node in given if scope_of(tree, node) is tree.module]
    made = [(node, site_at(record, node)) for node in given if node.value is not None]
    if not made or not all(node.value is not None and _is_once(record, node.value) for node, _site in made):
        return None
    node, place = made[-1]
    return None if place is None or node.value is None else Once(site=place, value=node.value)


def used_up_at(record: Record, once: Once, site: Site) -> int | None:
    """The statement that builds an optimizer from it, if that is another than the one of this site."""
    tree = tree_of(record, once.site)
    above = () if tree is None else tree.ancestors(once.value)
    node = next((one for one in above if isinstance(one, ast.Assign)), None)
    targets = [] if node is None else node.targets
    texts = {ast.unparse(one) for one in targets}
    for optimizer in record.optimizers:
        if (
            optimizer.site is not None
            and optimizer.site != site.site
            and texts & {*site_of(record, optimizer.site).reads}
        ):
            return optimizer.site
    return None


def _given(module: ast.Module, argument: ast.Name | ast.Attribute) -> Iterator[ast.Assign | ast.AnnAssign]:
    """The statements that give a name its value; of an attribute those that give it to any object."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(one, type(argument)) and last_name(one) == last_name(argument) for one in targets):
                yield node


def gives_once(value: ast.expr) -> bool:
    """A generator expression, or a call of what gives its elements once."""
    return isinstance(value, ast.GeneratorExp) or (isinstance(value, ast.Call) and last_name(value.func) in _ONCE)


def _is_once(record: Record, value: ast.expr) -> bool:
    """The same, or a call of a function of the program that yields."""
    if gives_once(value) or not isinstance(value, ast.Call):
        return gives_once(value)
    functions = [one for file in names(record).values() for one in file.functions.get(last_name(value.func), ())]
    return bool(functions) and all(_yields(one) for one in functions)


def _yields(function: Function) -> bool:
    """It yields, or each `return` gives what can be walked once."""
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(function)):
        return True
    returned = [part.value for part in ast.walk(function) if isinstance(part, ast.Return)]
    return bool(returned) and all(one is not None and gives_once(one) for one in returned)
