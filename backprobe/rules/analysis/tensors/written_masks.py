"""The statement that masks with `-inf` what a NaN comes out of, and the one that gives `-inf` a name."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.expression_places import expression_of, operations_at
from backprobe.rules.analysis.source.scopes import last_name, scope_of
from backprobe.rules.analysis.source.syntax import site_at, site_of, statement, statement_at, tree_of
from backprobe.rules.analysis.tensors.operation_chains import behind, last_name_of

if TYPE_CHECKING:
    from backprobe.record import Operation, Record, Site
    from backprobe.rules.analysis.tensors.births import Birth

_MASKS: Final = frozenset({"masked_fill", "masked_fill_", "where"})
_LOGS: Final = frozenset({"log", "log2", "log10"})
_NEAR: Final = 8
"""Operations between the NaN and the mask: a softmax, a product, a division."""


def masked_at(record: Record, birth: Birth) -> int | None:
    """The statement, if it is another one than that of the birth."""
    for row in operations_at(record).get(birth.site, ()):
        has_log = last_name_of(row) in _LOGS
        for part in itertools.islice(behind(record, row), _NEAR):
            name = None if isinstance(part, int) else last_name_of(part)
            has_log = has_log or name in _LOGS
            if has_log and name == "softmax":
                return None  # its zeros are right: they are what the logarithm does not take
            if not isinstance(part, int) and last_name_of(part) in _MASKS and _with_infinity(record, part):
                return None if part.statement == birth.site else part.statement
    return None


def infinity_named(record: Record, number: int) -> Site | None:
    """The one statement that gives `-inf` a name which the function of a site reads: one change there is enough."""
    site = site_of(record, number)
    node, tree = statement(record, site), tree_of(record, site)
    scope = None if node is None or tree is None else scope_of(tree, node)
    if tree is None or scope is None:
        return None
    read = {last_name(part) for part in ast.walk(scope) if isinstance(part, ast.Name | ast.Attribute)}
    given: dict[str, list[ast.Assign]] = {}
    for one in tree.nodes:
        if (
            isinstance(one, ast.Assign)
            and len(one.targets) == 1
            and isinstance(one.targets[0], ast.Name | ast.Attribute)
        ):
            given.setdefault(last_name(one.targets[0]), []).append(one)
    found = [rows[0] for name, rows in given.items() if name in read and len(rows) == 1 and _is_infinity(rows[0].value)]
    return site_at(record, found[0]) if len(found) == 1 else None


def _is_infinity(value: ast.expr) -> bool:
    """`float("-inf")`, `-math.inf`, `-float("inf")`, `torch.tensor(float("-inf"))`: that alone."""
    named = {"float", "tensor", "inf", "math", "torch", "np", "numpy", "full"}
    words = {last_name(part) for part in ast.walk(value) if isinstance(part, ast.Name | ast.Attribute)}
    return words <= named and _names_infinity(value)


def _with_infinity(record: Record, row: Operation) -> bool:
    node = expression_of(record, row)
    if node is None:
        return False
    known = None if _names_infinity(node) else infinity_named(record, row.statement)
    given = statement_at(record, None if known is None else known.site)
    names = {last_name(one) for one in given.targets} if isinstance(given, ast.Assign) else set[str]()
    read = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return _names_infinity(node) or any(last_name(part) in names for part in read)


def _names_infinity(node: ast.AST) -> bool:
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.strip("+-") == "inf")
        or (isinstance(part, ast.Attribute) and part.attr == "inf")
        for part in ast.walk(node)
    )
