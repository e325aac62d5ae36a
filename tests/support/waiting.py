"""Waiting for a condition, with a deadline that names what was waited for."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], what: str | Callable[[], str] = "what this line waits for", seconds: float = 120.0
) -> T:
    """Wait until the condition is true and return its value. The test fails with `what` after `seconds`.

    The deadline is for a loaded machine: a condition that comes is seen within hundredths of a second.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.01)
    return pytest.fail(f"not within {seconds:.0f} s: {what() if callable(what) else what}")
