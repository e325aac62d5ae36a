"""The last statement of the program that gave a tensor its values, its type or its flag, where that explains a symptom.

nn.init.constant_(layer.bias, -10.0)    every relu behind it is dead
net.half()                              its gradients underflow
batch[missing, 2] = float("nan")        the loss is NaN
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.parameter_uses import owners
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import method_called, parts_of, region_in, statement, statement_at
from backprobe.rules.analysis.tensors.parents import made_by
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, Record

_MOST_BIAS: Final = 1.0
"""What a bias starts with: torch's own stay within 1/sqrt(inputs)."""

_MOST_GAIN: Final = 5.0
"""By how much a layer starts to scale: torch's own within 1/sqrt(3), Glorot's and He's within sqrt(2)."""

_LEAST_GAIN: Final = 0.4
"""By how much it scales at the least: torch's own by 1/sqrt(3), where data of one size keep a part of it."""

_UNSCALED: Final = 20.0
"""Root mean square of data that is taken for unscaled: of the order of 1 is what layers start for."""
_TAKE: Final = frozenset({"[]", "index_select", "to", "float", "view", "reshape", "flatten", "unsqueeze", "squeeze"})
"""Operations that hand on elements of data as they are."""

_HALF: Final = frozenset({"float16", "half"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A statement that wrote a tensor."""

    tensor: int
    site: int


def extreme_start(record: Record, leaves: Iterable[int], moment: int, *, least: float = 1.0) -> Origin | None:
    """The statement that gave one of some parameters the most extreme values, of those that the program wrote itself.

    Args:
        moment: Of the first backward call: what is written later is no start.
        least: How far beyond what a layer starts with its values must lie.
    """
    found: list[tuple[float, Origin]] = []
    for leaf in leaves:
        written = written_last(record, leaf, moment)
        excess = excess_of_start(record, leaf, moment)
        if written is not None and excess > least:
            found.append((excess, written))
    return max(found, key=lambda one: one[0])[1] if found else None


def small_start(record: Record, leaves: Iterable[int], moment: int, least: int) -> int | None:
    """The statement that gave most of some weights values below what any usual start gives them.

    Args:
        moment: Of the first backward call. least: Weights that it must have written.
    """
    sites: Counter[int] = Counter()
    for leaf in leaves:
        written = written_last(record, leaf, moment)
        gain = excess_of_start(record, leaf, moment) * _MOST_GAIN
        if written is not None and len(lookup(record).tensors[leaf].shape or ()) > 1 and 0 < gain < _LEAST_GAIN:
            sites[written.site] += 1
    most = sites.most_common(1)
    return most[0][0] if most and most[0][1] >= least else None


def excess_of_start(record: Record, leaf: int, moment: int) -> float:
    """How far the values of a parameter lie beyond what a layer starts with: 1 is the limit."""
    row = lookup(record).tensors[leaf]
    now = state_at(record, leaf, moment)
    values = ([now.value] if now is not None and now.value is not None else []) + [
        one.value for one in lookup(record).snapshots_of[leaf] if one.moment > moment and one.value is not None
    ][:1]  # a write through `.data` is measured with the next version only
    if not row.shape:
        return 0.0
    if len(row.shape) == 1:
        peaks = (max(abs(one.min or 0.0), abs(one.max or 0.0)) for one in values)
        return max(peaks, default=0.0) / _MOST_BIAS
    inputs = prod(row.shape[1:])
    gains = ((one.norm or 0.0) / sqrt(max(row.numel, 1)) * sqrt(inputs) for one in values)
    return max(gains, default=0.0) / _MOST_GAIN


def written_last(record: Record, tensor: int, moment: int) -> Origin | None:
    """The last statement up to a moment that wrote a tensor in place, else the one that made a parameter by hand."""
    rows = [
        (row.moment, row.site)
        for row in lookup(record).inplace_of[tensor]
        if row.done_by == "statement" and row.site is not None and row.moment <= moment
    ]
    rows += [(at, site) for at, site in _untracked_writes(record).get(tensor, ()) if at <= moment]
    if rows:
        return Origin(tensor=tensor, site=max(rows)[1])
    row = lookup(record).tensors[tensor]
    holding = [_modules(record)[one] for one in owners(record).get(tensor, ())]
    made = row.site is not None and row.moment <= moment and all(one.user_code for one in holding)
    return Origin(tensor=tensor, site=row.site) if made and row.site is not None else None


@table
def _modules(record: Record) -> dict[int, Module]:
    return {row.module: row for row in record.modules}


@table
def _untracked_writes(record: Record) -> dict[int, list[tuple[int, int]]]:
    """The statements that write a tensor through `.data`, with the moments before they ended, by tensor."""
    found: dict[int, list[tuple[int, int]]] = {}
    for row in record.operations:
        if row.function.endswith(".data") and row.operands and row.moment is not None:
            node = statement_at(record, row.statement)
            called = node.value if isinstance(node, ast.Expr) else None
            if isinstance(node, ast.AugAssign) or (method_called(called or ast.Pass()) or "").endswith("_"):
                found.setdefault(row.operands[0], []).append((row.moment, row.statement))
    return found


def bad_write(record: Record, tensor: int, since: int) -> int | None:
    """The statement that wrote NaN or an infinity into a tensor's memory, where it was finite before."""
    index = lookup(record)
    storage = index.tensors[tensor].storage
    made = index.tensors[tensor].moment
    rows = [
        row
        for row in record.inplace_events
        if row.site is not None
        and row.moment <= since
        and (row.tensor == tensor or (storage is not None and index.tensors[row.tensor].storage == storage))
    ]
    sites = [row.site for row in rows if row.moment >= made and _names_infinity(record, row.site)]
    return sites[-1] if sites else None


def _names_infinity(record: Record, site: int | None) -> bool:
    """The statement writes NaN or an infinity out: `nan`, `inf`, `float("nan")`."""
    for part in parts_of(statement_at(record, site)):
        if isinstance(part, ast.Attribute | ast.Name):
            text = part.attr if isinstance(part, ast.Attribute) else part.id
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            text = part.value
        else:
            continue
        if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            return True
    return False


def half_cast(record: Record, moment: int) -> int | None:
    """The last statement up to a moment that made parameters float16: `net.half()`, or `dtype=` where a layer is built.

    A cast of a tensor is an operation; what casts and is none is the cast of a module.
    """
    found: list[tuple[int, int]] = []
    operations = _operation_places(record)
    for site in record.sites:
        node = statement(record, site)
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.While | ast.With | None
        ):
            continue
        ran = _first_run(record).get(site.site)
        for call in _casts(node) if ran is not None and ran <= moment else ():
            region = region_in(record, site.source, call)
            if (site.site, region.start_line, region.start_col, region.end_col) not in operations and ran is not None:
                found.append((ran, site.site))
    return max(found)[1] if found else None


def _casts(node: ast.AST) -> Iterator[ast.Call]:
    for part in ast.walk(node):
        if not isinstance(part, ast.Call):
            continue
        typed = [one.value for one in part.keywords if one.arg == "dtype"]
        if method_called(part) in ("to", "type"):
            typed += part.args
        plain = isinstance(part.func, ast.Attribute) and part.func.attr == "half" and not part.args
        if plain or any(isinstance(one, ast.Attribute) and one.attr in _HALF for one in typed):
            yield part


@table
def _operation_places(record: Record) -> frozenset[tuple[int, int, int, int]]:
    return frozenset((row.statement, row.line, row.col, row.end_col) for row in record.operations)


@table
def _first_run(record: Record) -> dict[int, int]:
    """The first moment of each statement."""
    found: dict[int, int] = {}
    for row in record.moments:
        if row.site is not None:
            found.setdefault(row.site, row.moment)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A statement switched a leaf's `requires_grad` off."""

    tensor: int
    site: int
    moment: int


def switched_off(record: Record, leaf: int, moment: int) -> Switch | None:
    """The last statement up to a moment after which a leaf that had required grad did not; None if it does."""
    before = False
    found: Switch | None = None
    for row in lookup(record).snapshots_of[leaf]:
        if row.moment > moment:
            break
        site = lookup(record).moments[row.moment].site
        if before and not row.requires_grad and site is not None:
            found = Switch(tensor=leaf, site=site, moment=row.moment)
        elif row.requires_grad:
            found = None
        before = row.requires_grad
    return found


def unscaled_batch(record: Record, site: int) -> tuple[int, float] | None:
    """The data without a history that go into the statement, where they are far beyond the order of 1.

    The tensor that batches were taken of, and the root mean square of a batch.
    """
    for row in record.operations:
        for tensor in row.operands if row.statement == site and row.requires_grad else ():
            state = state_at(record, tensor, row.moment or 0)
            measured = None if state is None or state.requires_grad else state.value
            if measured is None or measured.norm is None or lookup(record).tensors[tensor].role is not None:
                continue
            size = measured.norm / max(measured.counted, 1) ** 0.5
            if size > _UNSCALED:
                return _taken_of(record, tensor), size
    return None


def _taken_of(record: Record, tensor: int) -> int:
    """The tensor whose rows a batch is: `x` of `x[rows]`, also where a generator gave that away without a name."""
    tensors, seen = lookup(record).tensors, set[int]()
    while tensor not in seen:
        seen.add(tensor)
        one, made = tensors[tensor], made_by(record).get(tensor)
        rows = [made] if made is not None else [row for row in record.operations if (row.moment or 0) <= one.moment]
        above = [
            given
            for row in rows
            for given in row.operands
            if row.function.rpartition(".")[2] in _TAKE and given < tensor
            if tensors[given].dtype == one.dtype and (tensors[given].shape or ())[1:] == (one.shape or ())[1:]
        ]
        tensor = above[-1] if above else tensor
    return tensor
