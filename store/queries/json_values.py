"""Answers as plain JSON values."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

_PLAIN: Final = frozenset({str, int, bool, types.NoneType, bytes})
"""Types whose values stay as they are."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """How a dataclass becomes a dict.

    A page of tensors has 4,000 fields: all are taken at once, and only those that may need it are looked at.

    Attributes:
        names: In JSON, in order. taken: All values. looked_at: names of fields that can hold more than plain values.
    """

    names: tuple[str, ...]
    taken: Callable[[Any], tuple[Any, ...]]
    looked_at: tuple[str, ...]


def _is_plain(hint: Any) -> bool:
    """No value of this annotation needs a second look."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return all(map(_is_plain, typing.get_args(hint)))
    return hint in _PLAIN or typing.get_origin(hint) is Literal


@functools.cache
def _shape(kind: type) -> _Shape | None:
    """Return the shape of a dataclass; None if the type is no dataclass."""
    if not dataclasses.is_dataclass(kind):
        return None
    names = [field.name for field in dataclasses.fields(kind)]
    try:
        hints = typing.get_type_hints(kind)
    except NameError:  # it is annotated with what only a type checker imports: each value is looked at
        hints = {}
    told = {name: "class" if name == "cls" else name for name in names}
    return _Shape(
        names=tuple(told.values()),
        taken=operator.attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, n) for n in names),
        looked_at=tuple(told[name] for name in names if not _is_plain(hints.get(name))),
    )


def as_json(value: Any) -> Any:
    """Plain JSON values of an answer: dicts, lists, text, numbers; "class" for `cls`, text for non-finite numbers."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if (shape := _shape(value.__class__)) is not None:
        made: dict[str, Any] = dict(zip(shape.names, shape.taken(value), strict=True))
        for name in shape.looked_at:
            if type(inner := made[name]) not in _PLAIN:
                made[name] = as_json(inner)
        return made
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [as_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
