"""Text of a stranger's program made fit for a record: cut to its cap, with no lone surrogates."""

from __future__ import annotations

NAME: int = 512
TEXT: int = 8192


def cut(text: str, limit: int = TEXT) -> str:
    """Cut a text to `limit` characters that can be encoded; lone surrogates become backslash escapes."""
    head = text[:limit]
    if head.isascii():
        return head
    return head.encode("utf-8", "backslashreplace").decode("utf-8")[:limit]


def name(text: str) -> str:
    """Cut a name to the length that rows allow."""
    return cut(text, NAME)


def class_name(value: object) -> str:
    """Name of the class of a value."""
    return name(type(value).__qualname__)
