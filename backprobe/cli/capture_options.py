"""What `run`, `watch` and `submit` say of how a program is recorded."""

from __future__ import annotations

import argparse
from typing import Final

TIERS: Final = "how much is recorded"
DEEP: Final = f"{TIERS}; deep: runs it again for the op that made the first NaN"


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add `--every`, `--histograms` and `--seed`."""
    parser.add_argument("--every", metavar="N", type=_count, help="take every N-th training step in full; 1: all")
    parser.add_argument(
        "--histograms",
        action="store_true",
        help="at each such step, count the parameters' and gradients' elements by size",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed torch, random and numpy before it starts")


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of 1 or more")
    return number
