"""`backprobe backup`, `restore`, `vacuum`, `expire`, `stats`, `export`, `import`: on the database itself, where it is.

SQLAlchemy is imported when a command runs, not when `backprobe --help` lists it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backprobe.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from store.database.session import Database
    from store.database.settings import StoreSettings

REFUSED = 2
"""Exit code of what was refused, with nothing changed."""

UNWELL = 1
"""Exit code of `stats --check` where a check fails."""


def _command(
    subparsers: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument(
        "--home", type=Path, help="folder of the database (default: BACKPROBE_HOME, else your data folder)"
    )
    parser.set_defaults(run=partial(_in_one_line, run))
    return parser


def _in_one_line(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run a command; a database that it cannot use is one line, no traceback."""
    from store.database.session import refusal

    try:
        return run(arguments)
    except Exception as error:
        if (why := refusal(error)) is None:
            raise
        return _report_refusal(why)


def backup(subparsers: Any) -> None:
    """Add `backprobe backup`."""
    parser = _command(subparsers, "backup", "copy the whole database into one file; the service may go on", _backup)
    parser.add_argument("file", type=Path, metavar="FILE", help="a new file; pg_dump's custom format on PostgreSQL")


def restore(subparsers: Any) -> None:
    """Add `backprobe restore`."""
    parser = _command(subparsers, "restore", "fill an empty database from a backup", _restore)
    parser.add_argument("file", type=Path, metavar="FILE", help="what `backprobe backup` wrote")


def vacuum(subparsers: Any) -> None:
    """Add `backprobe vacuum`."""
    text = "give free room back to the disk and renew the planner's statistics"
    _command(subparsers, "vacuum", text, _vacuum)


def expire(subparsers: Any) -> None:
    """Add `backprobe expire`."""
    _command(subparsers, "expire", "drop records past their time now, as the reaper does bit by bit", _expire)


def stats(subparsers: Any) -> None:
    """Add `backprobe stats`."""
    parser = _command(subparsers, "stats", "print the service's figures and health checks", _stats)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument("--check", action="store_true", help=f"exit with {UNWELL} if a health check fails")


def export(subparsers: Any) -> None:
    """Add `backprobe export`."""
    parser = _command(subparsers, "export", "write the record of a run into a file, or a folder of Parquet", _export)
    parser.add_argument("id", metavar="RUN", help="its id, `run_...`")
    parser.add_argument("target", type=Path, metavar="TARGET", help="a new file; with --parquet a new folder")
    parser.add_argument("--parquet", action="store_true", help="one Parquet file per table, in a folder")
    parser.add_argument("--tenant", default="default", metavar="NAME", help="whose run (default: %(default)s)")


def import_(subparsers: Any) -> None:
    """Add `backprobe import`."""
    parser = _command(subparsers, "import", "store a record file as a new run, judged by today's rules", _import)
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="what `export`, or `run --save`, wrote; anybody's will do"
    )
    parser.add_argument("--tenant", default="default", metavar="NAME", help="whose run (default: %(default)s)")


def _settings(arguments: argparse.Namespace) -> StoreSettings:
    from store.database.settings import StoreSettings

    try:
        return StoreSettings.from_environment(home=arguments.home)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _report_refusal(text: str) -> int:
    print(f"backprobe: {text}", file=sys.stderr)
    return REFUSED


class _Progress:
    """One line on a terminal, renewed a few times a second; elsewhere a line per tenth."""

    def __init__(self, what: str) -> None:
        self._what, self._at, self._tenth = what, 0.0, -1

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            if now - self._at > 0.2 or done >= 1:
                self._at = now
                print(f"\r{self._what} {done:4.0%}", end="\n" if done >= 1 else "", file=sys.stderr, flush=True)
        elif int(done * 10) > self._tenth:
            self._tenth = int(done * 10)
            print(f"{self._what} {done:4.0%}", file=sys.stderr, flush=True)


def _backup(arguments: argparse.Namespace) -> int:
    from store.admin.backup import CannotBackUp, backup

    settings = _settings(arguments)
    try:
        size = backup(settings.database_url, arguments.file.absolute(), _Progress("copied"))
    except CannotBackUp as error:
        return _report_refusal(str(error))
    print(f"{arguments.file}: {size:,} bytes")
    print(f"The server's secret is not in it: keep a copy of {_place_of_secret(settings)} too.", file=sys.stderr)
    return 0


def _place_of_secret(settings: StoreSettings) -> str:
    from store.access.secret import SECRET_FILE

    return "BACKPROBE_SECRET" if settings.secret is not None else str(settings.home / SECRET_FILE)


def _restore(arguments: argparse.Namespace) -> int:
    from store.admin.backup import CannotBackUp, restore
    from store.database import migrator

    settings = _settings(arguments)
    settings.make_home()
    try:
        revision = restore(settings.database_url, arguments.file, _Progress("restored"))
    except (CannotBackUp, migrator.UnknownRevision) as error:
        return _report_refusal(str(error))
    due = "" if revision == migrator.head() else "; `backprobe migrate` brings it to this version's"
    print(f"restored, at revision {revision}{due}")
    print(
        f"The server's secret is not in a backup: before the service starts, {_place_of_secret(settings)} must be the "
        "secret of the service that was backed up. With another one every API key is invalid, and every webhook needs "
        "a new secret.",
        file=sys.stderr,
    )
    return 0


def _on_database(arguments: argparse.Namespace, work: Callable[[Database, StoreSettings], int]) -> int:
    """Run it on a database that is at this version's schema."""
    from store.database import migrator
    from store.database.session import Database

    settings = _settings(arguments)
    database = Database(settings.database_url)
    if database.sqlite and not Path(database.url.database or "").exists():
        return _report_refusal(f"there is no database at {database.url.database}; --home says where it is")
    try:
        if not migrator.at_head(settings.database_url):
            return _report_refusal("the database is not at this version's schema; `backprobe migrate` brings it there")
        return work(database, settings)
    finally:
        database.close()


def _vacuum(arguments: argparse.Namespace) -> int:
    def work(database: Database, _: StoreSettings) -> int:
        from store.admin.vacuum import vacuum

        before, after = vacuum(database, _Progress("vacuumed"))
        print(f"{before:,} bytes before, {after:,} after")
        return 0

    return _on_database(arguments, work)


def _expire(arguments: argparse.Namespace) -> int:
    def work(database: Database, settings: StoreSettings) -> int:
        from store.records.expiry import partitions, removal
        from store.runs import snippets

        count = rows = 0
        while some := list(removal.expire(database)):
            count, rows = count + len(some), rows + sum(expired.rows for expired in some)
        if settings.max_database_bytes is not None:
            for expired in removal.shrink(database, settings.max_database_bytes, limit=sys.maxsize):
                count, rows = count + 1, rows + expired.rows
        snippets.expire_unused(database, limit=sys.maxsize)
        left, months = removal.leftovers(database), partitions.drop(database)
        whole = f"; months dropped: {', '.join(month.name for month in months)}" if months else ""
        print(f"{count} records dropped, {rows:,} rows; {left} begun earlier were finished{whole}")
        return 0

    return _on_database(arguments, work)


def _export(arguments: argparse.Namespace) -> int:
    def work(database: Database, _: StoreSettings) -> int:
        from store.records import exports

        try:
            record = exports.record_of(database, arguments.id, tenant_id=_tenant(database, arguments.tenant))
            if arguments.parquet:
                print(f"{arguments.target}: {exports.write_parquet(record, arguments.target.absolute())} tables")
            else:
                print(f"{arguments.target}: {exports.write_file(record, arguments.target.absolute()):,} bytes")
        except exports.CannotExport as error:
            return _report_refusal(str(error))
        return 0

    return _on_database(arguments, work)


def _import(arguments: argparse.Namespace) -> int:
    def work(database: Database, _: StoreSettings) -> int:
        from backprobe.record import BadRecord
        from backprobe.rules import judge, why_none
        from store.access import tenants
        from store.recorders.record_uploads import upload
        from store.records import exports

        try:
            record = exports.read_file(arguments.file)
            tenant = _tenant(database, arguments.tenant)
            with database.read() as reading:
                project = tenants.first_project(reading, tenant)
            found, whys = judge(record), why_none(record)
            run = upload(database, record, found, whys, tenant_id=tenant, project_id=project)
        except (exports.CannotExport, BadRecord) as error:
            return _report_refusal(str(error))
        print(f"{run.id}: {run.status}, {len(found.findings)} findings")
        return 0

    return _on_database(arguments, work)


def _tenant(database: Database, name: str) -> int:
    from store.access import tenants
    from store.records.exports import CannotExport

    with database.read() as reading:
        number = tenants.find_tenant(reading, name)
    if number is None:
        raise CannotExport(f"there is no tenant {name!r}")
    return number


def _stats(arguments: argparse.Namespace) -> int:
    def work(database: Database, _: StoreSettings) -> int:
        from store.admin.figures import MEANINGS, figures
        from store.admin.health import checks

        found, answers = figures(database), checks(database)
        if arguments.json:
            told = {"figures": [{"name": f.name, "label": f.label, "value": f.value} for f in found]}
            told["checks"] = [{"name": c.name, "ok": c.ok, "said": c.said} for c in answers]
            print(json.dumps(told))
        else:
            for figure in found:
                name = figure.name + (f"[{figure.label}]" if figure.label else "")
                print(f"{name:32}{figure.value:>16,.0f}  {MEANINGS[figure.name]}")
            for answer in answers:
                print(f"{'ok  ' if answer.ok else 'BAD '} {answer.name:12} {answer.said}")
        return UNWELL if arguments.check and not all(answer.ok for answer in answers) else 0

    return _on_database(arguments, work)
