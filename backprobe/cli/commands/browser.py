"""`backprobe open RUN|FINDING`: its page of the service, in the browser; the address is printed either way."""

from __future__ import annotations

import argparse
import re
import sys
import webbrowser
from typing import TYPE_CHECKING, Final

from backprobe.cli.arguments import RUN, Subparsers
from backprobe.cli.commands.service_runs import add_address, address, ask
from backprobe.cli.exit_codes import CLEAN, UsageError

if TYPE_CHECKING:
    from backprobe.client import Client

_FINDING: Final = re.compile("f_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def add_open(subparsers: Subparsers) -> None:
    """Add `open`."""
    parser = subparsers.add_parser("open", help="the page of a run or a finding, in the browser", allow_abbrev=False)
    add_address(parser)
    parser.add_argument("--print", action="store_true", help="print the address only")
    parser.add_argument("name", metavar="RUN|FINDING", help="the id of a run (run_...) or of a finding (f_...)")
    parser.set_defaults(run=_open)


def _open(args: argparse.Namespace) -> int:
    if RUN.fullmatch(args.name) is None and _FINDING.fullmatch(args.name) is None:
        raise UsageError(
            f"`{args.name}` is neither the id of a run nor of a finding: one is `run_` or `f_` and 26 letters and "
            "digits; `backprobe runs` lists the runs"
        )
    return ask(args, lambda client: _open_page(client, args))


def _open_page(client: Client, args: argparse.Namespace) -> int:
    base = address(args.url)
    if RUN.fullmatch(args.name):
        page = f"{base}/runs/{client.run(args.name).id}"
    else:
        found = client.call("GET", f"/v1/findings/{args.name}")
        page = f"{base}/runs/{found['run']}#finding-{args.name}"
    print(page, flush=True)
    if not args.print and not webbrowser.open(page):
        print("backprobe: no browser was found; the address is above", file=sys.stderr)
    return CLEAN
