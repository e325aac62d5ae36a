"""The process of a trial: a program under capture, with texts that stand for some of its files; a record is left.

`python -m backprobe.cli.trials.trial_process FILE`, where FILE holds a `TrialRun` as JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from backprobe.cli.larger_stack import with_a_grown_stack
from backprobe.tiers import GradientCheckMode, Tier


class TrialRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, and how.

    Attributes:
        program: Path of the script, or name of the module. arguments: its own.
        overlay: Texts by resolved path.
        record: Where the record goes.
    """

    program: str
    is_module: bool
    arguments: tuple[str, ...]
    tier: Tier
    every: int | None
    histograms: bool
    seed: int
    check: GradientCheckMode
    overlay: dict[str, str]
    record: str


def main() -> None:
    """Run it; the exit code is the program's."""
    with_a_grown_stack()
    asked = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=TrialRun)
    from backprobe.capture import Options, run_module, run_path
    from backprobe.record.encoding.codec import MAGIC

    options = Options(
        tier=asked.tier,
        every=asked.every,
        histograms=asked.histograms,
        seed=asked.seed,
        check=asked.check,
        overlay=asked.overlay,
    )
    with Path(asked.record).open("wb", buffering=0) as file:

        def sink(data: bytes) -> None:
            file.write(data)

        sink(MAGIC)
        run = run_module if asked.is_module else run_path
        end = run(asked.program, asked.arguments, options, sink)
    sys.exit(end.exit_code)


if __name__ == "__main__":
    main()
