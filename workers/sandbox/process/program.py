"""What a child is given to run; both sides import this, so it knows msgspec and a few words."""

from __future__ import annotations

import msgspec

from backprobe.tiers import Tier


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, as it travels in a sealed memfd.

    Attributes:
        files: Path to text; entry: one of them, or a module among them; arguments: `sys.argv[1:]`.
        on_disk: The files lie in the working directory; else they are in memory only, and can be imported.
        tier, every, histograms: As `backprobe.capture.Options` has them.
        check: The gradients are checked in full; else not at all, for a copy of the process needs a second one.
        threads: Threads that torch may use.
        record_bytes, record_rows: What capture keeps itself within; what ends the run is a little above.
    """

    files: dict[str, str]
    entry: str
    on_disk: bool = False
    arguments: tuple[str, ...] = ()
    tier: Tier = "full"
    every: int | None = None
    histograms: bool = False
    check: bool = False
    seed: int | None = None
    threads: int = 1
    record_bytes: int = 28 << 20
    record_rows: int = 1_750_000
