"""`backprobe tenant`: lists tenants and what they may use, and changes it, at the machine that holds the database."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.commands.keys import open_database, print_error
from service.schemas.quota_words import QUOTA_WORDS

if TYPE_CHECKING:
    import argparse


def tenant(subparsers: Any) -> None:
    """Add `backprobe tenant`."""
    parser = subparsers.add_parser(
        "tenant",
        help="list tenants, and change what they may use",
        description="Works on the database itself. `backprobe key create --tenant NAME` makes one.",
    )
    parser.add_argument("--home", type=Path, help="folder of the database (default: BACKPROBE_HOME)")
    under = parser.add_subparsers(dest="under", metavar="COMMAND", required=True)
    under.add_parser("list", help="the tenants and their quotas").set_defaults(run=_list)
    under.add_parser("slots", help="the tenants that hold worker slots now, most first").set_defaults(run=_slots)
    changed = under.add_parser("set", help="change quotas; those that are not named stay")
    changed.add_argument("name", metavar="NAME", help="of the tenant; the first one is `default`")
    for name, text in QUOTA_WORDS.items():
        changed.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
    changed.set_defaults(run=_set)


def _list(arguments: argparse.Namespace) -> int:
    from backprobe.show.plain_text import plain
    from store.access import tenants

    with open_database(arguments.home) as (database, _), database.read() as transaction:
        for tenant in tenants.every(transaction):
            told = "  ".join(f"{name} {value}" for name, value in tenant.quotas.items())
            print(f"{tenant.id}  {plain(tenant.name)}  {told}")
    return 0


def _slots(arguments: argparse.Namespace) -> int:
    from backprobe.show.plain_text import plain
    from store.admin import workers
    from store.admin.tenant_slots import slots_by_tenant

    with open_database(arguments.home) as (database, _), database.read() as transaction:
        live = workers.live(transaction)
        held = slots_by_tenant(transaction)
    for found in held:
        total = sum(node.slots for node in live if found.queue in node.queues)
        print(f"{found.tenant}  {plain(found.name)}  {found.queue}  {found.slots} of {total} slots")
    if not held:
        print("No tenant holds a slot.")
    return 0


def _set(arguments: argparse.Namespace) -> int:
    from store.access import audit_log, tenants

    quotas = {name: value for name in QUOTA_WORDS if (value := getattr(arguments, name)) is not None}
    if not quotas:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in QUOTA_WORDS)
        return print_error(f"nothing to change: name one of {options}")
    with open_database(arguments.home) as (database, _), database.begin() as transaction:
        number = tenants.find_tenant(transaction, arguments.name)
        if number is None:
            return print_error(f"there is no tenant {arguments.name!r}; `backprobe tenant list` has them")
        try:
            tenants.change(transaction, number, quotas)
        except ValueError as error:
            return print_error(str(error))
        found = next(tenant for tenant in tenants.every(transaction) if tenant.number == number)
        entry = audit_log.Entry(
            actor=f"user:{getpass.getuser()}", action="tenant.change", object=found.id, request_id="-", detail=quotas
        )
        audit_log.append(transaction, entry, tenant_id=number)
    print(f"{found.name}: " + ", ".join(f"{name} {value}" for name, value in found.quotas.items()))
    return 0
