"""Which tensor an expression of the program named at a moment: by the bindings that were in sight there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.lookup import bindings_named
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, Site


def tensor_named(record: Record, name: str, site: Site, moment: int) -> int | None:
    """The tensor that a name held at a moment, read in the function of a site; None if it held none that is known."""
    row = binding_named(record, name, site, moment)
    return row.tensor if row is not None else _by_key(record).get(name)


def binding_named(record: Record, name: str, site: Site, moment: int) -> Binding | None:
    """The last binding of a name up to a moment that the function of a site sees.

    It sees its own names, those of the functions around it and of the module; an attribute also from other functions:
    the object is the same one where its path is written the same way in methods of one class.
    """
    rows = bindings_named(record)[name]
    seen = [row for row in rows if row.moment <= moment and _is_seen(row, site)]
    return seen[-1] if seen else None


def _is_seen(row: Binding, site: Site) -> bool:
    if row.function in (site.function, "<module>") or site.function.startswith(f"{row.function}.<locals>."):
        return True
    owner = site.function.rpartition(".")[0]
    return bool(owner) and "." in row.name and row.function.rpartition(".")[0] == owner


@table
def _by_key(record: Record) -> dict[str, int]:
    """Parameters and buffers by their key, `net.0.weight`, which is how the program may write them."""
    return {row.fqn: row.tensor for row in record.tensors if row.fqn is not None}


def names_in(node: ast.AST) -> list[str]:
    """The names, attributes and elements that an expression reads, as written, the longest of each first."""
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript))
    return list(dict.fromkeys(ast.unparse(part) for part in parts))
