"""Where `backprobe watch` sends the record of a script while it goes on: options, and the sender behind them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backprobe.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from backprobe.recorder.record_sender import Sender


def add_sending(parser: argparse.ArgumentParser) -> None:
    """Add the options of a record that is sent."""
    parser.add_argument(
        "--url", help="send the record to this service while the script goes on (default: BACKPROBE_URL, else nowhere)"
    )
    parser.add_argument("--project", metavar="PROJECT", help="of the service (default: BACKPROBE_PROJECT)")
    parser.add_argument(
        "--source",
        choices=("functions", "lines", "full", "none"),
        default="functions",
        help="what of the program's text is sent: the functions that the record names, its lines alone, all, or none "
        "(default: functions)",
    )
    parser.add_argument(
        "--ranks",
        choices=("first", "all"),
        default="first",
        help="of a job of several processes, send the first one's record or a run of each (default: first)",
    )


@contextmanager
def sender_of(args: argparse.Namespace) -> Iterator[Sender | None]:
    """Yield the sender of a script's record; None if nothing is sent. `args.sent` says at the end what was sent.

    Raises:
        UsageError: `--url` is no address.
    """
    from backprobe.recorder.target import place_of
    from backprobe.recorder.training_job import JobRequest

    if args.entry != "watch":
        yield None
        return
    asked = JobRequest(url=args.url, project=args.project, ranks=args.ranks, source=args.source)
    try:
        asked.check()
    except ValueError as error:
        raise UsageError(str(error).replace("url=", "--url ")) from None
    place = place_of()
    made = asked.sender(place, tier=args.tier, every=args.every) if asked.sends and asked.records(place) else None
    try:
        yield made
    finally:
        if made is not None:
            made.close({})
            args.sent = made.health.summary()
