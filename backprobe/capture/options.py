"""What a run is captured with: its tier and the caps that bound the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from backprobe.record.processes import Family
from backprobe.record.record import Entry, Tier
from backprobe.tiers import GradientCheckMode

PARTS_OF_A_DECADE: Final = (1, 2, 5)

WATCHED_STEPS: Final = 5
"""Steps of a watched job that are taken in full before they thin out, however many `Options.first_steps` are: twenty in
a row made the first twenty steps of an LSTM cell's training 1.5 times as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The most that is kept of each kind; one that bites leaves a truncation row.

    Attributes:
        record_bytes: Encoded bytes in all, never exceeded; rows: rows in all. An eighth of each (at least 24 KiB, 64
            rows) is for what still comes when the rest is full: exceptions, warnings, what is missing, the end.
        tensors: Distinct tensors. nodes_per_call: Autograd nodes walked for one backward call.
        exact_tensors: Up to so many live tensors are compared again after a statement; beyond it only those it names.
        site_times: Executions of one statement kept in full; later ones thin out to 1-2-5 per decade.
        operation_times: Likewise, times that an operation inside a statement is looked at.
        call_times: Backward calls of one site, and calls of one module, kept in full before they thin out in a program
            without steps. light_steps: Steps not taken in full that have a row each.
        step_walks: Backward calls walked in one step. step_calls: Module calls kept in one step.
        elements: Elements of the largest tensor whose values are kept one by one.
        statistic_elements: Elements of the largest tensor reduced as a whole; of larger ones `block_elements` are.
        tuple_elements: Elements of a tuple, list or dict, or fields of a dataclass, that are looked at.
        warnings: Distinct warnings. source_bytes: Bytes of one source file. frames: Frames of a traceback.
    """

    record_bytes: int = 31 << 20
    rows: int = 1_500_000
    tensors: int = 100_000
    nodes_per_call: int = 20_000
    exact_tensors: int = 256
    site_times: int = 50
    operation_times: int = 50
    function_times: int = 20
    call_times: int = 20
    light_steps: int = 2000
    step_walks: int = 100
    step_calls: int = 1000
    elements: int = 64
    statistic_elements: int = 1 << 26
    block_elements: int = 1 << 22
    tuple_elements: int = 16
    warnings: int = 200
    source_bytes: int = 900_000
    frames: int = 60
    eager_statements: int = 256
    flush_seconds: float = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one run is captured.

    Attributes:
        tier: "state" walks no graph; "grad" walks it, without statistics and values; "full" takes both; "deep" runs the
            program again for the op that made the first NaN.
        entry: Who asked for the run, as the record's header names it.
        first_steps: Steps taken in full before they thin out to 1-2-5 per decade; `WATCHED_STEPS` at most for "watch".
        first_facts: Moments and graph nodes up to which all steps are taken, but for the entry "watch".
        every: Steps are taken in full at this distance instead; 1: all of them. None: as `first_steps` says.
        histograms: At each step taken in full, how many elements of each parameter and gradient are of which size.
        seed: Seeds torch, `random` and numpy before the program starts; None leaves them as a plain start would.
        check: Whether the gradients that the first and the third step use are compared with the derivative of the loss.
        around: Entered around the program, with its recorder; for the second run of the deep tier.
        family: Where the records of child processes go; None: they are not followed.
        overlay: Texts that stand for files of the program in this run, by resolved path. No file is written, and
            processes that the program starts again read the disk.
    """

    tier: Tier = "full"
    entry: Entry = "run"
    first_steps: int = 20
    first_facts: int = 5_000
    every: int | None = None
    histograms: bool = False
    seed: int | None = None
    caps: Caps = field(default_factory=Caps)
    check: GradientCheckMode = "off"
    around: Callable[[Any], AbstractContextManager[Any]] | None = None
    family: Family | None = None
    overlay: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def steps_in_full(self) -> int:
        """Steps taken in full before they thin out."""
        return min(self.first_steps, WATCHED_STEPS) if self.entry == "watch" else self.first_steps

    @property
    def walks(self) -> bool:
        """Graphs are walked."""
        return self.tier != "state"

    @property
    def measures(self) -> bool:
        """Values and gradients are read."""
        return self.tier in ("full", "deep")


def is_kept(times: int, in_full: int) -> bool:
    """Whether the `times`-th (from 1) of a kind is kept: the first `in_full`, then 1-2-5 per decade.

    After the first ones those are the 20th, 50th, 100th, 200th, 500th, 1000th ...
    """
    if times <= in_full:
        return True
    decade = 1
    while decade * 10 <= times:
        decade *= 10
    leading, rest = divmod(times, decade)
    return rest == 0 and leading in PARTS_OF_A_DECADE
