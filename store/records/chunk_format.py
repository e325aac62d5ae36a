"""How snapshots lie as bytes: each column of a chunk, its elements, and the value that takes no room.

`chunk_encoding.py` encodes and decodes by this table.

A column is NULL where all its values are the absent one, has one element where all are equal, else one element per
snapshot, little-endian. Elision, not compression: zstd would save 12 % more and cost a dependency and time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from backprobe.record.state_flags import BITS

CHUNK: Final = 480
"""Snapshots in one chunk at most: 480 x 4 bytes is the largest round number that fits one TOAST piece (1,996 bytes)."""

BLOCK: Final = 16
"""Snapshots behind one element of `overview`."""

NAN: Final = 0x7FC00000
"""float32 bits of a statistic that is NaN."""

MISSING: Final = 0x7FC00001
"""float32 bits of a statistic that is not defined or not measured: also a NaN, so a column has no holes."""

IS_LEAF: Final = BITS["is_leaf"]
REQUIRES_GRAD: Final = BITS["requires_grad"]
HAS_GRAD_FN: Final = 8
GRAD_NONE: Final = 16
GRAD_NOT_READ: Final = 32
VALUE_SAMPLED: Final = 64
GRAD_FN_NOT_READ: Final = 128
VALUE_MEASURED: Final = 256
GRAD_MEASURED: Final = 512
GRAD_SAMPLED: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteColumn:
    """One byte column of `snapshot_chunk`.

    Attributes:
        dtype: numpy's name of an element.
        absent: The value that a NULL column has throughout: a number, for float32 the bits of `MISSING`.
        comment: Meaning.
    """

    dtype: str
    absent: int
    comment: str


def _int(dtype: str, comment: str, absent: int = 0) -> ByteColumn:
    return ByteColumn(dtype=dtype, absent=absent, comment=f"{dtype[1:]}; {comment}. Absent: {absent}.")


def _float(comment: str) -> ByteColumn:
    return ByteColumn(dtype="<f4", absent=MISSING, comment=f"f4; {comment}. Absent: NaN 0x7fc00001, not defined.")


_WORDS: Final = {bit: name for name, bit in BITS.items()} | {
    HAS_GRAD_FN: "has grad_fn",
    GRAD_NONE: "grad none",
    GRAD_NOT_READ: "grad not-read",
    VALUE_SAMPLED: "value sampled",
    GRAD_FN_NOT_READ: "grad_fn not read",
    VALUE_MEASURED: "value measured",
    GRAD_MEASURED: "gradient measured",
    GRAD_SAMPLED: "gradient sampled",
}
_FLAGS: Final = "bits " + ", ".join(f"{bit} {word}" for bit, word in sorted(_WORDS.items()))

COLUMNS: Final[dict[str, ByteColumn]] = {
    "flags": _int("<i2", _FLAGS),
    "grad_fn": _int("<i4", "name of its node, counted from 1 in record.grad_fns; 0: none"),
    "why": _int("<i2", "code of the verdict why there is no gradient; always absent so far"),
    "grad_dtype": _int("<i2", "code of the gradient's dtype; always absent so far"),
    "why_site": _int("<i4", "statement that decided why; always absent so far", -1),
    "why_call": _int("<i4", "backward call that decided why; always absent so far", -1),
    "version": _int("<i4", "_version, -1: not known; with version_step only the first"),
    "grad_id": _int("<i4", "identity of the tensor in .grad, -1: none", -1),
    "grad_version": _int("<i4", "_version of the tensor in .grad, -1: none", -1),
    "value_norm": _float("L2 norm of the value"),
    "value_sum": _float("sum of the value"),
    "value_min": _float("least element of the value"),
    "value_max": _float("greatest element of the value"),
    "grad_norm": _float("L2 norm of the gradient"),
    "grad_sum": _float("sum of the gradient"),
    "grad_min": _float("least element of the gradient"),
    "grad_max": _float("greatest element of the gradient"),
    "value_nan": _int("<i8", "NaN in the value"),
    "value_inf": _int("<i8", "infinities in the value"),
    "value_zeros": _int("<i8", "zeros in the value"),
    "value_counted": _int("<i8", "elements looked at in the value"),
    "grad_nan": _int("<i8", "NaN in the gradient"),
    "grad_inf": _int("<i8", "infinities in the gradient"),
    "grad_zeros": _int("<i8", "zeros in the gradient"),
    "grad_counted": _int("<i8", "elements looked at in the gradient"),
    "held_bytes": _int("<i8", "bytes that the graph behind it held; always absent so far"),
}
"""By name, in the order of the table's columns, between `moments` and `overview`."""
