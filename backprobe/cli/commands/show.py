"""`backprobe show RECORD|RUN`, `backprobe rules check RECORD`: a stored record, judged with today's rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.arguments import RUN, Subparsers
from backprobe.cli.commands.service_runs import add_address, ask
from backprobe.cli.exit_codes import UsageError
from backprobe.cli.output import add_output, check_output, exit_code, report
from backprobe.cli.project_settings import build_judge_options

if TYPE_CHECKING:
    from backprobe.client import Client
    from backprobe.record import Record
    from backprobe.rules import JudgeOptions


def add_parser(subparsers: Subparsers) -> None:
    """Add `show`."""
    text = "show a saved record, or a run of the service, and judge it again"
    parser = subparsers.add_parser("show", help=text, allow_abbrev=False)
    add_address(parser)
    _add_record(parser, "a file that `backprobe run --save` wrote, or the id of a run of the service")


def add_check(under: Subparsers) -> None:
    """Add `check` below `rules`."""
    _add_record(under.add_parser("check", help="judge a saved record again, without torch", allow_abbrev=False))


def _add_record(parser: argparse.ArgumentParser, what: str = "a file that `backprobe run --save` wrote") -> None:
    add_output(parser)
    parser.add_argument("record", metavar="RECORD", type=Path, help=what)
    parser.set_defaults(run=show)


def show(args: argparse.Namespace) -> int:
    """Judge a saved record, or that of a run of the service, and report; the exit code.

    Raises:
        UsageError: it cannot be read, or a setting cannot be followed.
    """
    check_output(args)
    options = build_judge_options(args)
    name = str(args.record)
    if hasattr(args, "url") and name.startswith("run_") and not args.record.exists():
        if RUN.fullmatch(name) is None:
            raise UsageError(
                f"`{name}` is neither a file nor the id of a run: an id is `run_` and 26 letters and digits; "
                "`backprobe runs` lists them"
            )
        return ask(args, lambda client: _show_record(_fetch_record(client, name), options, args))
    return _show_record(read_record(args.record), options, args)


def _show_record(record: Record, options: JudgeOptions, args: argparse.Namespace) -> int:
    from backprobe.rules import judge

    judgement = judge(record, options)
    script = record.sources[0].path if record.sources else ""
    report(record, judgement, args, script, sys.stdout)
    return exit_code([judgement], args)


def _fetch_record(client: Client, run: str) -> Record:
    from backprobe.record import BadRecord, loads

    try:
        return loads(client.record(run))
    except BadRecord as error:
        raise UsageError(f"what the service sent is not a record that can be read: {error}") from None


def read_record(path: Path) -> Record:
    """Read the record in a file.

    Raises:
        UsageError: there is none that can be read.
    """
    import backprobe
    from backprobe.record import BadRecord

    try:
        return backprobe.load(path)
    except OSError as error:
        known = "" if RUN.fullmatch(str(path)) is None else "; `backprobe show` takes the id of a run"
        raise UsageError(f"cannot read the record `{path}`: {error.strerror or error}{known}") from None
    except BadRecord as error:
        raise UsageError(f"`{path}` is not a record that can be read: {error}") from None
