"""Evidence counts backward calls as people do."""

from __future__ import annotations

import pytest

from backprobe.show.evidence import with_calls_from_one


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("backward_call", 0, 1),
        ("freed_by_call", 3, 4),
        ("call", None, None),
        ("calls", [0, 2], [1, 3]),
        ("calls", 3, 3),  # how many there were
        ("tensor", 0, 0),
    ],
)
def test_calls_are_counted_from_one_and_nothing_else_is(name, value, shown) -> None:
    assert with_calls_from_one(name, value) == shown
