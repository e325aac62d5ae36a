"""Answers as plain JSON values."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any


def as_json(value: Any) -> Any:
    """Plain JSON values of an answer: dicts, lists, text, numbers; "class" for `cls`, text for non-finite numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            "class" if field.name == "cls" else field.name: as_json(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [as_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
