"""Programs under real capture: `captured(source)` gives the record, from a fork of one warm process per session."""

from collections.abc import Callable

import pytest

from backprobe.record import Record
from backprobe.rules.manual_programs import programs

Captured = Callable[..., Record]


@pytest.fixture(scope="session")
def captured() -> Captured:
    """`captured(source)`: the record of a program that ran as `train.py`, at most 60 seconds long; each is run once."""
    return programs().captured
