"""The server's secret: what signs cursors, hashes API keys and makes the secrets of webhooks."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from store.database.settings import StoreSettings

SECRET_BYTES: Final = 32


def server_secret(settings: StoreSettings) -> bytes:
    """That of the settings, for processes that share no home; else the home's, made on first use.

    Raises:
        OSError: the home cannot be written.
    """
    return _of_home(settings.make_home() / "secret") if settings.secret is None else settings.secret


def _of_home(path: Path) -> bytes:
    """The file's bytes; of two processes that make one, the first one's stays."""
    draft = path.with_name(f".secret.{secrets.token_hex(8)}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_bytes(secrets.token_bytes(SECRET_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()
