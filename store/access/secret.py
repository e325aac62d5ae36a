"""The server's secret: what signs cursors, hashes API keys and makes the secrets of webhooks."""

from __future__ import annotations

import contextlib
import os
import secrets
from contextlib import closing
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from store.database.durable_files import sync_to_disk
from store.database.session import Database
from store.database.settings import StoreSettings
from store.tables import api_key, webhook

SECRET_BYTES: Final = 32
"""Of a new secret, and the least of a file: an empty file would make the login cookie and all keys forgeable."""

SECRET_FILE: Final = "secret"  # noqa: S105 - a file's name

_DEPENDS: Final = sa.select(
    sa.or_(
        sa.exists(sa.select(api_key.c.id).where(api_key.c.revoked_at.is_(None))),
        sa.exists(sa.select(webhook.c.id)),
    )
)
"""Whether the database holds a key that opens something, or a webhook."""


class SecretRefused(ValueError):
    """The secret cannot be used or made. The message is one line for the operator, with a way out."""


def server_secret(settings: StoreSettings) -> bytes:
    """Return the secret of the settings, for processes that share no home; else that of the home, made on first use.

    Raises:
        OSError: the home cannot be read or written.
        SecretRefused: the home's secret is too short; or there is none, and the database depends on an earlier one.
        sqlalchemy.exc.DBAPIError: there is none, and the database cannot be asked.
    """
    if settings.secret is not None:
        return settings.secret
    path = secret_path(settings)
    if not path.exists():
        _refuse_if_lost(settings, path)
        _create(path)
    secret = path.read_bytes()
    if len(secret) < SECRET_BYTES:
        raise SecretRefused(
            f"the secret {path} has {len(secret)} bytes and needs at least {SECRET_BYTES}: put your copy of it there; "
            "if you have none, delete the file"
        )
    if len(set(secret)) == 1:
        raise SecretRefused(
            f"the secret {path} is one byte repeated, which anybody can guess: put your copy of it there; if you have "
            "none, delete the file"
        )
    return secret


def secret_path(settings: StoreSettings) -> Path:
    """Return where the home's secret lies; makes the home if it is missing."""
    return settings.make_home() / SECRET_FILE


def _refuse_if_lost(settings: StoreSettings, path: Path) -> None:
    """Go on if nothing in the database was made with a secret.

    Raises:
        SecretRefused: keys or webhooks were.
    """
    with closing(Database(settings.database_url)) as database:
        if database.sqlite and not Path(database.url.database or "").exists():
            return
        with database.read() as reading:
            inspected = sa.inspect(reading)
            is_lost = all(map(inspected.has_table, ("api_key", "webhook"))) and reading.execute(_DEPENDS).scalar_one()
    if is_lost:
        raise SecretRefused(
            f"there is no secret {path}, and the database holds keys or webhooks that were made with one: put your "
            "copy of it there, or set BACKPROBE_SECRET to it. If it is lost, `(umask 077; head -c 32 /dev/urandom > "
            "FILE)` makes a new one: every API key is then invalid, and every webhook needs a new secret"
        )


def _create(path: Path) -> None:
    """Write a new secret that outlives a power cut; of two processes that make one, the first one's stays."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    draft.touch(mode=0o600)
    try:
        draft.write_bytes(secrets.token_bytes(SECRET_BYTES))
        sync_to_disk(draft)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        sync_to_disk(path.parent)
    finally:
        draft.unlink()
