"""`backprobe run SCRIPT` and `backprobe watch SCRIPT`: run it as `python SCRIPT` would, judge what was seen, show it.

1. The script owns stdout; our text goes to stderr when the script has ended.
2. Nothing is run before the arguments and files are known to be good.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Self, TextIO

from backprobe.cli.arguments import Subparsers, suggest_nearest
from backprobe.cli.capture_options import DEEP, TIERS, add_sampling
from backprobe.cli.child_records import judged_children, kept_family
from backprobe.cli.exit_codes import INTERRUPTED, OURS, SCRIPT, OutputLost, UsageError
from backprobe.cli.misplaced_options import find_misplaced_option, hint
from backprobe.cli.output import MACHINE, add_output, check_output, exit_code, own_stderr, report
from backprobe.cli.project_settings import build_judge_options
from backprobe.cli.sender_options import add_sending, sender_of
from backprobe.cli.trials.options import about_to_start, add_trials, check_mode, hand_out, trials_of, wants_trials
from backprobe.cli.trials.program_start import announce_run
from backprobe.tiers import EVERY_TIER

if TYPE_CHECKING:
    from backprobe.record import End, Record
    from backprobe.record.processes import Family


_ENDS: Final = (
    "Exit code: 0 clean, 1 findings, 2 usage, 3 we failed, 4 the script did not end well, 130 Ctrl-C. A "
    "script that ends by os._exit, or crashes in native code, takes the report with it; --save keeps the record."
)


def add_parser(subparsers: Subparsers) -> None:
    """Add `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run a script under capture and judge it",
        usage="backprobe run [OPTION...] (SCRIPT | -m MODULE) [ARG...]",
        description="Runs SCRIPT as `python SCRIPT ARG...` would, or MODULE as `python -m MODULE ARG...`. Options of "
        "ours stand before it.",
        epilog=_ENDS,
        allow_abbrev=False,
    )
    parser.add_argument("--tier", choices=EVERY_TIER, help=DEEP)
    add_trials(parser)
    _add_program(parser)
    parser.set_defaults(run=_run, entry="run", own=parser)


def add_watch(subparsers: Subparsers) -> None:
    """Add `watch`."""
    parser = subparsers.add_parser(
        "watch",
        help="the same for a long job: a sample of its steps",
        usage="backprobe watch [OPTION...] (SCRIPT | -m MODULE) [ARG...]",
        description="Runs a training job and takes its first 6 steps in full, then 10, 20, 50, 100, 200 and so on, "
        "and the two after one that went wrong. A step ends with the optimizer's; without one, with a backward call.",
        epilog=_ENDS,
        allow_abbrev=False,
    )
    parser.add_argument("--tier", choices=("state", "grad", "full"), help=TIERS)
    add_sending(parser)
    _add_program(parser)
    parser.set_defaults(run=_run, entry="watch", own=parser)


def _add_program(parser: argparse.ArgumentParser) -> None:
    add_sampling(parser)
    add_output(parser)
    parser.add_argument(
        "--children",
        action="store_true",
        help="record child processes of multiprocessing too, each in a separate file beside that of --save",
    )
    parser.add_argument(
        "--check-gradients",
        action=argparse.BooleanOptionalAction,
        help="compute two steps again in copies of the process, each with a parameter moved, and say for each "
        "parameter whether its gradient is the derivative of the loss. By default `run` compares all parameters "
        "together, in at most 2 s or a tenth of the run; `watch` compares none",
    )
    parser.add_argument(
        "--sources",
        metavar="FOLDER",
        type=Path,
        help="around the script: what is imported from below it is the program's own (default: the script's folder)",
    )
    parser.add_argument("--overlay", metavar="FILE", type=Path, help=argparse.SUPPRESS)  # for clients that try an edit
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the record, for `backprobe show FILE`")
    parser.add_argument(
        "-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module, as `python -m` does"
    )
    parser.add_argument("script", metavar="SCRIPT", nargs="?")
    parser.add_argument("arguments", metavar="ARG", nargs=argparse.REMAINDER, help="the script's own arguments")


def _run(args: argparse.Namespace) -> int:
    if args.format in MACHINE and args.output is None:
        raise UsageError(f"--format {args.format} wants --output FILE: the script owns stdout")
    _check_program(args)
    check_output(args)
    args.options = build_judge_options(args)
    if args.entry == "run":
        announce_run()
    with own_stderr() as stream, kept_family(args) as family:
        return _report_run(args, stream, family)


def _check_program(args: argparse.Namespace) -> None:
    """Say in `args.named` what is run."""
    if args.module is None and args.script is None:
        raise UsageError(
            f"required: SCRIPT, or -m MODULE\nusage: backprobe {args.entry} [OPTION...] (SCRIPT | -m MODULE) [ARG...]"
        )
    if args.module is None:
        _check_script(Path(args.script))
        _check_sources(args)
        args.named = args.script
        return
    if not args.module:
        raise UsageError("-m wants the name of a module")
    if args.sources is not None:
        raise UsageError("--sources goes with a script: of -m, what lies below the current folder is the program's own")
    args.named, *args.arguments = args.module


def _check_sources(args: argparse.Namespace) -> None:
    if args.sources is None:
        return
    if not Path(args.script).resolve().is_relative_to(args.sources.resolve()):
        raise UsageError(f"{args.script} is not inside the folder of --sources, {args.sources}")
    if wants_trials(args):
        raise UsageError("--sources cannot be used when fixes are tried: a trial copies only the script's folder")


def _report_run(args: argparse.Namespace, stream: TextIO, family: Family | None) -> int:
    process, start_of = os.getpid(), about_to_start(args)
    try:
        record, end = _capture_script(args, family)
        if os.getpid() != process:
            return end.exit_code  # a child that the script forked: the report is its parent's
        if record is None:
            print("backprobe: nothing was recorded, so nothing is judged", file=stream)
            return OURS
        from backprobe.rules import judge

        started, judgement = start_of(), judge(record, args.options)
        trials, interrupted = None, _was_interrupted(record)
        if wants_trials(args) and not interrupted:
            trials = trials_of(args, started, record, judgement, stream)
            try:
                judgement = trials.try_fixes()
            except KeyboardInterrupt:  # of the trials alone: the program has run, and may have taken a night
                print("backprobe: interrupted: fixes were not tried", file=stream)
                trials, interrupted = None, True
        children = None if family is None else judged_children(family, args)
        report(record, judgement, args, args.named, stream, children)
        if trials is not None:
            hand_out(args, trials, judgement, started.files, stream)
        if (
            option := find_misplaced_option(args.arguments, args.own, (row.text for row in record.sources))
        ) is not None:
            print(hint(option, args.entry), file=stream, flush=True)
        if "sent" in args:
            print(args.sent, file=stream)
    except OutputLost as error:
        print(f"backprobe: {error}", file=stream)
        return OURS
    if interrupted:
        return INTERRUPTED
    if record.end is None or record.end.exit_code != 0:
        return 0 if args.exit_zero else SCRIPT
    return exit_code([judgement, *(child.judgement for child in children or ())], args)


def _check_script(script: Path) -> None:
    if script.is_dir() and not (script / "__main__.py").exists():
        raise UsageError(f"`{script}` is a folder: name the script in it that is to be run")
    if not script.exists():
        raise UsageError(f"there is no file `{script}`{_nearby(script)}")


def _nearby(script: Path) -> str:
    folder = script.parent
    return suggest_nearest(script.name, (path.name for path in folder.glob("*.py"))) if folder.is_dir() else ""


def _capture_script(args: argparse.Namespace, family: Family | None) -> tuple[Record | None, End]:
    """Run the script; its record, as far as it goes, and how it ended."""
    try:
        from backprobe.capture import Options, run_module, run_path
    except ImportError as error:
        if error.name != "torch":
            raise
        if not isinstance(error, ModuleNotFoundError):
            raise UsageError(str(error)) from None
        raise UsageError(
            "PyTorch is not installed in this Python, and a run needs it. Install it: `pip install 'backprobe[torch]'`."
        ) from None
    from backprobe.record.encoding.codec import MAGIC

    frames: list[bytes] = []
    options = Options(
        tier=args.tier,
        entry=args.entry,
        every=args.every,
        histograms=args.histograms,
        seed=args.seed,
        family=family,
        check=check_mode(args),
        overlay=_overlay(args.overlay),
    )
    with _Saved(args.save) as kept, sender_of(args) as sender:
        kept.write(MAGIC)

        def sink(data: bytes) -> None:
            frames.append(data)  # decoded when the program has ended: it takes longer than the program's own statements
            kept.write(data)
            if sender is not None:
                sender.put(data)

        if args.module is None:
            end = run_path(args.script, args.arguments, options, sink, sources=args.sources)
        else:
            end = run_module(args.named, args.arguments, options, sink)
    if kept.lost is not None:
        raise OutputLost(f"`{args.save}` was not written ({kept.lost}): the record is lost")
    return _decode_record(frames), end


def _overlay(path: Path | None) -> dict[str, str]:
    """Texts that stand for files of the program, by real path: of a file that holds them as JSON."""
    if path is None:
        return {}
    import msgspec

    return msgspec.json.decode(path.read_bytes(), type=dict[str, str])


def _decode_record(frames: list[bytes]) -> Record | None:
    from backprobe.record import FrameReader

    reader = FrameReader(max_bytes=1 << 30)
    for data in frames:
        reader.feed(data)
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
