"""`--try-fixes`, `--diff`, `--patch` and `--write-fixes`: what `run` does with the fixes of its findings."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from backprobe.cli.exit_codes import OutputLost
from backprobe.cli.trials.program_start import Started, environment_now

if TYPE_CHECKING:
    from backprobe.cli.trials.trial_runs import Trials
    from backprobe.record import Record
    from backprobe.rules import Judgement
    from backprobe.tiers import GradientCheckMode

_BY_ITSELF: Final = "; implies --try-fixes"


def add_trials(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run` that try fixes."""
    parser.add_argument(
        "--try-fixes",
        action="store_true",
        help="run the program again with each fix in it, and say what came of it; no file is changed",
    )
    parser.add_argument(
        "--diff", action="store_true", help=f"print the confirmed safe fixes as a unified diff{_BY_ITSELF}"
    )
    parser.add_argument("--patch", metavar="FILE", type=Path, help=f"write that diff into FILE{_BY_ITSELF}")
    parser.add_argument(
        "--write-fixes",
        action="store_true",
        help=f"write the confirmed safe fixes into the program's files{_BY_ITSELF}",
    )


def wants_trials(args: argparse.Namespace) -> bool:
    """Return whether fixes are to be tried."""
    return args.entry == "run" and bool(args.try_fixes or args.diff or args.patch is not None or args.write_fixes)


def check_mode(args: argparse.Namespace) -> GradientCheckMode:
    """Return how much the gradients of this run are checked."""
    if args.check_gradients is None:
        return "brief" if args.entry == "run" else "off"
    return "full" if args.check_gradients else "off"


def about_to_start(args: argparse.Namespace) -> Callable[[], Started]:
    """Remember where the program is started, and when; called when it has ended, how it was."""
    folder, environment, began = Path.cwd(), environment_now(), time.monotonic()
    if args.module is not None:
        files = folder
    else:
        script = Path(args.script).resolve()
        files = script if script.is_dir() else script.parent

    def build_start() -> Started:
        return Started(
            program=args.named,
            is_module=args.module is not None,
            arguments=tuple(args.arguments),
            files=files,
            folder=folder,
            environment=environment,
            tier=args.tier,
            every=args.every,
            histograms=args.histograms,
            check=check_mode(args),
            seed=args.seed,
            seconds=time.monotonic() - began,
        )

    return build_start


def trials_of(
    args: argparse.Namespace, started: Started, record: Record, judgement: Judgement, stream: TextIO
) -> Trials:
    """Run the trials of a run's fixes; write a line about each to the stream."""
    from backprobe.cli.trials.trial_runs import Trials

    def progress(number: int, total: int, what: str) -> None:
        print(f"backprobe: trying fixes, run {number} of {total}: {what}", file=stream, flush=True)

    return Trials(started, record, judgement, args.options, progress)


def hand_out(args: argparse.Namespace, trials: Trials, judgement: Judgement, files: Path, stream: TextIO) -> None:
    """Print the confirmed safe fixes, or write them, as the options say; report to the stream what was done.

    Args:
        judgement: With what came of the fixes. files: The folder that paths in it are relative to.

    Raises:
        OutputLost: a file cannot be written, or has changed since the program ran.
    """
    if not (args.diff or args.patch is not None or args.write_fixes):
        return
    from backprobe.cli.trials.patch import confirmed_safe, diff, edit_texts, write

    fixes = confirmed_safe(judgement.findings)
    if len(fixes) > 1:
        together = trials.together(fixes)
        if together.verdict != "confirmed":
            print(
                f"backprobe: {len(fixes)} fixes were confirmed alone and not together ({together.why}): none is taken",
                file=stream,
            )
            fixes = []
    count = f"{len(fixes)} confirmed safe {'fix' if len(fixes) == 1 else 'fixes'}"
    try:
        texts = edit_texts(files, fixes, trials.texts)
        if args.diff:
            print(diff(texts), end="", file=stream, flush=True)
        if args.patch is not None:
            args.patch.write_text(diff(texts), encoding="utf-8")
            print(f"backprobe: {count} in {args.patch}", file=stream)
        if args.write_fixes:
            write(texts)
            names = ", ".join(os.path.relpath(path) for path in texts)
            print(f"backprobe: wrote {count}{f' into {names}' if names else ''}", file=stream)
    except (OSError, UnicodeError) as error:
        raise OutputLost(f"the fixed files or the diff could not be written ({error})") from None
