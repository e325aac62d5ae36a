"""`backprobe show RECORD`, `backprobe rules check RECORD`: a stored record, judged with today's rules."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exits import UsageError
from backprobe.cli.output import add_output, check_output, exit_code, report
from backprobe.cli.project import settled


def add_parser(subparsers: Subparsers) -> None:
    """Add `show`."""
    parser = subparsers.add_parser("show", help="judge a saved record again", allow_abbrev=False)
    _add_record(parser)


def add_check(under: Subparsers) -> None:
    """Add `check` below `rules`."""
    _add_record(under.add_parser("check", help="judge a saved record again, without torch", allow_abbrev=False))


def _add_record(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("record", metavar="RECORD", type=Path, help="a file that `backprobe run --save` wrote")
    parser.set_defaults(run=show)


def show(args: argparse.Namespace) -> int:
    """Judge a saved record and report; the exit code.

    Raises:
        UsageError: it cannot be read, or a setting cannot be followed.
    """
    import backprobe
    from backprobe.record import BadRecord
    from backprobe.rules import judge

    check_output(args)
    options = settled(args)
    try:
        record = backprobe.load(args.record)
    except OSError as error:
        raise UsageError(f"cannot read the record `{args.record}`: {error.strerror or error}") from None
    except BadRecord as error:
        raise UsageError(f"`{args.record}` is not a record that can be read: {error}") from None
    judgement = judge(record, options)
    script = record.sources[0].path if record.sources else ""
    report(record, judgement, args, script, sys.stdout)
    return exit_code(judgement, args)
