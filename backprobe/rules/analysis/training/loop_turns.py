"""How many turns a loop makes, where the source tells."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import trees

if TYPE_CHECKING:
    from backprobe.record import Record


def turns_of(record: Record, loop: ast.For | ast.AsyncFor | ast.While) -> int | None:
    """How many turns a `for` over a range makes, where its end is written as a number, or as a name for one."""
    call = loop.iter if isinstance(loop, ast.For) else None
    if not isinstance(call, ast.Call) or last_name(call.func) not in ("range", "trange") or not call.args:
        return None
    end = call.args[-1 if len(call.args) < 3 else 1]
    return _number(record, end)


def _number(record: Record, value: ast.expr) -> int | None:
    """A number that is written, or that the only assignment, keyword or dictionary entry of a name gives."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, int) else None
    key = value.slice if isinstance(value, ast.Subscript) else None
    name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else last_name(value)
    found: list[ast.expr] = []
    for tree in trees(record).values():
        for part in tree.nodes:
            if isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                found += [part.value for one in targets if last_name(one) == name]
            elif isinstance(part, ast.keyword) and part.arg == name:
                found.append(part.value)
            elif isinstance(part, ast.Dict):
                pairs = zip(part.keys, part.values, strict=True)
                found += [one for at, one in pairs if isinstance(at, ast.Constant) and at.value == name]
    numbers = {one.value for one in found if isinstance(one, ast.Constant) and isinstance(one.value, int)}
    return numbers.pop() if len(numbers) == 1 else None
