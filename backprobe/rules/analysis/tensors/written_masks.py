"""The statement that masks with `-inf` what a NaN comes out of: a row of nothing else, or 0 times it."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.expression_places import expression_of, operations_at
from backprobe.rules.analysis.tensors.operation_chains import behind, last_name_of

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.analysis.tensors.births import Birth

_MASKS: Final = frozenset({"masked_fill", "masked_fill_", "where"})
_NEAR: Final = 8
"""Operations between the NaN and the mask: a softmax, a product, a division."""


def masked_at(record: Record, birth: Birth) -> int | None:
    """The statement, if it is another one than that of the birth."""
    for row in operations_at(record).get(birth.site, ()):
        for part in itertools.islice(behind(record, row), _NEAR):
            if not isinstance(part, int) and last_name_of(part) in _MASKS and _with_infinity(record, part):
                return None if part.statement == birth.site else part.statement
    return None


def _with_infinity(record: Record, row: Operation) -> bool:
    node = expression_of(record, row)
    return node is not None and any(
        (isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.strip("+-") == "inf")
        or (isinstance(part, ast.Attribute) and part.attr == "inf")
        for part in ast.walk(node)
    )
