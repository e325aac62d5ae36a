"""In-place changes that torch refused: the statement, what it wrote to, and the tensor that this is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import raised_as

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site, Tensor

_INDEX: Final = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One exception over a change in place.

    Attributes:
        site: The user's statement in which it was raised.
        written: What the statement writes to, as the source has it: `w`, `w[0]`, `self.table.data`. None: the write is
            inside a library.
        name: The part of `written` that names a tensor; "a tensor" where nothing does.
        tensor: The tensor of that name then. None: the record does not tell.
    """

    raised: Raised
    site: Site
    written: ast.expr | None
    name: str
    tensor: Tensor | None


def refused(record: Record, *families: str) -> Iterator[Refused]:
    """The exceptions of these families that were raised in the user's files, in order."""
    for raised in raised_as(record, *families):
        if raised.site is None:
            continue
        site = site_of(record, raised.site)
        found: Refused | None = None
        for written in _written(record, site):
            name, tensor = _named(record, written, site, raised.moment)
            if found is None or (found.tensor is None and tensor is not None):
                found = Refused(raised=raised, site=site, written=written, name=name, tensor=tensor)
        yield found or Refused(raised=raised, site=site, written=None, name="a tensor", tensor=None)


def _written(record: Record, site: Site) -> Iterator[ast.expr]:
    """What a statement changes in place: of `w += 1` and `w[0] = 1` the target, of `w.add_(1)` what it is called on."""
    node = statement(record, site)
    if isinstance(node, ast.AugAssign):
        yield node.target
    elif isinstance(node, ast.Assign):
        yield from (target for target in node.targets if isinstance(target, ast.Subscript))
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Call):
            written = _written_by(record, site, part)
            if written is not None:
                yield written


def _written_by(record: Record, site: Site, call: ast.Call) -> ast.expr | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    out = next((given.value for given in call.keywords if given.arg == "out"), None)
    if out is not None:
        return out
    of_torch = dotted(record, site, call.func) is not None
    switched = any(
        given.arg == "inplace" and isinstance(given.value, ast.Constant) and given.value.value is True
        for given in call.keywords
    )
    if switched or (of_torch and name.endswith("_") and not name.endswith("__")):
        return call.args[0] if call.args else None
    if isinstance(call.func, ast.Attribute) and name.endswith("_") and not name.endswith("__"):
        return call.func.value
    return None


def _named(record: Record, written: ast.expr, site: Site, moment: int | None) -> tuple[str, Tensor | None]:
    """The longest part of an expression that names a tensor, and that tensor."""
    part: ast.expr | None = written
    while part is not None:
        tensor = _held(record, ast.unparse(part), site, moment)
        if tensor is not None:
            return ast.unparse(part), lookup(record).tensors[tensor]
        if isinstance(part, ast.Call):
            part = part.func
        elif isinstance(part, ast.Attribute | ast.Subscript | ast.Starred):
            part = part.value
        else:
            part = None
    return ast.unparse(written), None


def _held(record: Record, text: str, site: Site, moment: int | None) -> int | None:
    """The tensor that a path of names held: a binding, else a parameter or buffer by its key."""
    at = moment if moment is not None else record.moments[-1].moment if record.moments else 0
    found = tensor_named(record, text, site, at)
    if found is None:
        found = tensor_named(record, _INDEX.sub(r".\1", text), site, at)
    if found is None and text.startswith("self."):
        ends = [row.tensor for row in record.tensors if row.fqn is not None and row.fqn.endswith(text[4:])]
        found = ends[0] if len(ends) == 1 else None
    return found
