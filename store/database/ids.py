"""Public ids: a prefix and a UUIDv7 in Crockford's base32, 26 characters, ordered by time; and the month in them.

Source:
    RFC 9562, 5.7 (UUID version 7): 48 bits of Unix milliseconds, version, 12 + 62 random bits.
"""

from __future__ import annotations

import datetime
import re
import secrets
import time
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUE: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
_LETTERS: Final = 26
_SHAPE: Final = re.compile(r"[a-z]{1,4}_[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FIRST_YEAR: Final = 2020


def new_id(prefix: str, at_ms: int | None = None) -> str:
    """Make a public id, `run_01JD8PZ4T8W2K5C7Q9R3M6X1BA`.

    Args:
        prefix: "run", "snp", "f", ... without the underscore.
        at_ms: Its time in milliseconds since 1970; now by default.
    """
    ms = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    bits = (ms & (1 << 48) - 1) << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return _encode_id(prefix, bits)


def id_range(prefix: str, first_ms: int, last_ms: int) -> tuple[str, str]:
    """Return the least and the greatest id with this prefix and a time from first to last, both included."""
    return _encode_id(prefix, max(first_ms, 0) << 80), _encode_id(prefix, (min(last_ms, (1 << 48) - 1) + 1 << 80) - 1)


def _encode_id(prefix: str, bits: int) -> str:
    letters = "".join(_ALPHABET[bits >> shift & 31] for shift in range(5 * (_LETTERS - 1), -1, -5))
    return f"{prefix}_{letters}"


def is_id(prefix: str, text: str) -> bool:
    """Return whether the text has the shape of an id with this prefix. Such an id may not exist."""
    return text.startswith(f"{prefix}_") and _SHAPE.fullmatch(text) is not None


def milliseconds(public_id: str) -> int:
    """Return the time in an id, in milliseconds since 1970.

    Raises:
        ValueError: it does not have the shape of an id.
    """
    if _SHAPE.fullmatch(public_id) is None:
        raise ValueError(f"{public_id!r} is not a public id")
    bits = 0
    for letter in public_id.partition("_")[2]:
        bits = bits << 5 | _VALUE[letter]
    return bits >> 80


def part(public_id: str) -> int:
    """Months since January 2020 (UTC) of the time in an id: which partition its record lies in.

    Raises:
        ValueError: it does not have the shape of an id.
    """
    at = datetime.datetime.fromtimestamp(milliseconds(public_id) / 1000, datetime.UTC)
    return (at.year - _FIRST_YEAR) * 12 + at.month - 1
