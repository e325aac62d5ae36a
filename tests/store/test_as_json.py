"""Answers as plain JSON values: what may need a second look gets it, and nothing else is changed."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pytest

from store.queries import as_json


@dataclasses.dataclass(frozen=True)
class Inner:
    norm: float | None


@dataclasses.dataclass(frozen=True)
class Outer:
    cls: str
    number: int
    words: Literal["a", "b"]
    maybe: str | None
    norm: float
    inner: Inner | None
    many: tuple[Inner, ...]
    told: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Unknown:
    thing: Absent  # noqa: F821 - as of a name that only a type checker imports
    norm: float


@dataclasses.dataclass(frozen=True)
class Empty:
    pass


def test_a_dataclass_is_a_dict_all_the_way_down():
    inner = Inner(norm=float("nan"))
    outer = Outer(cls="Tensor", number=1, words="a", maybe=None, norm=float("inf"), inner=inner, many=(inner, Inner(norm=1.5)), told={"x": [float("-inf"), inner]})  # fmt: skip
    assert as_json(outer) == {
        "class": "Tensor", "number": 1, "words": "a", "maybe": None, "norm": "Infinity", "inner": {"norm": "NaN"},
        "many": [{"norm": "NaN"}, {"norm": 1.5}], "told": {"x": ["-Infinity", {"norm": "NaN"}]},
    }  # fmt: skip
    assert as_json(dataclasses.replace(outer, inner=None))["inner"] is None


def test_annotations_that_cannot_be_read_hide_nothing():
    assert as_json(Unknown(thing=Inner(norm=float("nan")), norm=float("nan"))) == {
        "thing": {"norm": "NaN"},
        "norm": "NaN",
    }


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (Empty(), {}),
        ({1: (True,)}, {"1": [True]}),
        (b"x", b"x"),
        ("text", "text"),
        (float("nan"), "NaN"),
        (2.5, 2.5),
        ([], []),
    ],
)
def test_other_values(value, told):
    assert as_json(value) == told
