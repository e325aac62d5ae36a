"""Which tensor an expression of the program named at a moment: by the bindings that were in sight there."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, Site

_INSIDE = ".<locals>."
"""Between the name of a function and that of one inside it."""


def tensor_named(record: Record, name: str, site: Site, moment: int) -> int | None:
    """The tensor that a name held at a moment, read in the function of a site; None if it held none that is known."""
    row = binding_named(record, name, site, moment)
    return row.tensor if row is not None else _by_key(record).get(name)


def binding_named(record: Record, name: str, site: Site, moment: int) -> Binding | None:
    """The last binding of a name up to a moment that the function of a site sees.

    It sees its own names, those of the functions around it and of the module; an attribute also from other functions:
    the object is the same one where its path is written the same way in methods of one class.
    """
    parts = site.function.split(_INSIDE)
    functions = [_INSIDE.join(parts[:length]) for length in range(1, len(parts) + 1)]
    owner = site.function.rpartition(".")[0]
    if owner and "." in name:
        functions.append(f"{owner}.")
    return last_bound(record, name, ("<module>", *functions), moment)


def last_bound(record: Record, name: str, functions: Iterable[str], moment: int) -> Binding | None:
    """The last binding of a name in one of these functions up to a moment; `Net.` stands for all methods of `Net`."""
    known, best = _bound_in(record), (-1, -1)
    for function in functions:
        rows = known.get((name, function), ())
        at = bisect_right(rows, moment, key=_moment)
        if at:
            best = max(best, rows[at - 1])
    return None if best[1] < 0 else record.bindings[best[1]]


def _moment(row: tuple[int, int]) -> int:
    return row[0]


@table
def _bound_in(record: Record) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """The moment and the place in the record of each binding, in order, by its name and its function."""
    found: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for at, row in enumerate(record.bindings):
        found[row.name, row.function].append((row.moment, at))
        owner = row.function.rpartition(".")[0]
        if owner and "." in row.name:
            found[row.name, f"{owner}."].append((row.moment, at))
    return {key: sorted(rows) for key, rows in found.items()}


@table
def _by_key(record: Record) -> dict[str, int]:
    """Parameters and buffers by their key, `net.0.weight`, which is how the program may write them."""
    return {row.fqn: row.tensor for row in record.tensors if row.fqn is not None}


def names_in(node: ast.AST) -> list[str]:
    """The names, attributes and elements that an expression reads, as written, the longest of each first."""
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript))
    return list(dict.fromkeys(ast.unparse(part) for part in parts))


def reads_with_default(value: ast.expr, name: str) -> bool:
    """The expression reads an attribute with a default: `getattr(model, "total", 0)`."""
    for part in ast.walk(value):
        match part:
            case ast.Call(func=ast.Name(id="getattr"), args=[held, ast.Constant(value=str(attribute)), *_]):
                if f"{ast.unparse(held)}.{attribute}" == name:
                    return True
            case _:
                pass
    return False
