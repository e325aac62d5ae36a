"""Statements that only name a method and do not call it: `optimizer.step`, `loss.backward`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.syntax import statement

if TYPE_CHECKING:
    from backprobe.record import Record, Site


def named_only(record: Record, method: str) -> Iterator[tuple[Site, ast.Attribute]]:
    """The statements that are nothing but `x.method`, in order of the source."""
    for site in record.sites:
        node = statement(record, site)
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Attribute) and value.attr == method and site.kind != "enter":
            yield site, value
