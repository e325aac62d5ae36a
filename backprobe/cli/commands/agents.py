"""`backprobe mcp`: what an agent starts to debug gradients, by the Model Context Protocol on stdin and stdout."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from backprobe.cli.arguments import Subparsers
from backprobe.cli.commands.service_runs import api_key
from backprobe.cli.exit_codes import CLEAN, UsageError


def add_mcp(subparsers: Subparsers) -> None:
    """Add `mcp`."""
    parser = subparsers.add_parser(
        "mcp",
        help="tools for an agent, by the Model Context Protocol",
        description="Speaks the Model Context Protocol on stdin and stdout. Without --allow-run it only reads: runs of "
        "the service at --url, records below --folder, manuals of rules. With it, programs are run as well: in child "
        "processes of this user without a sandbox, or at --url in the service's.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--url", help="of a service that runs programs and keeps runs (default: this machine, no service)"
    )
    parser.add_argument("--allow-run", action="store_true", help="let the agent run programs: they are its own code")
    parser.add_argument(
        "--folder", type=Path, default=Path(), metavar="FOLDER", help="files are read below it (default: here)"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=60.0, metavar="S", help="that a program may run (default: %(default)g)"
    )
    parser.set_defaults(run=_mcp)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of seconds above 0, up to 3600")
    return seconds


def _mcp(args: argparse.Namespace) -> int:
    if not args.folder.is_dir():
        raise UsageError(f"there is no folder `{args.folder}`")
    if args.url is not None and not args.url.startswith(("http://", "https://")):
        raise UsageError(f"`{args.url}` is no address of a service: it begins with http:// or https://")
    try:
        from backprobe.mcp_server.server import serve
    except ModuleNotFoundError as error:
        raise UsageError(f"`mcp` needs the module {error.name!r}: `pip install 'backprobe[mcp]'`") from None
    if sys.stdin.isatty():
        print(
            "backprobe: this is an MCP server; an agent starts it and talks to it over stdin and stdout",
            file=sys.stderr,
        )
    serve(
        folder=args.folder.resolve(),
        url=args.url,
        key=api_key(),
        may_run=args.allow_run,
        seconds=args.seconds,
    )
    return CLEAN
