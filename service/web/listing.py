"""The shape that every list of the API has."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_args

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Listing(Generic[T]):
    """A page of a list; `next_cursor` leads to the next one, and is null at the end."""

    items: list[T]
    next_cursor: str | None

    def __init_subclass__(cls, **more: Any) -> None:
        """Say what the items are: of a field that is inherited, the document would not know what `T` stands for."""
        super().__init_subclass__(**more)
        (of,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined] - every class with a generic base has it
        cls.__annotations__ = {"items": list[of], **inspect.get_annotations(cls)}
