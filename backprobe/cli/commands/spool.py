"""`backprobe spool list|send|drop`: records that `watch` could not send, in files below the home."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exit_codes import CLEAN, OURS, UsageError

if TYPE_CHECKING:
    from backprobe.recorder.spool import Spooled


def add_spool(subparsers: Subparsers) -> None:
    """Add `spool`."""
    parser = subparsers.add_parser(
        "spool",
        help="records of training jobs that could not be sent",
        usage="backprobe spool [-h] (list | send | drop) [--home FOLDER] [RUN...]",
        description="Where the service was away, slow or refused, `backprobe watch` keeps the record of a job in files "
        "below BACKPROBE_HOME. `send` sends them with the key in BACKPROBE_API_KEY to the service that each one was "
        "for; `drop` deletes them.",
        epilog="Exit code: 0 done, 2 usage, 3 something is left or was not taken.",
        allow_abbrev=False,
    )
    parser.add_argument("what", choices=("list", "send", "drop"), metavar="{list,send,drop}")
    parser.add_argument("runs", metavar="RUN", nargs="*", default=[], help="of the list; without one, all of them")
    parser.add_argument("--home", type=Path, metavar="FOLDER", help="default: BACKPROBE_HOME, else the user's own")
    parser.add_argument("--url", help="send to this service instead of the one that each was for")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the list")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from backprobe.recorder.spool import list_spooled_runs
    from backprobe.recorder.target import spool_home

    home = spool_home() if args.home is None else args.home / "spool"
    found = list(list_spooled_runs(home))
    known = {spooled.run for spooled in found}
    strange = [run for run in args.runs if run not in known]
    if strange:
        raise UsageError(f"there is no run `{strange[0]}` in {home}; `backprobe spool list` tells which there are")
    chosen = [spooled for spooled in found if not args.runs or spooled.run in args.runs]
    if args.what == "list":
        return _list_spool(chosen, args.format)
    if args.what == "send":
        return _send_spool(chosen, args.url)
    return _drop_runs(chosen)


def _list_spool(found: list[Spooled], form: str) -> int:
    if form == "json":
        print(json.dumps([_spooled_to_json(spooled) for spooled in found], indent=2))
        return CLEAN
    for spooled in found:
        state = "in use" if spooled.in_use else "ended" if spooled.end is not None else "cut off"
        print(f"{spooled.run}  {spooled.size:>12,} bytes  {state:8}  {spooled.url}")
    if not found:
        print("nothing is spooled", file=sys.stderr)
    return CLEAN


def _spooled_to_json(spooled: Spooled) -> dict[str, object]:
    frames = sum(piece.count for piece in spooled.pieces)
    return {
        "run": spooled.run, "url": spooled.url, "bytes": spooled.size, "frames": frames,
        "ended": spooled.end is not None, "in_use": spooled.in_use, "folder": str(spooled.folder),
    }  # fmt: skip


def _send_spool(found: list[Spooled], url: str | None) -> int:
    from backprobe.recorder.connection import Connection, checked_url
    from backprobe.recorder.resending import resend
    from backprobe.recorder.target import key_of

    key, left = key_of(), 0
    for spooled in found:
        try:
            to = checked_url(url or spooled.url)
        except ValueError as error:
            raise UsageError(str(error)) from None
        with contextlib.closing(Connection(to, key)) as connection:
            resent = resend(spooled, connection)
        if resent.left is not None:
            left += 1
            print(f"backprobe: {spooled.run} is left: {resent.left}", file=sys.stderr)
        elif resent.over is not None:
            left += 1
            print(f"backprobe: {spooled.run} is deleted: {to} takes no more of it ({resent.over})", file=sys.stderr)
        elif resent.is_there:
            print(f"{spooled.run}  sent to {to}/runs/{resent.run}")
        else:
            print(f"{spooled.run}  held no frame, and nothing was sent")
    return OURS if left else CLEAN


def _drop_runs(found: list[Spooled]) -> int:
    left = 0
    for spooled in found:
        if spooled.in_use:
            left += 1
            print(f"backprobe: {spooled.run} is left: its job goes on", file=sys.stderr)
            continue
        shutil.rmtree(spooled.folder)
        print(f"{spooled.run}  dropped")
    return OURS if left else CLEAN
