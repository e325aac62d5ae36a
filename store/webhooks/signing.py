"""The secrets that sign webhooks: made from the server's secret and a random seal, and only the seal is stored.

1. The database alone signs nothing; the server's secret alone signs nothing either.
2. A seal says whether it is this server's: with another secret nothing is sent, rather than with a wrong signature.

Source:
    Standard Webhooks 1.0.0: `v1,` and base64 of HMAC-SHA-256 over `id.timestamp.body`; secrets of 24 to 64 bytes in
    base64 behind `whsec_`; several signatures are joined by blanks.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

_SALT_BYTES: Final = 32
_CHECK_BYTES: Final = 16


class ForeignSeal(Exception):
    """This webhook was made under another secret of the server."""

    def __init__(self) -> None:
        super().__init__(
            "the webhook was made under another secret of the server: give this process the same BACKPROBE_SECRET, "
            "or the same home, or rotate the webhook's secret"
        )


def new_seal(server_secret: bytes) -> bytes:
    """Make the seal of a new secret, to be stored."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return salt + _derive_key(server_secret, b"webhook check", salt)[:_CHECK_BYTES]


def unseal_secret(seal: bytes, server_secret: bytes) -> bytes:
    """Derive the 32 bytes that sign from a seal.

    Raises:
        ForeignSeal: it was not made with this server's secret; the operator must act.
    """
    salt, check = seal[:_SALT_BYTES], seal[_SALT_BYTES:]
    if not hmac.compare_digest(check, _derive_key(server_secret, b"webhook check", salt)[:_CHECK_BYTES]):
        raise ForeignSeal
    return _derive_key(server_secret, b"webhook secret", salt)


def _derive_key(server_secret: bytes, purpose: bytes, salt: bytes) -> bytes:
    return hmac.digest(hmac.digest(server_secret, b"backprobe " + purpose, "sha256"), salt, "sha256")


def secret_text(key: bytes) -> str:
    """Format a secret as its owner gets it: `whsec_...`."""
    return "whsec_" + base64.b64encode(key).decode()


def signature(keys: Sequence[bytes], event_id: str, timestamp: int, body: bytes) -> str:
    """Make the `webhook-signature` header: one signature for each key.

    Args:
        keys: The bytes that sign, the newest first.
        event_id: The `webhook-id`. timestamp: Unix seconds, the `webhook-timestamp`.
        body: As it is sent.
    """
    signed = f"{event_id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)
