"""`backprobe key`: makes, lists and takes back API keys, at the machine that holds the database and the secret."""

from __future__ import annotations

import argparse
import datetime
import getpass
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from service.settings import Settings
    from store.database.session import Database

_DEFAULT = "default"


def key(subparsers: Any) -> None:
    """Add `backprobe key`."""
    parser = subparsers.add_parser(
        "key",
        help="make, list and take back API keys",
        description="Works on the database itself, with the secret of the home: run it where the server runs.",
    )
    parser.add_argument("--home", type=Path, help="folder of database and secret (default: BACKPROBE_HOME)")
    under = parser.add_subparsers(dest="under", metavar="COMMAND", required=True)
    create = under.add_parser("create", help="make a key and print it, this once")
    create.add_argument("name", metavar="NAME", help="for people: who or what will use it")
    create.add_argument(
        "--scope", action="append", metavar="SCOPE", help="what it may do; may be repeated (default: read, runs:write)"
    )
    create.add_argument("--expires", metavar="TIME", help="ISO 8601 with its offset; from then on it opens nothing")
    create.add_argument("--tenant", default=_DEFAULT, metavar="NAME", help="whose it is; made if there is none")
    create.set_defaults(run=_create)
    listed = under.add_parser("list", help="the keys, without their secrets")
    listed.add_argument("--tenant", default=_DEFAULT, metavar="NAME")
    listed.set_defaults(run=_list)
    used = under.add_parser("deprecated", help="which keys, of all tenants, still use operations that will go")
    used.set_defaults(run=_list_deprecated_uses)
    revoke = under.add_parser("revoke", help="revoke a key: it no longer gives access")
    revoke.add_argument("id", metavar="KEY", help="its id, `key_...`")
    revoke.add_argument("--tenant", default=_DEFAULT, metavar="NAME")
    revoke.set_defaults(run=_revoke)


@contextmanager
def open_database(home: Path | None) -> Generator[tuple[Database, Settings]]:
    """Open the database of a home or of the environment, and load the server's settings.

    Raises:
        SystemExit: the environment is wrong, the database does not answer, or its schema is not this version's.
    """
    from store.database import migrator
    from store.database.session import Database, refusal

    try:
        settings = _settings(home)
        _check_schema(at_head=migrator.at_head(settings.store.database_url))
        with closing(Database(settings.store.database_url, durable=True)) as database:
            yield database, settings
    except Exception as error:
        if (why := refusal(error)) is None:
            raise
        raise SystemExit(print_error(why)) from None


def _check_schema(*, at_head: bool) -> None:
    if not at_head:
        raise SystemExit(
            print_error("the database is not at this version's schema; `backprobe migrate` brings it there")
        )


def _settings(home: Path | None) -> Settings:
    """Read the server's settings.

    Raises:
        SystemExit: a variable of the environment is wrong, or the home cannot be read.
    """
    from service.settings import Settings

    try:
        return Settings.from_environment(home=home)
    except ValueError as error:
        raise SystemExit(print_error(str(error))) from None
    except OSError as error:
        raise SystemExit(print_error(f"the home cannot be used: {error.strerror}: {error.filename}")) from None


def print_error(text: str) -> int:
    """Print an error to stderr and return the exit code."""
    print(f"backprobe: {text}", file=sys.stderr)
    return 2


def _expiry(text: str | None) -> str | None:
    from service.web.reply import iso

    if text is None:
        return None
    at = datetime.datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return iso(at.astimezone(datetime.UTC))


def _create(arguments: argparse.Namespace) -> int:
    from service.auth.caller import SCOPES, digest_of, new_key
    from service.web.reply import iso
    from store.access import audit_log, keys, tenants

    scopes = tuple(dict.fromkeys(arguments.scope or ("read", "runs:write")))
    if wrong := [scope for scope in scopes if scope not in SCOPES]:
        return print_error(f"there is no scope {wrong[0]!r}; there are {', '.join(SCOPES)}")
    try:
        expires = _expiry(arguments.expires)
    except (ValueError, OverflowError):
        return print_error(
            f"--expires takes ISO 8601 with its offset, like 2027-01-31T12:00:00Z, not {arguments.expires!r}"
        )
    if expires is not None and expires <= iso(datetime.datetime.now(datetime.UTC)):
        return print_error(f"--expires is {expires}, which is in the past: choose a later time")
    secret, prefix = new_key()
    actor = f"user:{getpass.getuser()}"
    with open_database(arguments.home) as (database, settings), database.begin() as transaction:
        tenant = tenants.find_tenant(transaction, arguments.tenant) or tenants.create(transaction, arguments.tenant)
        digest = digest_of(secret, settings.secret)
        new = keys.NewKey(
            name=arguments.name, prefix=prefix, digest=digest, scopes=scopes, created_by=actor, expires_at=expires
        )
        made = keys.create(transaction, new, tenant_id=tenant)
        entry = audit_log.Entry(
            actor=actor, action="key.create", object=made.id, request_id="-", detail={"scopes": list(scopes)}
        )
        audit_log.append(transaction, entry, tenant_id=tenant)
    print(f"{made.id} may: {', '.join(scopes)}. It is shown this once:", file=sys.stderr)
    print(secret)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from backprobe.show.plain_text import plain
    from store.access import keys, tenants

    with open_database(arguments.home) as (database, _settings), database.read() as transaction:
        tenant = tenants.find_tenant(transaction, arguments.tenant)
        if tenant is None:
            return print_error(f"there is no tenant {arguments.tenant!r}")
        page = keys.page(transaction, tenant_id=tenant, limit=1000)
    for key_row in page.items:
        state = (
            "taken back" if key_row.revoked_at else f"until {key_row.expires_at}" if key_row.expires_at else "no end"
        )
        used = f"used {key_row.last_used_at}" if key_row.last_used_at else "never used"
        print(f"{key_row.id}  bp_{key_row.prefix}  {state}  {used}  {','.join(key_row.scopes)}  {plain(key_row.name)}")
    return 0


def _list_deprecated_uses(arguments: argparse.Namespace) -> int:
    from backprobe.show.plain_text import plain
    from store.access import deprecated_uses as deprecated

    with open_database(arguments.home) as (database, _settings), database.read() as transaction:
        found = deprecated.uses(transaction)
    for use in found:
        print(f"{plain(use.tenant)}  {use.actor}  {use.operation}  {use.times:,} times, last {use.last_at}")
    return 0


def _revoke(arguments: argparse.Namespace) -> int:
    from store.access import audit_log, keys, tenants

    with open_database(arguments.home) as (database, _settings), database.begin() as transaction:
        tenant = tenants.find_tenant(transaction, arguments.tenant)
        if tenant is None or not keys.revoke(transaction, arguments.id, tenant_id=tenant):
            return print_error(f"tenant {arguments.tenant!r} has no key {arguments.id!r} that opens anything")
        entry = audit_log.Entry(
            actor=f"user:{getpass.getuser()}", action="key.revoke", object=arguments.id, request_id="-"
        )
        audit_log.append(transaction, entry, tenant_id=tenant)
    print(f"{arguments.id} is revoked: it no longer gives access")
    return 0
