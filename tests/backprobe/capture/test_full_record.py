"""A record that is full: it stays below its caps however long the program goes on, says so, and the program ends well."""

from __future__ import annotations

import dataclasses

import pytest

from backprobe.capture import run_files
from backprobe.capture.options import Caps, Options
from backprobe.record import End, FrameReader, Record, check

LOOP = """
import torch
x = torch.ones(3, requires_grad=True)
for i in range(TIMES):
    y = (x * 2).sum()
    y.backward()
"""
ERRORS = """
import torch
for i in range(TIMES):
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError:
        pass
torch.ones(1).backward()
"""
IDLE = """
import torch
from backprobe.capture.instrument.taps import Active
x = torch.ones(3, requires_grad=True)
for i in range(TIMES):
    y = (x * 2).sum()
    y.backward()
raise SystemExit(Active.attending is None)
"""


def full(source: str, times: int, tier: str, **caps: int) -> tuple[Record, End, int]:
    """A record, how the program ended, and the bytes of the stream; everything is flushed at every statement."""
    frames: list[bytes] = []
    within = dataclasses.replace(Caps(), flush_seconds=0.0, eager_statements=1 << 30, **caps)
    files = {"a.py": source.replace("TIMES", str(times))}
    end = run_files(files, "a.py", (), Options(tier=tier, caps=within), frames.append)  # type: ignore[arg-type] a tier
    reader = FrameReader(max_rows=within.rows)
    reader.feed(b"".join(frames))
    record = reader.record()
    assert record is not None
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    return record, end, sum(map(len, frames))


@pytest.mark.parametrize("tier", ["full", "grad"])
def test_a_long_loop_ends_well_below_the_cap_and_says_what_is_missing(tier: str) -> None:
    most = 56 << 10
    record, end, size = full(LOOP, 1200, tier, record_bytes=most)
    assert size <= most
    assert (end.ending, end.exit_code) == ("ended", 0)
    told = {row.what: row for row in record.truncations}
    assert told["record bytes"].limit == most
    assert len(record.backward_calls) > 5, "the beginning is there"
    assert len(record.backward_calls) < 1200, "the rest is not"


@pytest.mark.parametrize("most", [24 << 10, 27_000, 30_000, 37_000, 44_000, 52_000])
def test_a_record_is_sound_wherever_it_is_full(most: int) -> None:
    record, end, size = full(LOOP, 150, "full", record_bytes=most)
    assert size <= most
    assert end.ending == "ended"
    assert "record bytes" in {row.what for row in record.truncations}


@pytest.mark.parametrize("most", [150, 215, 301, 444])
def test_a_record_with_its_most_rows_is_sound_and_takes_no_more(most: int) -> None:
    record, end, _size = full(LOOP, 100, "full", rows=most)
    assert end.ending == "ended"
    assert record.truncations[0].what == "rows"


@pytest.mark.parametrize("most", [{"record_bytes": 48 << 10}, {"rows": 300}])
def test_the_exception_that_ends_the_program_is_told_after_any_number_of_others(most: dict[str, int]) -> None:
    record, end, size = full(ERRORS, 300, "full", **most)
    assert size <= most.get("record_bytes", size)
    assert (end.ending, end.exit_code) == ("raised", 1)
    last = next(row for row in record.raised if row.n == end.exception)
    assert (last.type, last.frames[0].line) == ("RuntimeError", 8)
    assert len(record.raised) < 301, "the others are missing in part"


def test_a_warning_that_comes_late_is_in_a_full_record() -> None:
    source = LOOP + "import warnings\nwarnings.warn('late')\n"
    with pytest.warns(UserWarning, match="late"):
        record, _end, _size = full(source, 150, "full", record_bytes=60 << 10)
    assert "record bytes" in {row.what for row in record.truncations}
    assert [(row.message, row.moment) for row in record.warned] == [("late", None)]


def test_a_full_record_costs_the_rest_of_the_loop_no_taps() -> None:
    _record, end, _size = full(IDLE, 60, "full", record_bytes=40 << 10)
    assert end.exit_code == 1
