"""The field types that record rows share: each caps what a stranger's process may send."""

import sys
from typing import Annotated, Literal

import msgspec

Id = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A dense number in order of first sight, within one table of one record."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Nanoseconds on one monotonic clock, counted from the start of the record."""

Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Finite = Annotated[float, msgspec.Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
"""Neither NaN nor infinite."""

Line = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""1-based."""

Col = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""1-based, in Unicode code points; an end column is exclusive."""

Name = Annotated[str, msgspec.Meta(max_length=512)]
Text = Annotated[str, msgspec.Meta(max_length=8192)]
TailText = Annotated[str, msgspec.Meta(max_length=1 << 16)]
SourceText = Annotated[str, msgspec.Meta(max_length=1 << 20)]
Path = Annotated[str, msgspec.Meta(max_length=4096)]
Dims = Annotated[tuple[Int, ...], msgspec.Meta(max_length=64)]
Ids = Annotated[tuple[Id, ...], msgspec.Meta(max_length=4096)]
Names = Annotated[tuple[Name, ...], msgspec.Meta(max_length=4096)]
SmallBytes = Annotated[bytes, msgspec.Meta(max_length=64 * 16)]
"""At most 64 elements of at most 16 bytes."""

Proof = Literal["seen", "range", "source", "unknown"]
"""How a fact is known: read from torch, from autograd sequence numbers, from the syntax tree, or not at all."""


class Row(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Base of all rows: on the wire an array in the order of its fields.

    Frozen rows of numbers and text cannot be part of a circle: the garbage collector need not walk a million of them.
    """
