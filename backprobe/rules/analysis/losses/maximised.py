"""Whether the program makes its roots larger: an optimizer with `maximize`, or a gradient that it turns round."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record


@table
def is_maximised(record: Record) -> bool:
    """An optimizer may be told to maximize, or a root is given a gradient: a sign cannot be told then."""
    if any(root.gradient_given for call in record.backward_calls for root in call.roots):
        return True
    return any(
        isinstance(node, ast.keyword) and node.arg == "maximize" and not _is_false(node.value)
        for tree in trees(record).values()
        for node in tree.nodes
    )


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
