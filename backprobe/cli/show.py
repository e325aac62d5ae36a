"""`backprobe show RECORD`: a stored record, judged again with today's rules. Torch is not needed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exits import UsageError
from backprobe.cli.output import add_output, check_output, exit_code, report


def add_parser(subparsers: Subparsers) -> None:
    """Add `show`."""
    parser = subparsers.add_parser("show", help="judge a saved record again", allow_abbrev=False)
    add_output(parser)
    parser.add_argument("record", metavar="RECORD", type=Path, help="a file that `backprobe run --save` wrote")
    parser.set_defaults(run=_show)


def _show(args: argparse.Namespace) -> int:
    import backprobe
    from backprobe.record import BadRecord

    check_output(args)
    try:
        record = backprobe.load(args.record)
    except OSError as error:
        raise UsageError(f"cannot read the record `{args.record}`: {error.strerror or error}") from None
    except BadRecord as error:
        raise UsageError(f"`{args.record}` is not a record that can be read: {error}") from None
    judgement = backprobe.judge(record)
    script = record.sources[0].path if record.sources else ""
    report(record, judgement, args, script, sys.stdout)
    return exit_code(judgement, args)
