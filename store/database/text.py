"""A stranger's text on its way into the database and back: what no database can hold is escaped, and only that.

PostgreSQL stores no NUL, neither in text nor in JSON. U+001A (SUBSTITUTE) is the escape character: NUL becomes
U+001A "0", U+001A itself U+001A "1". Lone surrogates, which UTF-8 cannot carry, become backslash escapes for good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

ESCAPE: Final = "\x1a"
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder()


def encode_text(text: str) -> str:
    """Encode a text as a column keeps it."""
    if ESCAPE in text or "\0" in text:
        text = text.replace(ESCAPE, "\x1a1").replace("\0", "\x1a0")
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text


_FLOAT: Final = f"{ESCAPE}2"
_WHOLE_FROM: Final = 2.0**53
"""From here on every float is a whole number."""

_LARGE: Final = re.compile(rb"[0-9]e[+]?[0-9]|[0-9]{16}")


def decode_text(text: str) -> str:
    """Return the text that `encode_text` encoded."""
    if ESCAPE not in text:
        return text
    return text.replace("\x1a0", "\0").replace("\x1a1", ESCAPE)


def json_text(value: Any) -> str:
    """JSON for a column: NUL escaped, non-finite numbers as the strings "NaN", "Infinity", "-Infinity".

    A float from 2^53 on is escaped too: PostgreSQL keeps it as a whole number of the digits that it was written with.
    """
    try:
        raw = _ENCODER.encode(value)
    except UnicodeEncodeError:
        raw = _ENCODER.encode(_each(value, encode_text))
        return raw.decode()
    if b"\\u0000" in raw or b"\\u001a" in raw or b"null" in raw or _LARGE.search(raw):
        raw = _ENCODER.encode(_each(value, encode_text))
    return raw.decode()


def json_value(text: str | bytes) -> Any:
    """Decode the value of a JSON column. Non-finite numbers stay strings: their reader knows where they are."""
    value = _DECODER.decode(text)
    escaped = b"\\u001a" in text if isinstance(text, bytes) else "\\u001a" in text
    return _each(value, _restored_json) if escaped else value


def _restored_json(text: str) -> str | float:
    return float(text[2:]) if text.startswith(_FLOAT) else decode_text(text)


def _each(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, float) and abs(value) >= _WHOLE_FROM:
        return f"{_FLOAT}{value!r}"
    if isinstance(value, Mapping):
        return {change(str(key)): _each(item, change) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_each(item, change) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, msgspec.Struct):
        return _each(msgspec.to_builtins(value), change)
    return value
