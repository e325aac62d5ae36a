"""Where a part of a model is given other parameters than an optimizer holds, and who could tell the optimizer."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.optimizers.parameter_lists import optimizer_call, parameters_argument
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.assignments import last_assigned
from backprobe.rules.analysis.source.scopes import Function, parameters_of, scope_of, scope_of_class
from backprobe.rules.analysis.source.syntax import number_at, site_of, statement_at, tree_of, trees
from backprobe.rules.analysis.training.enclosing_loops import called_from
from backprobe.rules.analysis.training.trained_parameters import parameters

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record

_DEPTH: Final = 4
"""Calls that are followed from the statement that replaces."""


def key_of(name: str) -> str:
    """`model.1.weight` for `model[1].weight`, as a statement that assigns to an element writes it."""
    return re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", name)


def replaced_at(record: Record, optimizer: Optimizer, pairs: list[tuple[int, int]]) -> int | None:
    """The statement that gives a value to a name under which an old one was registered.

    The first between the last step before the new one was made, else the optimizer, and its first gradient; else the
    statement that made it; else the only one in the source beside that which made the old one.
    """
    new = pairs[0][1]
    made, first = lookup(record).tensors[new], grad_lives(record)[new].arrivals[0].moment
    steps = [
        row.moment
        for row in record.optimizer_events
        if (row.kind, row.optimizer) == ("step", optimizer.optimizer) and row.moment < made.moment
    ]
    since = steps[-1] if steps else optimizer.moment
    paths = [key_of(parameters(record).get(old, "")).split(".") for old, _new in pairs]
    for row in record.moments[since:first]:
        targets = () if row.site is None else site_of(record, row.site).targets
        if any(_names(target, path) for target in targets for path in paths):
            return row.site
    return made.site if made.site is not None else _only_other(record, pairs, paths)


def _only_other(record: Record, pairs: list[tuple[int, int]], paths: list[list[str]]) -> int | None:
    """The one statement beside those of constructors that assigns to such a name."""
    first = {statement_at(record, lookup(record).tensors[old].site) for old, _new in pairs}
    found: list[int] = []
    for tree in trees(record).values():
        for node in tree.nodes:
            if not isinstance(node, ast.Assign) or node in first:
                continue
            function = scope_of(tree, node)
            if isinstance(function, Function) and function.name == "__init__":
                continue
            texts = [ast.unparse(one) for one in node.targets if isinstance(one, ast.Attribute | ast.Subscript)]
            number = number_at(record, node)
            if number is not None and any(_names(text, path) for text in texts for path in paths):
                found.append(number)
    return found[0] if len(found) == 1 else None


def was_given_the_model(record: Record, built: int, done: int) -> bool:
    """A function builds the optimizer of a model that it is given, and another place replaces a part of that."""
    node, tree = statement_at(record, built), tree_of(record, site_of(record, built))
    function = None if node is None or tree is None else scope_of(tree, node)
    call = optimizer_call(record, site_of(record, built))
    argument = None if call is None else parameters_argument(call)
    if tree is None or not isinstance(function, Function) or argument is None:
        return False
    if scope_of(tree, argument) is not function or site_of(record, done).function == site_of(record, built).function:
        return False
    given = set(parameters_of(function)) - {"self", "cls"}
    for part in ast.walk(function):
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Name | ast.Tuple):
            values = part.value.elts if isinstance(part.value, ast.Tuple) else [part.value]
            targets = part.targets[0].elts if isinstance(part.targets[0], ast.Tuple) else part.targets
            pairs = zip(targets, values, strict=False)
            given |= {ast.unparse(one) for one, value in pairs if isinstance(value, ast.Name) and value.id in given}
    listed = last_assigned(record, tree, argument) if isinstance(argument, ast.Name) else None
    whole = argument if listed is None else listed.value
    read = (part for part in ast.walk(whole) if isinstance(part, ast.Name | ast.Attribute))
    return any(ast.unparse(part) in given for part in read)


def with_optimizer(record: Record, built: int, done: int) -> int:
    """The statement that replaces, or the nearest call on the way to it in a function that has the optimizer at hand.

    One of the module is at hand everywhere, one of a function there, and an attribute in the methods of its class, and
    where a function reads it of what it is given: `trainer.optimizer`.
    """
    place = site_of(record, built)
    tree = tree_of(record, place)
    node = statement_at(record, built)
    home = None if tree is None or node is None else scope_of(tree, node)
    if tree is None or not isinstance(home, Function):
        return done
    attributes = {target.rpartition(".")[2] for target in place.targets if "." in target}
    at = done
    for _ in range(_DEPTH):
        here = statement_at(record, at)
        if here is None or site_of(record, at).source != place.source:
            return done
        scope = scope_of(tree, here)
        if not isinstance(scope, Function):
            return done if at == done else at
        around = scope_of_class(tree, scope)
        if scope is home or (attributes and around is not None and around is scope_of_class(tree, home)):
            return at
        if any(isinstance(part, ast.Attribute) and part.attr in attributes for part in ast.walk(scope)):
            return at
        above = number_at(record, called_from(record, at))
        if above is None:
            return done
        at = above
    return done


def _names(target: str, path: list[str]) -> bool:
    """`self.net.fc` of `net.fc.weight`, `net[1]` of `net.1.weight`, `self.scale` of `net.scale`."""
    parts = key_of(target).split(".")
    return len(parts) > 1 and parts[-1] in path[1:] and parts[-1] != path[0]
