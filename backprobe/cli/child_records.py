"""The records of a run's child processes: where they are kept, and how they are judged."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from backprobe.cli.output import Child

if TYPE_CHECKING:
    from backprobe.record.processes import Family


@contextmanager
def kept_family(args: argparse.Namespace) -> Iterator[Family | None]:
    """Where `--children` has records written; None without it. Without `--save` they are gone afterwards.

    What children of an earlier run left beside the file of `--save` is removed, as that file itself is overwritten.
    """
    if not args.children:
        yield None
        return
    from backprobe.record.processes import Family, left_over

    process, folder = os.getpid(), tempfile.mkdtemp(prefix="backprobe-")
    try:
        record = Path(folder, "run.bprec") if args.save is None else args.save.absolute()
        for path in left_over(record):
            path.unlink()
        yield Family(record=str(record), index=str(Path(folder, "index")))
    finally:
        if os.getpid() == process:  # not in a child that the script forked
            shutil.rmtree(folder, ignore_errors=True)


def judged_children(family: Family, args: argparse.Namespace) -> list[Child]:
    """Judge the children that left a record, each before its own children."""
    from backprobe import judge, load
    from backprobe.record import BadRecord
    from backprobe.record.processes import relatives

    found: list[Child] = []
    for relative in relatives(family.index):
        try:
            record = load(relative.record)
        except (OSError, BadRecord):
            continue  # its parent's record counts it
        path = None if args.save is None else args.save.with_name(relative.record.name)
        found.append(Child(relative.name, relative.pid or 0, path, record, judge(record, args.options)))
    return found
