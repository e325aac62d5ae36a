"""Columns of snapshots <-> bytes. Pure numpy; knows neither SQL nor records.

A chunk is legal at any length from 1 to 480, so a live run appends short ones, a crash needs no repair, and a reader
never knows. `merge` makes long ones of short ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from store.records.chunk_format import BLOCK, CHUNK, COLUMNS, MISSING, NAN

Array = NDArray[Any]
Columns = Mapping[str, Array]
"""Columns of equal length: `tensor`, `moment`, and of `store.records.chunk_format.COLUMNS` those that are there."""

HEAD: Final = (
    "tensor", "first_moment", "last_moment", "n", "moment_step", "flags_and", "flags_or", "grad_norm_min",
    "grad_norm_max", "nan_total", "inf_total", "version_step",
)  # fmt: skip
NAMES: Final = (*HEAD, "moments", *COLUMNS, "overview")
"""The values of a chunk row, in the order of the table's columns after its key."""

_BITS: Final = {2: "<u2", 4: "<u4", 8: "<u8"}
_STEP_MOST: Final = 2**15 - 1
_COUNT_MOST: Final = 1 << 53
"""A count beyond this is cut before it is summed: the totals are for filters, and must not overflow."""


def pack(column: Array, absent: int = 0) -> bytes | None:
    """One column as bytes: None if every value is the absent one, one element if all are equal, else all.

    Args:
        column: Shape ``[n]``, n >= 1, of a little-endian dtype of 2, 4 or 8 bytes. Equality is of bits: NaNs of
            different payload differ.
        absent: As in `ByteColumn`.
    """
    return _pack_each(column, absent, np.zeros(1, np.intp), [len(column)])[0]


def unpack(stored: bytes | None, n: int, dtype: str, absent: int = 0) -> Array:
    """Decode the `n` values that `pack` was given."""
    if stored is None:
        column = np.full(n, absent, _BITS[np.dtype(dtype).itemsize] if dtype == "<f4" else dtype)
        return column.view(dtype)
    column = np.frombuffer(stored, dtype)
    return np.repeat(column, n) if len(column) == 1 else column


def floats(values: Iterable[float | None]) -> Array:
    """Encode statistics as a float32 column: None becomes `MISSING`, any NaN one canonical NaN, others are rounded."""
    listed = list(values)
    wide = np.array(listed, "<f8")  # None becomes NaN, and is distinguished from NaN below
    with np.errstate(over="ignore"):
        column = wide.astype("<f4")
    odd = np.flatnonzero(np.isnan(wide)).tolist()
    column.view("<u4")[odd] = [MISSING if listed[n] is None else NAN for n in odd]
    return column


def numbers(column: Array) -> list[float | None]:
    """Decode the statistics of a float32 column, None where they are `MISSING`."""
    missing = (column.view("<u4") == MISSING).tolist()
    return [None if gone else value for gone, value in zip(missing, column.tolist(), strict=True)]


def chunk_rows(columns: Columns) -> list[tuple[Any, ...]]:
    """Chunk rows of snapshots that stand in order of (tensor, moment), each in the order of `NAMES`."""
    tensor, moment = columns["tensor"], columns["moment"]
    if not len(tensor):
        return []
    starts = _starts(tensor)
    lengths = np.diff(starts, append=len(tensor)).tolist()
    version_steps = _steps(_column(columns, "version", len(tensor)), starts, lengths)
    packed = [
        _version(columns, starts, lengths, version_steps)
        if name == "version"
        else _pack_column(columns, name, starts, lengths)
        for name in COLUMNS
    ]
    moment_steps, moments = _moments(moment, starts, lengths)
    flags, norm = _column(columns, "flags", len(tensor)), _column(columns, "grad_norm", len(tensor))
    last = np.array(starts) + np.array(lengths) - 1
    heads = (
        tensor[starts].tolist(),
        moment[starts].tolist(),
        moment[last].tolist(),
        lengths,
        moment_steps,
        np.bitwise_and.reduceat(flags, starts).tolist(),
        np.bitwise_or.reduceat(flags, starts).tolist(),
        _numbers_only(np.fmin.reduceat(norm, starts)),
        _numbers_only(np.fmax.reduceat(norm, starts)),
        _total(columns, "nan", starts),
        _total(columns, "inf", starts),
        version_steps,
    )
    return list(zip(*heads, moments, *packed, _overviews(norm, starts, lengths), strict=True))


def chunk_row(columns: Columns) -> tuple[Any, ...]:
    """Build the one row of at most 480 snapshots of one tensor.

    Raises:
        ValueError: they need more than one row.
    """
    rows = chunk_rows(columns)
    if len(rows) != 1:
        raise ValueError(f"{len(rows)} chunk rows, not one: a chunk holds 1 to {CHUNK} snapshots of one tensor")
    return rows[0]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
    """Decode the columns of chunk rows, in the rows' order: the opposite of `chunk_rows`.

    Args:
        rows: At least one; each with the keys of `NAMES`, or with those of `HEAD` and some of the others: then only
            these columns come back, and `tensor` and `moment`.
    """
    wanted = [name for name in COLUMNS if name in rows[0]]
    pieces: dict[str, list[Array]] = {name: [] for name in ("tensor", "moment", *wanted)}
    lengths: list[int] = [row["n"] for row in rows]
    pieces["tensor"] = [np.repeat(np.array([row["tensor"] for row in rows], "<i4"), lengths)]
    pieces["moment"] = [_moments_of(row, n) for row, n in zip(rows, lengths, strict=True)]
    for name in wanted:
        column, stored = COLUMNS[name], [row[name] for row in rows]
        if name != "version" and not any(stored):  # nearly every column of a frozen tensor: one array, not one a row
            pieces[name] = [unpack(None, sum(lengths), column.dtype, column.absent)]
            continue
        values = [unpack(body, n, column.dtype, column.absent) for body, n in zip(stored, lengths, strict=True)]
        pieces[name] = _select_base_versions(rows, values) if name == "version" else values
    return {name: np.concatenate(arrays) for name, arrays in pieces.items()}


def _select_base_versions(rows: Sequence[Mapping[str, Any]], versions: list[Array]) -> list[Array]:
    """Return the versions of chunks. Some chunks keep only their first version and a step."""
    return [
        (version.astype("<i8") + row["version_step"] * np.arange(row["n"], dtype="<i8")).astype("<i4")
        if row["version_step"]
        else version
        for row, version in zip(rows, versions, strict=True)
    ]


def merge(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Merge snapshots into as few rows as possible. `rows`: by (tensor, first_moment), without overlap."""
    if not rows:
        return []
    empty = {name for name in COLUMNS if name != "version" and not any(row[name] for row in rows)}
    return chunk_rows({name: column for name, column in columns_of(rows).items() if name not in empty})


def _starts(tensor: Array) -> list[int]:
    edges = np.flatnonzero(np.diff(tensor)) + 1
    starts: list[int] = []
    bounds: list[int] = [0, *edges.tolist(), len(tensor)]
    for begin, end in pairwise(bounds):
        starts += range(begin, end, CHUNK)
    return starts


def _column(columns: Columns, name: str, n: int) -> Array:
    given = columns.get(name)
    column = COLUMNS[name]
    return unpack(None, n, column.dtype, column.absent) if given is None else given.astype(column.dtype, copy=False)


def _pack_column(columns: Columns, name: str, starts: list[int], lengths: list[int]) -> list[bytes | None]:
    if name not in columns:
        return [None] * len(starts)
    column = COLUMNS[name]
    return _pack_each(columns[name].astype(column.dtype, copy=False), column.absent, starts, lengths)


def _pack_each(values: Array, absent: int, starts: Any, lengths: list[int]) -> list[bytes | None]:
    """`pack` of each stretch of one long column, at the price of a few passes over all of it."""
    width = values.itemsize
    bits = np.ascontiguousarray(values).view(_BITS[width])
    nothing = np.array(absent, f"<i{width}" if absent < 0 else _BITS[width]).view(_BITS[width])
    if (bits == nothing).all():
        return [None] * len(lengths)
    first = bits[starts]
    same = np.logical_and.reduceat(bits == np.repeat(first, lengths), starts).tolist()
    gone = (first == nothing).tolist()
    raw = bits.tobytes()
    packed: list[bytes | None] = []
    for start, length, constant, empty in zip(starts, lengths, same, gone, strict=True):
        begin = int(start) * width
        packed.append(None if constant and empty else raw[begin : begin + (width if constant else width * length)])
    return packed


def _steps(values: Array, starts: list[int], lengths: list[int]) -> list[int]:
    """Of each stretch: the one distance between its neighbours if that is a small non-zero number, else 0."""
    gaps = np.diff(values.astype("<i8"), append=0)
    firsts = gaps[starts]
    as_first = gaps == np.repeat(firsts, lengths)
    as_first[np.array(starts) + np.array(lengths) - 1] = True  # the last has no neighbour in its stretch
    even = np.logical_and.reduceat(as_first, starts) & (np.abs(firsts) <= _STEP_MOST) & (np.array(lengths) > 1)
    return np.where(even, firsts, 0).tolist()


def _version(columns: Columns, starts: list[int], lengths: list[int], steps: list[int]) -> list[bytes | None]:
    values = _column(columns, "version", len(columns["tensor"]))
    plain = _pack_each(values, 0, starts, lengths)
    return [
        pack(values[start : start + 1]) if step else whole
        for start, step, whole in zip(starts, steps, plain, strict=True)
    ]


def _moments(moment: Array, starts: list[int], lengths: list[int]) -> tuple[list[int], list[bytes | None]]:
    steps = [step if length > 1 else 1 for step, length in zip(_steps(moment, starts, lengths), lengths, strict=True)]
    listed = [
        None if step else moment[start : start + length].astype("<i4").tobytes()
        for start, length, step in zip(starts, lengths, steps, strict=True)
    ]
    return steps, listed


def _moments_of(row: Mapping[str, Any], n: int) -> Array:
    if row["moment_step"]:
        return (row["first_moment"] + row["moment_step"] * np.arange(n, dtype="<i8")).astype("<i4")
    return np.frombuffer(row["moments"], "<i4")


def _numbers_only(values: Array) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]  # noqa: PLR0124 - NaN is not itself


def _total(columns: Columns, what: str, starts: list[int]) -> list[int]:
    n = len(columns["tensor"])
    both = [np.minimum(_column(columns, f"{of}_{what}", n), _COUNT_MOST) for of in ("value", "grad")]
    return np.add.reduceat(both[0] + both[1], starts).tolist()


def _overviews(norm: Array, starts: list[int], lengths: list[int]) -> list[bytes | None]:
    found: list[bytes | None] = []
    for start, length in zip(starts, lengths, strict=True):
        stretch = norm[start : start + length]
        if length <= BLOCK or bool(np.isnan(stretch).all()):
            found.append(None)
            continue
        blocks = np.fmax.reduceat(stretch, np.arange(0, length, BLOCK))
        found.append(floats(_numbers_only(blocks)).tobytes())
    return found
