"""Types of which no value is or holds a tensor: taps and statements pass them on at once."""

from __future__ import annotations

from typing import Final

PLAIN: Final = frozenset({int, float, str, bool, type(None), range, bytes, complex})
