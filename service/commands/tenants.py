"""`backprobe tenant`: lists tenants and what they may use, and changes it, at the machine that holds the database."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from service.commands.keys import opened, refused

if TYPE_CHECKING:
    import argparse

_QUOTAS: Final = {
    "max_queued": "runs that may wait; more are refused",
    "max_running": "runs that should run at once",
    "weight": "share of the workers where all wait: twice the weight, twice the runs",
    "max_record_bytes": "bytes stored, of records and all else; beyond them nothing more is stored",
    "keep_days": "days that a record is kept after its run",
    "max_gpu_seconds": "seconds of the queue gpu in a month (UTC); beyond them submits to it are refused",
}


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
    for name, text in _QUOTAS.items():
        changed.add_argument(f"--{name.replace('_', '-')}", type=int, metavar="N", help=text)
    changed.set_defaults(run=_set)


def _list(arguments: argparse.Namespace) -> int:
    from backprobe.show.plain_text import plain
    from store.access import tenants

    with opened(arguments.home) as (database, _), database.read() as transaction:
        for one in tenants.every(transaction):
            told = "  ".join(f"{name} {value}" for name, value in one.quotas.items())
            print(f"{one.id}  {plain(one.name)}  {told}")
    return 0


def _slots(arguments: argparse.Namespace) -> int:
    from backprobe.show.plain_text import plain
    from store.admin import workers
    from store.admin.tenant_slots import slots_by_tenant

    with opened(arguments.home) as (database, _), database.read() as transaction:
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

    quotas = {name: value for name in _QUOTAS if (value := getattr(arguments, name)) is not None}
    if not quotas:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in _QUOTAS)
        return refused(f"nothing to change: name one of {options}")
    with opened(arguments.home) as (database, _), database.begin() as transaction:
        number = tenants.named(transaction, arguments.name)
        if number is None:
            return refused(f"there is no tenant {arguments.name!r}; `backprobe tenant list` has them")
        try:
            tenants.change(transaction, number, quotas)
        except ValueError as error:
            return refused(str(error))
        found = next(one for one in tenants.every(transaction) if one.number == number)
        entry = audit_log.Entry(
            actor=f"user:{getpass.getuser()}", action="tenant.change", object=found.id, request_id="-", detail=quotas
        )
        audit_log.append(transaction, entry, tenant_id=number)
    print(f"{found.name}: " + ", ".join(f"{name} {value}" for name, value in found.quotas.items()))
    return 0
