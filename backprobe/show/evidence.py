"""The evidence of a finding as people read it: the record counts backward calls from 0, people count them from 1."""

from __future__ import annotations

from typing import Final

_CALLS: Final = frozenset({"backward_call", "call", "calls", "freed_by_call", "walked_by_call"})
"""What rules call a backward call, or a list of some; `calls` may be a count, which stays as it is."""


def with_calls_from_one(name: str, value: object) -> object:
    """Return a value of a finding's evidence with backward calls counted as `after-backward K` does."""
    if name not in _CALLS:
        return value
    if isinstance(value, list | tuple):
        return [item + 1 if isinstance(item, int) else item for item in value]
    return value + 1 if name != "calls" and isinstance(value, int) else value
