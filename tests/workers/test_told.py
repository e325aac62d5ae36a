"""A storm of signals ends a process, and never leaves it waiting for itself."""

import os
import signal
import subprocess
import sys

import pytest

WAITING = """
import threading
from workers.told import set_on_signals
stop = threading.Event()
set_on_signals(stop)
print("ready", flush=True)
while not stop.wait(0.001):
    stop.clear()
    stop.is_set()
"""
"""Takes and gives back the event's lock all the time, as a loop that waits does."""

SETTING_IN_THE_HANDLER = WAITING.replace(
    "set_on_signals(stop)",
    "import signal\nfor number in (15, 2): signal.signal(number, lambda *_: stop.set())",
).replace("from workers.told import set_on_signals\n", "")


def ends(program: str) -> bool:
    """Whether the program has ended within 5 s of the first of many signals."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        try:
            for _ in range(3000):
                if process.poll() is not None:
                    break
                os.kill(process.pid, signal.SIGTERM)
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            return False
        return True


@pytest.mark.parametrize("attempt", range(5))
def test_a_storm_of_signals_ends_a_process(attempt):
    assert ends(WAITING)


def test_the_storm_would_hang_a_handler_that_sets_an_event():
    """The control: without it the test above proves nothing."""
    assert not all(ends(SETTING_IN_THE_HANDLER) for _ in range(20))
