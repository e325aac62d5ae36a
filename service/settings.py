"""What the web process is told: the environment, read once into a frozen value."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from store.settings import StoreSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECRET_BYTES: Final = 32
THREADS: Final = 16
"""Threads that answer requests; half of them may wait for a run's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one web process.

    Attributes:
        store: Where database and broker are.
        secret: Signs cursors; 32 bytes, kept in the home.
        api_key: What every request must carry; None: loopback only, and nothing is demanded.
        threads: Of the server.
    """

    store: StoreSettings
    secret: bytes
    api_key: str | None = None
    threads: int = THREADS

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ, home: Path | None = None) -> Settings:
        """Read the environment; makes the home and the secret in it where they are missing.

        Raises:
            OSError: the home cannot be written.
        """
        store = StoreSettings.from_environment(environ, home)
        store.make_home()
        return cls(store=store, secret=_secret(store.home / "secret"), api_key=environ.get("BACKPROBE_API_KEY") or None)


def _secret(path: Path) -> bytes:
    """The home's secret, made on first use; of two processes that make one, the first one's stays."""
    draft = path.with_name(f".secret.{secrets.token_hex(8)}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_bytes(secrets.token_bytes(SECRET_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()


def children_environment(store: StoreSettings, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What `serve` gives its children: its own environment, the same home and URLs, without the key: they need none."""
    kept = {name: value for name, value in environ.items() if name != "BACKPROBE_API_KEY"}
    return {
        **kept,
        "BACKPROBE_HOME": str(store.home),
        "BACKPROBE_DATABASE_URL": store.database_url,
        "BACKPROBE_BROKER_URL": store.broker_url,
    }
