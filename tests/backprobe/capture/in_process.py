"""A program run in this process, and its record, checked."""

from __future__ import annotations

import textwrap
import warnings

from backprobe.capture import run_source
from backprobe.capture.options import Options
from backprobe.record import Record, check


def recorded(source: str, options: Options | None = None) -> Record:
    """The record of a program; it must be whole, sound and without an error of the recorder's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        record = run_source(textwrap.dedent(source), options=options)
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert record.header.fallbacks == ()
    return record


def line_of(record: Record, site: int | None) -> int | None:
    """The line of a site."""
    return next((row.line for row in record.sites if row.site == site), None)
