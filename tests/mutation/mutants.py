"""The mutants of a rule file: each is its syntax tree with one condition, operand or threshold changed.

1. The test of every `if`, `while`, conditional expression, comprehension and `case` is negated.
2. Every operand of an `and` or `or` is left out.
3. Every threshold is multiplied and divided by 10: numbers of a module's constants and of `thresholds`, and those that an
   order (`<`, `>=`) compares with, but 0.
"""

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

FACTOR = 10
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of a tree.

    Attributes:
        line: Where, in the rule's file. change: What is different, for people.
        swap: Makes the change in the tree; called again, it takes it back.
    """

    line: int
    change: str
    swap: Callable[[], None]


def mutants(tree: ast.Module) -> list[Mutant]:
    """All mutants of a module, in order of lines; they share the tree, so one may be on at a time."""
    found = [mutant for node in ast.walk(tree) for mutant in _of_node(node)]
    found += [mutant for constant in _constants(tree) for mutant in _moved(*constant)]
    return sorted(found, key=lambda mutant: (mutant.line, mutant.change))


@contextmanager
def switched_on(mutant: Mutant) -> Iterator[None]:
    """Inside, the tree is the mutant's."""
    mutant.swap()
    try:
        yield
    finally:
        mutant.swap()


def _of_node(node: ast.AST) -> Iterator[Mutant]:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield from _negated(node, "test", node.test)
    elif isinstance(node, ast.match_case) and node.guard is not None:
        yield from _negated(node, "guard", node.guard)
    elif isinstance(node, ast.comprehension):
        for at, test in enumerate(node.ifs):
            yield from _negated(node.ifs, at, test)
    elif isinstance(node, ast.BoolOp):
        for at, operand in enumerate(node.values):
            rest = [*node.values[:at], *node.values[at + 1 :]]
            yield _swapped(node, "values", rest, operand.lineno, f"without `{ast.unparse(operand)}`")
    elif isinstance(node, ast.Compare):
        for at, (order, number) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(order, _ORDERS):
                yield from _moved(node.comparators, at, number)
        if isinstance(node.ops[0], _ORDERS):
            yield from _moved(node, "left", node.left)


def _negated(owner: object, field: str | int, test: ast.expr) -> Iterator[Mutant]:
    if isinstance(test, ast.Name) and test.id == "TYPE_CHECKING":
        return
    undone = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    opposite = undone or ast.UnaryOp(op=ast.Not(), operand=test)
    yield _swapped(owner, field, opposite, test.lineno, f"the opposite of `{ast.unparse(test)}`")


def _constants(tree: ast.Module) -> Iterator[tuple[object, str | int, ast.expr]]:
    """Where numbers stand that a name at the module's top or in `thresholds` is for."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            yield statement, "value", statement.value
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "thresholds" and isinstance(node.value, ast.Dict):
            for at, number in enumerate(node.value.values):
                yield node.value.values, at, number


def _moved(owner: object, field: str | int, number: ast.expr) -> Iterator[Mutant]:
    if not isinstance(number, ast.Constant) or isinstance(number.value, bool) or not number.value:
        return
    if not isinstance(number.value, int | float):
        return
    divided = number.value // FACTOR if isinstance(number.value, int) else number.value / FACTOR
    for value in (number.value * FACTOR, divided):
        yield _swapped(owner, field, ast.Constant(value), number.lineno, f"`{number.value}` is {value}")


def _swapped(owner: object, field: str | int, other: ast.expr | list[ast.expr], line: int, change: str) -> Mutant:
    """The change of one field of a node, or one place of a list, into something else and back."""
    held = [other]

    def swap() -> None:
        if isinstance(owner, list):
            at = int(field)
            owner[at], held[0] = held[0], owner[at]
        else:
            was = getattr(owner, str(field))
            setattr(owner, str(field), held[0])
            held[0] = was

    return Mutant(line=line, change=change, swap=swap)
