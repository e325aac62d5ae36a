"""Opaque, signed places in a list: a client can hand one back, and neither read meaning into it nor make one.

The signature binds the place to its list, run and filters, so that a cursor of another list is refused rather than
answered wrongly.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING, Any, Final

import msgspec

from service.problems.errors import Place, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VERSION: Final = 1
_MAC_BYTES: Final = 16
LONGEST: Final = 512
"""Characters of a cursor."""


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


class Cursors:
    """Signs and checks cursors with the home's secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"backprobe cursor", "sha256")

    def _mac(self, listing: str, filters: Mapping[str, Any], key: bytes) -> bytes:
        scope = msgspec.json.encode([_VERSION, listing, sorted((name, str(value)) for name, value in filters.items())])
        return hmac.digest(self._secret, hashlib.sha256(scope).digest() + key, "sha256")[:_MAC_BYTES]

    def sign(self, listing: str, filters: Mapping[str, Any], key: Sequence[int | float | str | None]) -> str:
        """Sign the cursor that leads behind `key` in the list of that name with these filters."""
        raw = msgspec.json.encode(list(key))
        return _text(self._mac(listing, filters, raw) + raw)

    def read(self, listing: str, filters: Mapping[str, Any], cursor: str) -> list[Any]:
        """Return the key that was signed.

        Raises:
            Problem: `bad-cursor`: not ours, or of another list or other filters.
        """
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        mac, key = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        ours = _text(raw) == cursor and hmac.compare_digest(mac, self._mac(listing, filters, key))
        if len(cursor) > LONGEST or not ours:
            detail = "This cursor was not made for this list with these parameters."
            raise Problem("bad-cursor", detail, places=(Place(parameter="cursor", code="bad-cursor", detail=detail),))
        return msgspec.json.decode(key)
