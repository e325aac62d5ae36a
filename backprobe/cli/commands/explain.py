"""`backprobe explain RULE`: the manual, which is the docstring of the rule's own file."""

from __future__ import annotations

import argparse

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exit_codes import CLEAN, UsageError


def add_explain(subparsers: Subparsers) -> None:
    """Add `explain`."""
    parser = subparsers.add_parser("explain", help="the manual of a rule", allow_abbrev=False)
    parser.add_argument("rule", metavar="RULE", help="its name or code: non-leaf-grad-read, BP101")
    parser.set_defaults(run=_explain)


def _explain(args: argparse.Namespace) -> int:
    from backprobe.rules.framework.manual import UnknownRule, manual
    from backprobe.show.formats.manual_text import render

    try:
        print(render(manual(args.rule)))
    except UnknownRule as error:
        raise UsageError(str(error)) from None
    return CLEAN
