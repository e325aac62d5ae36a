"""Ids of runs that a client makes itself, so that a job can start with the service away."""

from __future__ import annotations

import secrets
import time
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTERS: Final = 26


def new_run_id(milliseconds: int | None = None) -> str:
    """`run_` and a UUIDv7 in Crockford's base32. The service refuses one whose time is far from its own.

    Args:
        milliseconds: Unix time to put into it; None: this machine's.

    Source:
        RFC 9562, 5.7 (UUID version 7): 48 bits of Unix milliseconds, version, 12 + 62 random bits.
    """
    ms = time.time_ns() // 1_000_000 if milliseconds is None else milliseconds
    bits = (ms & (1 << 48) - 1) << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return "run_" + "".join(_ALPHABET[bits >> shift & 31] for shift in range(5 * (_LETTERS - 1), -1, -5))
