"""The elements of small tensors: bytes in the tensor's dtype <-> Python numbers.

numpy is loaded when elements are asked for: the lists of rules and commands start without it, 0.1 s earlier.
"""

from __future__ import annotations

from typing import Any, Final

from backprobe.record.rows.tensors import SmallValue

_NUMPY: Final[dict[str, str]] = {
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "int64": "<i8",
    "int32": "<i4",
    "int16": "<i2",
    "int8": "<i1",
    "uint8": "<u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "bool": "?",
    "complex64": "<c8",
    "complex128": "<c16",
    "complex32": "<f2",
    "bfloat16": "<u2",
}

MOST_ELEMENTS: Final = 64
"""Elements of the largest tensor whose values are kept; a dimension of 0 counts as 1 here."""

Number = bool | int | float | complex


def itemsize(dtype: str) -> int | None:
    """Bytes per element of a torch dtype by its short name; None if its elements are not kept."""
    if dtype == "complex32":
        return 4
    code = _NUMPY.get(dtype)
    return None if code is None else int(code[2:] or 1)


def flat(row: SmallValue) -> list[Number]:
    """Return the elements in row-major order."""
    import numpy as np

    raw = np.frombuffer(row.elements, dtype=_NUMPY[row.dtype])
    if row.dtype == "bfloat16":
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    elif row.dtype == "complex32":
        pairs = raw.astype(np.float32).reshape(-1, 2)
        raw = pairs[:, 0] + 1j * pairs[:, 1]
    return raw.tolist()


def nest_elements(row: SmallValue) -> Any:
    """Return the elements as nested lists in the tensor's shape, as `Tensor.tolist()` does; a number for a scalar."""
    import numpy as np

    values: Any = np.array(flat(row), dtype=object).reshape(row.shape)
    return values.tolist() if row.shape else values.item()
