"""Runs a script as `python script argv` would, under capture with a given tier and caps, and notes how it ended.

usage: python capture_with.py NOTE TIER CAPS SCRIPT [ARGUMENT ...]
CAPS is `usual` or `none`; with `none` every execution of every statement and call, and every step, is taken in full.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from backprobe.capture import Caps, Options, run_path

MANY = 10**15
EVERYTHING = Caps(
    record_bytes=MANY, rows=MANY, tensors=MANY, site_times=MANY, function_times=MANY, call_times=MANY, warnings=MANY
)


class Amount:
    """A sink that keeps the number of bytes only."""

    def __init__(self) -> None:
        self.bytes = 0

    def __call__(self, piece: bytes) -> None:
        self.bytes += len(piece)


def main(note: str, tier: Any, caps: str, script: str, arguments: list[str]) -> int:
    """Run, write the note, give the program's exit code."""
    amount = Amount()
    options = Options(tier=tier, caps=EVERYTHING, every=1) if caps == "none" else Options(tier=tier)
    end = run_path(Path(script), arguments, options, amount)
    found = {
        "own_errors": end.own_errors, "own_error": end.own_error, "ending": end.ending, "bytes": amount.bytes,
        "own_seconds": end.own_ns / 1e9, "seconds": end.duration_ns / 1e9,
    }  # fmt: skip
    Path(note).write_text(json.dumps(found))
    return end.exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5], sys.argv[5:]))
