"""Checks before the service starts; each failure is one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from service.process.home import CannotServe

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.database.settings import StoreSettings

T = TypeVar("T")


def read_settings(read: Callable[[], T]) -> T:
    """Return the settings.

    Raises:
        CannotServe: a variable or the secret is wrong, or the database cannot be asked; one line says which.
    """
    from store.database.session import refusal

    try:
        return read()
    except ValueError as error:
        raise CannotServe(f"{error}.") from None
    except OSError as error:
        raise CannotServe(f"The home cannot be used: {error.strerror}: {error.filename}.") from None
    except Exception as error:
        if (why := refusal(error)) is None:
            raise
        raise CannotServe(f"{why}.") from None


def migrate_database(settings: StoreSettings) -> None:
    """Bring the database to this code's schema.

    Raises:
        CannotServe: it is newer than this code, or does not answer.
    """
    from store.database import migrator
    from store.database.damage import is_damaged
    from store.database.missing_module import missing_module
    from store.database.session import cause_of, refusal

    try:
        migrator.upgrade(settings.database_url)
    except migrator.UnknownRevision as error:
        raise CannotServe(f"{error} Or name another --home.") from None
    except Exception as error:  # noqa: BLE001 - whatever the driver raises, the operator wants one line
        if is_damaged(error) or missing_module(error) is not None:
            raise CannotServe(f"{refusal(error)}.") from None
        where = "the database" if settings.database_url.startswith("sqlite") else "BACKPROBE_DATABASE_URL"
        raise CannotServe(f"Cannot migrate {where}: {cause_of(error)}") from None


def check_migrated(settings: StoreSettings) -> None:
    """Refuse a database that is not at this code's schema.

    Raises:
        CannotServe: it is not, or it does not answer.
    """
    from store.database import migrator
    from store.database.session import refusal

    try:
        current = migrator.at_head(settings.database_url)
    except Exception as error:  # noqa: BLE001 - whatever the driver raises, the operator wants one line
        why = f"the database does not answer ({type(error).__name__}): look at BACKPROBE_DATABASE_URL"
        raise CannotServe(f"{refusal(error) or why}.") from None
    if not current:
        raise CannotServe("The database does not have this version's schema: run `backprobe migrate` first.")
