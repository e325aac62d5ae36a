"""The elements of small tensors come back as `Tensor.tolist()` gives them."""

from __future__ import annotations

import struct

import pytest

from backprobe.record import SmallValue, flat, itemsize, nest_elements


def value(dtype: str, shape: tuple[int, ...], elements: bytes) -> SmallValue:
    return SmallValue(tensor=0, moment=0, of="value", dtype=dtype, shape=shape, elements=elements)


@pytest.mark.parametrize(
    ("dtype", "elements", "numbers"),
    [
        ("float32", struct.pack("<2f", 1.5, -2.0), [1.5, -2.0]),
        ("float16", struct.pack("<2e", 0.5, 65504.0), [0.5, 65504.0]),
        ("bfloat16", b"\x80\x3f\x00\xc0", [1.0, -2.0]),
        ("int64", struct.pack("<2q", -1, 2**62), [-1, 2**62]),
        ("uint8", b"\x00\xff", [0, 255]),
        ("bool", b"\x01\x00", [True, False]),
        ("complex64", struct.pack("<4f", 1, 2, 3, -4), [1 + 2j, 3 - 4j]),
        ("complex32", struct.pack("<4e", 1, 2, 3, -4), [1 + 2j, 3 - 4j]),
    ],
)
def test_elements_become_numbers(dtype: str, elements: bytes, numbers: list[object]) -> None:
    row = value(dtype, (2,), elements)
    assert flat(row) == numbers
    assert [type(number) for number in flat(row)] == [type(number) for number in numbers]
    assert itemsize(dtype) == len(elements) // 2


def test_numbers_nest_in_the_tensors_shape() -> None:
    four = struct.pack("<4f", 1, 2, 3, 4)
    assert nest_elements(value("float32", (2, 2), four)) == [[1.0, 2.0], [3.0, 4.0]]
    assert nest_elements(value("float32", (), four[:4])) == 1.0
    assert nest_elements(value("float32", (2, 0), b"")) == [[], []]


def test_a_dtype_whose_elements_are_not_kept_has_no_size() -> None:
    assert itemsize("float8_e4m3fn") is None
