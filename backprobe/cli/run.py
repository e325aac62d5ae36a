"""`backprobe run SCRIPT`: run it here as `python SCRIPT` would, judge what was seen, show it.

1. The script owns stdout; our text goes to stderr when the script has ended.
2. Nothing is run before the arguments and files are known to be good.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, TextIO

from backprobe.cli.arguments import Subparsers
from backprobe.cli.exits import INTERRUPTED, OURS, SCRIPT, OutputLost, UsageError
from backprobe.cli.output import MACHINE, add_output, check_output, exit_code, own_stderr, report

if TYPE_CHECKING:
    from backprobe.record import Record


def add_parser(subparsers: Subparsers) -> None:
    """Add `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run a script under capture and judge it",
        usage="backprobe run [OPTION...] SCRIPT [ARG...]",
        description="Runs SCRIPT as `python SCRIPT ARG...` would. Options of ours stand before SCRIPT.",
        epilog="Exit code: 0 clean, 1 findings, 2 usage, 3 we failed, 4 the script did not end well, 130 Ctrl-C. A "
        "script that ends by os._exit, or crashes in native code, takes the report with it; --save keeps the record.",
        allow_abbrev=False,
    )
    parser.add_argument("--tier", choices=("state", "grad", "full"), default="full", help="how much is recorded")
    add_output(parser)
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the record, for `backprobe show FILE`")
    parser.add_argument("script", metavar="SCRIPT", type=Path)
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="the script's own arguments")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.format in MACHINE and args.output is None:
        raise UsageError(f"--format {args.format} wants --output FILE: the script owns stdout")
    _check_script(args.script)
    check_output(args)
    with own_stderr() as stream:
        return _reported(args, stream)


def _reported(args: argparse.Namespace, stream: TextIO) -> int:
    try:
        record = _captured(args)
        if record is None:
            print("backprobe: nothing was recorded, so nothing is judged", file=stream)
            return OURS
        from backprobe.rules import judge

        judgement = judge(record)
        report(record, judgement, args, str(args.script), stream)
    except OutputLost as error:
        print(f"backprobe: {error}", file=stream)
        return OURS
    if _was_interrupted(record):
        return INTERRUPTED
    if record.end is None or record.end.exit_code != 0:
        return 0 if args.exit_zero else SCRIPT
    return exit_code(judgement, args)


def _check_script(script: Path) -> None:
    if script.is_dir():
        raise UsageError(f"`{script}` is a folder: name the script in it that is to be run")
    if not script.is_file():
        raise UsageError(f"there is no file `{script}`{_nearby(script)}")


def _nearby(script: Path) -> str:
    from backprobe.cli.parser import nearest

    folder = script.parent
    return nearest(script.name, (path.name for path in folder.glob("*.py"))) if folder.is_dir() else ""


def _captured(args: argparse.Namespace) -> Record | None:
    """Run the script; its record, as far as it goes."""
    try:
        from backprobe.capture import Options, run_path
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UsageError(
            "PyTorch is not installed in this Python, and a run needs it. Install it: `pip install 'backprobe[torch]'`."
        ) from None
    from backprobe.record import FrameReader
    from backprobe.record.codec import MAGIC

    reader = FrameReader(max_bytes=1 << 30)
    with _Saved(args.save) as kept:
        kept.write(MAGIC)

        def sink(frames: bytes) -> None:
            reader.feed(frames)
            kept.write(frames)

        run_path(args.script, args.arguments, Options(tier=args.tier, entry="run"), sink)
    if kept.lost is not None:
        raise OutputLost(f"`{args.save}` was not written ({kept.lost}): the record is lost")
    return reader.record()


class _Saved:
    """The file of `--save`, or none; the first write that fails is kept, for a sink never raises.

    Attributes:
        lost: Why the file is not whole; None while it is.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.lost: str | None = None

    def __enter__(self) -> Self:
        self._file: BinaryIO | None = None if self._path is None else self._path.open("wb", buffering=0)
        return self

    def write(self, frames: bytes) -> None:
        if self._file is None or self.lost is not None:
            return
        try:
            self._file.write(frames)
        except OSError as error:
            self.lost = error.strerror

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _was_interrupted(record: Record) -> bool:
    end = record.end
    if end is None or end.exception is None:
        return False
    return any(row.n == end.exception and row.type == "KeyboardInterrupt" for row in record.raised)
